//! Files of a cgroup, and properties of a unit (`systemctl show`: `MemoryCurrent=6991884288`), as people note them: `memory.usage_in_bytes = 2,621,042,688 B`, `memory.max: 512M`, each with its value
//! on one line, with thousands separators and remarks.

use timeline::Entity;
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE, CGROUP_MAX,
};
use units::{Bytes, Count, Limit};

use super::Form;
use super::kernel_file::UNNAMED_CGROUP;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure, raw};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "cgroup values",
    begins: BlockStart::with(&[
        "memory.usage_in_bytes",
        "memory.limit_in_bytes",
        "memory.current",
        "memory.max",
        "memory.stat ",
        "MemoryCurrent",
    ]),
    read,
};

/// What a name means.
#[derive(Debug, Clone, Copy)]
enum CgroupValue {
    Used,
    Limit,
    Anon,
    File,
    Kills,
    /// Known and not used.
    Other,
}

const NAMES: &[(&str, CgroupValue)] = &[
    ("memory.usage_in_bytes", CgroupValue::Used),
    ("MemoryCurrent", CgroupValue::Used),
    ("MemoryMax", CgroupValue::Limit),
    ("MemoryLimit", CgroupValue::Limit),
    ("MemoryHigh", CgroupValue::Other),
    ("MemoryPeak", CgroupValue::Other),
    ("MemoryAvailable", CgroupValue::Other),
    ("MemorySwapCurrent", CgroupValue::Other),
    ("memory.current", CgroupValue::Used),
    ("memory.limit_in_bytes", CgroupValue::Limit),
    ("memory.max", CgroupValue::Limit),
    ("total_rss", CgroupValue::Anon),
    ("anon", CgroupValue::Anon),
    ("total_cache", CgroupValue::File),
    ("file", CgroupValue::File),
    ("oom_kill", CgroupValue::Kills),
    ("memory.failcnt", CgroupValue::Other),
    ("memory.high", CgroupValue::Other),
    ("memory.peak", CgroupValue::Other),
    ("memory.oom_control", CgroupValue::Other),
    ("total_pgmajfault", CgroupValue::Other),
];

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    if !FORM.begins.is_in(input.lines.first()?) {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let key = format!("/{UNNAMED_CGROUP}");
    let row = snapshot.sample.table_mut(Entity::Cgroup).entry(&key);
    let (mut lines, mut sizes) = (0, 0);
    let (mut used, mut limit) = (None, None);
    for line in input.lines {
        let Some((what, text)) = named(line) else {
            break;
        };
        lines += 1;
        let figure = size(text);
        let bytes = figure.map(Bytes::new);
        match (what, bytes) {
            (CgroupValue::Used, Some(bytes)) => used = Some(bytes),
            (CgroupValue::Limit, Some(bytes)) => limit = Some(bytes),
            (CgroupValue::Anon, Some(bytes)) => row.row.set(CGROUP_ANON, bytes),
            (CgroupValue::File, Some(bytes)) => row.row.set(CGROUP_FILE, bytes),
            (CgroupValue::Kills, Some(count)) => {
                row.row.set(CGROUP_EVENTS_OOM_KILL, Count::new(count.get()));
            }
            _ => continue,
        }
        sizes += 1;
    }
    if let Some(used) = used {
        row.row.set(CGROUP_CURRENT, used);
    }
    // A limit below the usage is a number that was cut.
    if let Some(limit) =
        limit.filter(|limit| used.is_none_or(|used| used.get() <= limit.get() + limit.get() / 50))
    {
        row.row.set(CGROUP_MAX, Limit::Bytes(limit));
    }
    // One line alone is read by the reader of kernel files, or is a sentence.
    if sizes < 2 {
        return None;
    }
    input.add(snapshot);
    Some(TextBlock {
        what: "values of an unknown cgroup".to_owned(),
        lines,
        unit: "bytes",
        ..TextBlock::default()
    })
}

/// The name at the start of a line, behind that of its file, and the text of its value.
fn named(line: &str) -> Option<(CgroupValue, &str)> {
    let (name, value) = line.split_once(['=', ':'])?;
    let name = name.trim().trim_start_matches(['-', '*', '`', ' ']);
    let name = name.rsplit([' ', '/']).next()?.trim_matches('`');
    // `memory.oom_control : oom_kill = 0   under_oom = 0`.
    let inner = value.split_once('=').filter(|_| name == "memory.oom_control");
    let (name, value) = match inner {
        Some((inner, rest)) => (inner.trim(), rest),
        None => (name, value),
    };
    let (_, what) = NAMES.iter().find(|(known, _)| *known == name)?;
    Some((*what, value))
}

/// A size or a count, with thousands separators.
fn size(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    let number = words.first()?.replace(',', "");
    let is_number = number.bytes().all(|b| b.is_ascii_digit());
    let unit = words.get(1).filter(|unit| is_number && unit.ends_with('B'));
    let joined = match unit {
        Some(&"B") | None => number,
        Some(unit) => format!("{number}{unit}"),
    };
    let figure = PrintedFigure::binary(&joined)?;
    let factor = if figure.has_unit { KIB } else { 1.0 };
    raw(figure.in_bytes(factor).value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};

    #[test]
    fn values_with_separators_and_remarks_are_read() {
        let text = "memory.stat total_rss      =    22,953,984 B  (~21.9 MiB)  <- real memory\nmemory.stat total_cache    = 2,537,095,168 B\nmemory.usage_in_bytes      = 2,621,042,688 B\nmemory.limit_in_bytes      = 2,621,440,000 B\nmemory.failcnt             = 106,682,814\nmemory.oom_control         : oom_kill = 0   under_oom = 0\n";
        let timeline = paste(text).timeline;
        let group = timeline.entity(Entity::Cgroup, "/(pasted cgroup)").unwrap();
        let of = |signal| timeline.last_of(group, signal);
        assert_eq!(of(CGROUP_CURRENT), Some(Bytes::new(2_621_042_688)));
        assert_eq!(of(CGROUP_ANON), Some(Bytes::new(22_953_984)));
        let limit = timeline.last_of(group, CGROUP_MAX);
        assert_eq!(limit, Some(Limit::Bytes(Bytes::new(2_621_440_000))));
        survives(text);
    }

    #[test]
    fn a_sentence_about_a_file_is_not_read() {
        let inputs = paste("memory.max: see the manual\nmemory.current: too\n").origin.inputs;
        assert!(inputs.iter().all(|input| input.form != FORM.name));
    }
}
