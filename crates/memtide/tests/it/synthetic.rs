//! A small host made up line by line, for what no capture shows.
//!
//! The first line is `host of 60 s`, every other one a setting or a reading of each second:
//!
//! ```text
//! vm.swappiness 10                     a setting, as its file holds it
//! cgroup.mode v1                       the hierarchy that manages memory; else unknown
//! mem.total 16G                        a level; K, M, G are powers of 1,024
//! mem.mlocked 1G..6G                   a level that goes evenly from one to the other
//! vm.pswpin +300                       a counter that rises by so much each second
//! proc.locked of 4242@1=mysqld 6G      of the entity with this key, and what it is called
//! ```

use timeline::facts::CgroupMode;
use timeline::{Facts, Sample, SignalId, Timeline, facts, signals};
use units::{PageSize, Span};

/// Something that has a value in each second.
struct Reading<'a> {
    signal: SignalId,
    /// Key and name of what it is of; empty for the host.
    key: &'a str,
    label: &'a str,
    value: Value,
}

enum Value {
    Level(u64, u64),
    Rises(u64),
}

impl Value {
    fn read(text: &str) -> Self {
        if let Some(step) = text.strip_prefix('+') {
            return Self::Rises(number(step));
        }
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        Self::Level(number(from), number(to))
    }

    /// In second `second` of `seconds`.
    fn at(&self, second: u64, seconds: u64) -> u64 {
        match *self {
            Self::Rises(step) => 1000 + step * second,
            Self::Level(from, to) => (from * (seconds - second) + to * second) / seconds,
        }
    }
}

fn number(text: &str) -> u64 {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let times = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        other => panic!("`{other}` in `{text}`: expected K, M or G"),
    };
    let n: u64 = digits.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"));
    n * times
}

fn reading(line: &str) -> Reading<'_> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, of, value) = match words[..] {
        [name, value] => (name, "", value),
        [name, "of", of, value] => (name, of, value),
        _ => panic!("`{line}`: expected `signal value` or `signal of key value`"),
    };
    let known = signals::by_name(name);
    let (signal, def) = known.unwrap_or_else(|| panic!("no signal or setting is called `{name}`"));
    assert_eq!(def.is_counter, value.starts_with('+'), "`{line}`: + is for counters");
    let (key, label) = of.split_once('=').unwrap_or((of, ""));
    Reading { signal, key, label, value: Value::read(value) }
}

/// The host that these lines describe.
pub(crate) fn host<'a>(lines: impl IntoIterator<Item = &'a str>) -> (Timeline, Facts) {
    let mut lines = lines.into_iter();
    let first = lines.next().unwrap_or_default();
    let seconds = first
        .strip_prefix("host of ")
        .and_then(|rest| rest.strip_suffix(" s")?.parse::<u64>().ok())
        .unwrap_or_else(|| panic!("`{first}`: expected `host of 60 s`"));
    #[allow(clippy::field_reassign_with_default)] // some of its fields are private
    let mut facts = Facts::default();
    facts.page_size = PageSize::from_bytes(4096);
    let mut readings = Vec::new();
    for line in lines {
        let (name, text) = line.split_once(' ').unwrap_or((line, ""));
        if name == "cgroup.mode" {
            facts.cgroup_mode = Some(match text {
                "v1" => CgroupMode::V1,
                "v2" => CgroupMode::V2,
                other => panic!("`{other}` in `{line}`: expected v1 or v2"),
            });
            continue;
        }
        match facts::ALL.iter().find(|fact| fact.name == name) {
            Some(fact) => facts.record(Span::ZERO, *fact, text),
            None => readings.push(reading(line)),
        }
    }
    let mut timeline = Timeline::default();
    for second in 0..=seconds {
        let mut sample = Sample::at(Span::from_secs(second));
        for one in &readings {
            let value = one.value.at(second, seconds);
            if one.key.is_empty() {
                sample.host.set_raw(one.signal, value);
                continue;
            }
            let row = sample.table_mut(one.signal.def().entity).entry(one.key);
            one.label.clone_into(&mut row.label);
            row.row.set_raw(one.signal, value);
        }
        timeline.push(&sample).unwrap();
    }
    (timeline, facts)
}
