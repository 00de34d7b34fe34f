//! The formula as people first write it down, and why it differs: available − what stays free − what waits to be written −
//! all of the page cache.

use timeline::signals::{MEM_DIRTY, MEM_FREE};
use units::{Bytes, Quantity, Ratio};

use super::terms::{Levels, flat_edge, whole};
use super::{ReadCache, Room, signed};
use crate::evidence::Evidence;
use crate::floor::Floor;

/// Figures that differ by more are worth a word.
const DIFFERS: Ratio = Ratio::from_percent(20.0);
/// The lower edge of free memory, where it rests on its floor.
const EDGE: Ratio = Ratio::from_percent(1.0);

/// What that formula gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Article {
    /// Headroom at its worst sample.
    pub bytes: i64,
    /// What stays free, as it takes it.
    pub kept_free: Bytes,
    /// What waits to be written, at most; `None` where the source does not tell: then none was taken off.
    pub written: Option<Bytes>,
    /// Page cache at its worst sample.
    pub cache: Bytes,
    /// Whether it differs from ours enough to be explained.
    pub differs: bool,
    /// The formula with its figures, and why it differs.
    pub text: String,
}

/// `None` where the source does not tell page cache, or what stays free.
pub(super) fn formula(
    cx: &Evidence<'_>,
    levels: &Levels,
    room: &Room,
    cache: &ReadCache,
) -> Option<Article> {
    let ram = cx.ram().ok()?;
    let files = levels.files.as_ref()?;
    let kept_free = kept_free(cx, levels, ram)?;
    let written = cx.timeline.gauge(MEM_DIRTY).and_then(|dirty| dirty.max());
    let written = written.map(|(written, _)| written);
    let taken = kept_free + written.unwrap_or_default();
    let of_sample = |index: usize| {
        let available = levels.available.at(index)?;
        let cache = files.at(index)?;
        let bytes = available.as_f64() - taken.as_f64() - cache.as_f64();
        Some((bytes, available, cache))
    };
    let samples = (0..cx.timeline.len()).filter_map(of_sample);
    let (bytes, available, all_cache) = samples.min_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    let bytes = whole(bytes);
    let ours = room.least.likely_or_lower();
    let far = |ours: i64| {
        let apart = Bytes::new(ours.abs_diff(bytes));
        apart > Bytes::new(ours.unsigned_abs()).share(DIFFERS) && apart > ram.share(EDGE)
    };
    let differs = ours.is_none_or(far);
    let why = if differs {
        why(cache, kept_free)
    } else {
        String::new()
    };
    let dirty = written.map_or_else(
        || "unwritten data not told".to_owned(),
        |written| format!("{written} unwritten"),
    );
    Some(Article {
        bytes,
        kept_free,
        written,
        cache: all_cache,
        differs,
        text: format!(
            "{available} available − {kept_free} kept free − {dirty} − {all_cache} page cache = {}{why}",
            signed(bytes)
        ),
    })
}

/// The lower edge of free memory where it rested on its floor; else where it would.
fn kept_free(cx: &Evidence<'_>, levels: &Levels, ram: Bytes) -> Option<Bytes> {
    let (_, high) = levels.floor;
    if !levels.floor_is_measured
        && let Some(edge) = flat_edge(cx)
    {
        return Some(edge);
    }
    let edge = cx.gauge(MEM_FREE).ok()?.quantile(EDGE)?;
    Some(match edge <= Floor::rests_below(high, ram) {
        true => edge,
        false => high,
    })
}

fn why(cache: &ReadCache, kept_free: Bytes) -> String {
    let needed = match (cache.likely, cache.upper) {
        (Some(likely), _) => format!("ours takes the {likely} that is used again"),
        (None, Some(upper)) => {
            format!(
                "ours says {} to {upper}, as nothing tells what is used again",
                cache.lower
            )
        }
        (None, None) => "ours leaves open how much is used again".to_owned(),
    };
    format!(
        ". It takes all page cache for needed ({needed}), and takes off {kept_free} that available leaves out already"
    )
}
