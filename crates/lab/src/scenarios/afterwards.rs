//! What a host has available once a load has ended: harm that was of a setting or a job leaves nothing short.

use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL};

use crate::claim::{Claim, MeasuredArms, percent};
use crate::guest::Guest;

/// Measures what is available now, of RAM.
pub(super) fn measure_available(guest: &mut Guest) -> Result<(), String> {
    guest.measured("available", guest.host(MEM_AVAILABLE)? / guest.host(MEM_TOTAL)?);
    Ok(())
}

/// Afterwards nothing is short, in any arm.
pub(super) fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let arms = outcomes.arms().into_iter();
    arms.map(|arm| {
        let available = outcomes.measured(arm, "available");
        Claim::of(&format!("available afterwards ({arm})"), available, percent).at_least(0.1)
    })
    .collect()
}
