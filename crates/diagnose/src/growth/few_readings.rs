//! Fewer readings than a class needs, as people paste them: whether they rise in a line at all.

use units::{Bytes, Ratio};

use super::decision::{READINGS_MIN, Z_SEEN};
use super::series::Prepared;
use super::trend::Trend;
use super::{Growth, GrowthClass, GrowthFit, GrowthMethod, answer};

/// Eight readings that rise one after the other are made by chance once in 40,000 series.
const FEW_MIN: usize = 8;
/// The share of the variance that the line explains: an engineering choice.
const STRAIGHT: f64 = 0.9;
/// A curve that levels off is flatter in its second half: an engineering choice.
const GOES_ON: f64 = 0.7;
/// A class rests on more readings.
const CONFIDENCE_OF_FEW: Ratio = Ratio::from_percent(40.0);

/// Returns the growth of a series that rises in a line; `None` if it does not, or has enough readings for a class.
pub(super) fn line(prepared: &Prepared, limit: Option<Bytes>) -> Option<Growth> {
    if !(FEW_MIN..READINGS_MIN).contains(&prepared.readings) {
        return None;
    }
    let trend = Trend::of_blocks(&prepared.total);
    let is_steady = Trend::slope_ratio(&prepared.total) >= GOES_ON;
    let is_line = trend.z >= Z_SEEN && trend.from > 0.0 && trend.r_squared >= STRAIGHT;
    if !(is_line && is_steady) {
        return None;
    }
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
