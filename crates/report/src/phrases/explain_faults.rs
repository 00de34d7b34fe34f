//! What `explain` says of a process that takes pages at a high rate: perhaps its allocator gives them back each time.

use std::collections::BTreeMap;

use units::{Count, PerSecond};

use crate::model::explain::ExplainReport;

/// From this rate on, it is worth a sentence: that of the rule `allocator-churn`.
const FAULTS_MIN: PerSecond<Count> = PerSecond::new(20_000.0);

/// Says how many minor faults it had meanwhile, if they are many, and which variable may be why.
pub(super) fn many(report: &ExplainReport) -> Option<String> {
    let faults = report.minor_faults_per_s.filter(|faults| faults.get() >= FAULTS_MIN.get())?;
    let values = match report.process.ignores_variables {
        Some(true) => &BTreeMap::new(),
        _ => &report.process.memory_values,
    };
    let variable = returns_at_once(values).map_or_else(String::new, |why| format!(" {why}"));
    Some(format!(
        "Meanwhile it had {faults} minor faults: it grows, or its allocator gives memory back and \
         takes it again, which `memtide check` distinguishes.{variable}"
    ))
}

/// Returns why an allocator with these settings returns memory at once.
fn returns_at_once(values: &BTreeMap<&'static str, String>) -> Option<String> {
    let value = |name: &str| values.get(name).map(String::as_str);
    const THRESHOLDS: [&str; 3] =
        ["MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_THRESHOLD_"];
    let set = THRESHOLDS.iter().find_map(|name| Some((name, value(name)?)));
    if let Some((name, value)) = set.filter(|_| values.get("MALLOC_MMAP_THRESHOLD_").is_none()) {
        return Some(format!(
            "{name}={value} alone ends the automatic thresholds: each block of 128 KiB or more is \
             mapped, and returned when it is freed. MALLOC_MMAP_THRESHOLD_=33554432 beside it keeps \
             such blocks in the heap."
        ));
    }
    if let Some(threshold) = value("MALLOC_MMAP_THRESHOLD_") {
        return Some(format!(
            "MALLOC_MMAP_THRESHOLD_={threshold}: each block of that size is mapped, and returned when \
             it is freed; the largest value is 33554432, with MALLOC_TRIM_THRESHOLD_ above it."
        ));
    }
    let conf = ["MALLOC_CONF", "_RJEM_MALLOC_CONF", "JE_MALLOC_CONF"];
    let decay = |conf: &&str| {
        value(conf).is_some_and(|text| text.split(',').any(|one| one == "dirty_decay_ms:0"))
    };
    if let Some(name) = conf.iter().find(|name| decay(name)) {
        return Some(format!(
            "{name} has dirty_decay_ms:0: jemalloc returns pages at once (default 10000)."
        ));
    }
    if value("TCMALLOC_AGGRESSIVE_DECOMMIT").is_some_and(|text| text != "0" && text != "f") {
        return Some(
            "TCMALLOC_AGGRESSIVE_DECOMMIT is set: tcmalloc returns pages at once.".to_owned(),
        );
    }
    if value("MIMALLOC_PURGE_DELAY") == Some("0") {
        return Some("MIMALLOC_PURGE_DELAY=0: mimalloc returns pages at once.".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_that_ends_automatic_thresholds_is_named_with_its_remedy() {
        let why = |pairs: &[(&'static str, &str)]| {
            returns_at_once(
                &pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
            )
        };
        let trim = why(&[("MALLOC_TRIM_THRESHOLD_", "268435456")]).unwrap();
        assert!(trim.contains("MALLOC_MMAP_THRESHOLD_=33554432"), "{trim}");
        assert!(
            why(&[("MALLOC_CONF", "narenas:2,dirty_decay_ms:0")]).unwrap().contains("jemalloc")
        );
        assert_eq!(why(&[("MALLOC_ARENA_MAX", "2"), ("GOGC", "50")]), None);
        assert_eq!(why(&[("MALLOC_CONF", "dirty_decay_ms:10000")]).map(|_| ()), None);
    }
}
