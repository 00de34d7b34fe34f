//! The formula that people write down first, and why its result differs: available − what stays free − data that waits
//! to be written − all page cache.

use timeline::signals::{MEM_DIRTY, MEM_FREE};
use units::{Bytes, Quantity, Ratio, Span};

use super::terms::{Levels, flat_edge, whole};
use super::{ReadCache, Room, signed};
use crate::evidence::Evidence;
use crate::measures::floor::Floor;

/// A larger difference between the two results is explained.
const DIFFERS: Ratio = Ratio::from_percent(20.0);
/// The quantile of free memory that counts as its lower edge, where free memory rests on its floor.
const EDGE: Ratio = Ratio::from_percent(1.0);

/// The result of that formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Article {
    /// Its headroom at its worst sample.
    pub bytes: i64,
    /// The time of that sample on the timeline's clock; `None` where it is the worst sample of ours as well.
    pub at: Option<Span>,
    /// The free memory that the formula subtracts.
    pub kept_free: Bytes,
    /// The most data that waited to be written; `None` if unknown, and then nothing was subtracted.
    pub written: Option<Bytes>,
    /// Page cache at its worst sample.
    pub cache: Bytes,
    /// Whether the difference from our result is large enough to be explained.
    pub differs: bool,
    /// The formula with its figures, and why it differs.
    pub text: String,
}

/// Returns `None` if page cache or the memory that stays free is unknown.
pub(super) fn formula(
    cx: &Evidence<'_>,
    levels: &Levels,
    room: &Room,
    cache: &ReadCache,
) -> Option<Article> {
    let ram = cx.ram().ok()?;
    let files = levels.files.as_ref()?;
    let kept_free = kept_free(cx, levels, ram)?;
    let written =
        cx.timeline.gauge(MEM_DIRTY).and_then(|dirty| dirty.max()).map(|(written, _)| written);
    let taken = kept_free + written.unwrap_or_default();
    let of_sample = |index: usize| {
        let available = levels.available.at(index)?;
        let cache = files.at(index)?;
        let bytes = available.as_f64() - taken.as_f64() - cache.as_f64();
        Some((bytes, index, available, cache))
    };
    let samples = (0..cx.timeline.len()).filter_map(of_sample);
    let (bytes, index, available, all_cache) = samples.min_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    let bytes = whole(bytes);
    let differs = differs(room, bytes, ram);
    let why = if differs { why(cache, all_cache, kept_free) } else { String::new() };
    let dirty = written.map_or_else(
        || "unwritten data unknown".to_owned(),
        |written| format!("{written} unwritten at most"),
    );
    Some(Article {
        bytes,
        at: cx.timeline.times().get(index).copied().filter(|_| index != room.worst),
        kept_free,
        written,
        cache: all_cache,
        differs,
        text: format!(
            "{available} available − {kept_free} kept free − {dirty} − {all_cache} page cache = \
             {}{why}",
            signed(bytes)
        ),
    })
}

fn differs(room: &Room, bytes: i64, ram: Bytes) -> bool {
    let far = |ours: i64| {
        let apart = Bytes::new(ours.abs_diff(bytes));
        apart > Bytes::new(ours.unsigned_abs()).share(DIFFERS) && apart > ram.share(EDGE)
    };
    room.least.likely_or_lower().is_none_or(far)
}

/// The lower edge of free memory where it rested on its floor; else the expected floor.
fn kept_free(cx: &Evidence<'_>, levels: &Levels, ram: Bytes) -> Option<Bytes> {
    let (_, high) = levels.floor;
    if !levels.floor_is_measured
        && let Some(edge) = flat_edge(cx)
    {
        return Some(edge);
    }
    let edge = cx.gauge(MEM_FREE).ok()?.quantile(EDGE)?;
    Some(if edge <= Floor::rests_below(high, ram) { edge } else { high })
}

/// Why the two differ: the formula counts all cache as needed, where ours counts less, and counts the floor twice.
fn why(cache: &ReadCache, all: Bytes, kept_free: Bytes) -> String {
    let needed = match (cache.likely, cache.upper) {
        (Some(likely), _) if likely + all.share(DIFFERS) >= all => None,
        (Some(likely), _) => Some(format!("headroom counts the {likely} that is used again")),
        (None, Some(upper)) => Some(format!(
            "headroom counts {} to {upper}: how much is used again is unknown",
            cache.lower
        )),
        (None, None) => Some("how much is used again is unknown".to_owned()),
    };
    let needed = needed.map(|why| format!("counts all page cache as needed ({why}) and "));
    format!(". This formula {}subtracts the {kept_free} reserve twice", needed.unwrap_or_default())
}
