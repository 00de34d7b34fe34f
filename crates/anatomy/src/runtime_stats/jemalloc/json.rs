//! The JSON form. Fields that are not named here are skipped without being kept, and lists end at their bound.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use units::{Bytes, Count};

use super::super::{RuntimeStatsError, StatsKind, from_json};
use super::{BINS_MAX, JemallocBin, JemallocStats};

/// Reads the report with its key at `key`.
pub(super) fn read(text: &[u8], key: usize) -> Result<JemallocStats, RuntimeStatsError> {
    let kind = StatsKind::Jemalloc;
    let missing = |field| RuntimeStatsError::Missing { kind, field };
    let before = text.get(..key).unwrap_or_default();
    let start = memchr::memrchr(b'{', before).ok_or_else(|| missing("a JSON object"))?;
    let document: Document = from_json(kind, text, text.get(start..).unwrap_or_default())?;
    let report = document.jemalloc;
    let totals = (report.stats).ok_or_else(|| missing("`stats` (option `g` omits it)"))?;
    let constants = report.arenas.unwrap_or_default();
    let merged = (report.by_arena.and_then(|arenas| arenas.merged)).unwrap_or_default();
    let pages = |count: Option<u64>| Some(Bytes::new(count?.saturating_mul(constants.page?)));
    let pairs = merged.bins.0.iter().zip(&constants.bin.0);
    Ok(JemallocStats {
        version: report.version,
        allocated: Bytes::new(totals.allocated),
        active: Bytes::new(totals.active),
        metadata: Bytes::new(totals.metadata),
        resident: Bytes::new(totals.resident),
        retained: totals.retained.map(Bytes::new),
        dirty: pages(merged.pdirty),
        muzzy: pages(merged.pmuzzy),
        thread_caches: merged.tcache_bytes.map(Bytes::new),
        arenas: constants.narenas.map(Count::new),
        background_thread: report.opt.and_then(|options| options.background_thread),
        bins: pairs.map(|(counts, bin)| bin.with(counts)).collect(),
    })
}

#[derive(Deserialize)]
struct Document {
    jemalloc: JsonReport,
}

#[derive(Deserialize)]
struct JsonReport {
    version: Option<String>,
    opt: Option<JsonOptions>,
    arenas: Option<ArenaConstants>,
    stats: Option<Totals>,
    #[serde(rename = "stats.arenas")]
    by_arena: Option<ArenaStats>,
}

#[derive(Deserialize)]
struct JsonOptions {
    background_thread: Option<bool>,
}

#[derive(Deserialize, Default)]
struct ArenaConstants {
    narenas: Option<u64>,
    page: Option<u64>,
    #[serde(default)]
    bin: BoundedBins<BinSize>,
}

#[derive(Deserialize)]
struct Totals {
    allocated: u64,
    active: u64,
    metadata: u64,
    resident: u64,
    retained: Option<u64>,
}

#[derive(Deserialize)]
struct ArenaStats {
    merged: Option<MergedArenas>,
}

#[derive(Deserialize, Default)]
struct MergedArenas {
    pdirty: Option<u64>,
    pmuzzy: Option<u64>,
    tcache_bytes: Option<u64>,
    #[serde(default)]
    bins: BoundedBins<BinCounts>,
}

#[derive(Deserialize)]
struct BinSize {
    size: u64,
    nregs: u64,
}

#[derive(Deserialize)]
struct BinCounts {
    curregs: u64,
    #[serde(alias = "curruns")]
    curslabs: u64,
}

impl BinSize {
    const fn with(&self, counts: &BinCounts) -> JemallocBin {
        JemallocBin {
            region_size: Bytes::new(self.size),
            slabs: Count::new(counts.curslabs),
            regions: Count::new(counts.curslabs.saturating_mul(self.nregs)),
            used: Count::new(counts.curregs),
        }
    }
}

/// A list of at most [`BINS_MAX`] elements; what follows is skipped.
struct BoundedBins<T>(Vec<T>);

impl<T> Default for BoundedBins<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for BoundedBins<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BoundedBinsVisitor(std::marker::PhantomData))
    }
}

struct BoundedBinsVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for BoundedBinsVisitor<T> {
    type Value = BoundedBins<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < BINS_MAX {
            match list.next_element()? {
                Some(element) => kept.push(element),
                None => return Ok(BoundedBins(kept)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(BoundedBins(kept))
    }
}
