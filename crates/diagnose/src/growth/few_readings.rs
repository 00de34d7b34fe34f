//! Readings without a class, as few that people paste: whether they rise in a line at all.

use units::{Bytes, Quantity as _, Ratio};

use super::decision::{READINGS_MIN, Z_SEEN};
use super::series::Prepared;
use super::trend::Trend;
use super::{Growth, GrowthClass, GrowthFit, GrowthMethod, NOISE_FLOOR, answer};

/// Eight readings that rise one after the other are made by chance once in 40,000 series.
const FEW_MIN: usize = 8;
/// The share of the variance that the line explains: an engineering choice.
const STRAIGHT: f64 = 0.9;
/// A curve that levels off is flatter in its second half: an engineering choice.
const GOES_ON: f64 = 0.7;
/// A class rests on more readings.
const CONFIDENCE_OF_FEW: Ratio = Ratio::from_percent(40.0);

/// Returns the trend of a total that rises in a line; `None` if it does not.
pub(super) fn straight(prepared: &Prepared) -> Option<Trend> {
    if prepared.readings < FEW_MIN {
        return None;
    }
    let trend = if prepared.readings < READINGS_MIN {
        Trend::of_blocks(&prepared.total)
    } else {
        Trend::of(&prepared.total)
    };
    let is_steady = Trend::slope_ratio(&prepared.total) >= GOES_ON;
    let is_line = trend.z >= Z_SEEN && trend.from > 0.0 && trend.r_squared >= STRAIGHT;
    let is_growth = trend.growth() >= NOISE_FLOOR.as_f64();
    (is_line && is_steady && is_growth).then_some(trend)
}

/// Returns the growth of a series that rises in a line; `None` if it does not, or has enough readings for a class.
pub(super) fn line(prepared: &Prepared, limit: Option<Bytes>) -> Option<Growth> {
    if prepared.readings >= READINGS_MIN {
        return None;
    }
    let trend = straight(prepared)?;
    let now = prepared.ends_at();
    let goes_on = prepared.now.is_none();
    let rate = answer::rate(&trend, prepared);
    Some(Growth {
        class: GrowthClass::Leak,
        confidence: CONFIDENCE_OF_FEW,
        method: GrowthMethod {
            is_of_live: false,
            fit: GrowthFit::None { readings: prepared.readings },
            z: trend.z,
            slope_r_squared: trend.r_squared,
            slope_ratio: None,
        },
        now,
        judged: prepared.span,
        readings: prepared.readings,
        rate: Some(rate),
        levels_off_at: None,
        limit_in: answer::limit_in(rate, now, limit.filter(|_| goes_on)),
        needs: None,
        goes_on,
        reasons: answer::parts(prepared).collect(),
    })
}
