//! A service that reads all its files again and again, pass by pass: what scenarios with too small a limit have in common.

use crate::claim::{Claim, MeasuredArms, percent, times};
use crate::guest::Guest;

use super::afterwards::measure_available;

const DISK: &str = "/disk";

/// Writes this many files of 8 MiB to the first disk, none of which stays in the page cache: it would be the root's.
pub(super) fn write_files(guest: &Guest, count: &str) -> Result<(), String> {
    guest.mount("/dev/vda", DISK)?;
    guest.run(&["write", DISK, "8M", "--files", count])?;
    guest.remount("/dev/vda", DISK)
}

/// Reads the files in a cgroup for this long; measures the fastest pass and what the host has available. Returns the
/// seconds of each pass.
pub(super) fn read(guest: &mut Guest, group: &str, time: &str) -> Result<Vec<f64>, String> {
    let reader = guest.start(&["read", DISK, "--for", time, "--join", group])?;
    let mut passes = Vec::new();
    reader.each(|line| {
        passes.extend(line.first().copied());
        Ok(())
    })?;
    // The first pass fills the cache.
    let warm = passes.get(1..).unwrap_or_default();
    let fastest = warm.iter().copied().reduce(f64::min).ok_or("too few passes were read")?;
    guest.measured("pass_ms", fastest * 1e3);
    measure_available(guest)?;
    Ok(passes)
}

/// The arm `starved` reads its files from the disk, and `room` from the page cache.
pub(super) fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let passes = outcomes.ratio("pass_ms", "starved", "room");
    let available = outcomes.measured("starved", "available");
    vec![
        Claim::of("a pass below the limit against one with room", passes, times).at_least(5.0),
        Claim::of("available on the host meanwhile", available, percent).at_least(0.5),
    ]
}
