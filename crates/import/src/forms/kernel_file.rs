//! Kernel files of `field: value` lines, recognised by their fields, whole or grepped: `/proc/meminfo`.

use timeline::{Sample, signals};

use super::{Block, Form, Reading};
use crate::looks::Look;

pub(super) const FORM: Form = Form {
    name: "/proc/meminfo",
    read,
};

fn read(reading: &mut Reading<'_>) -> Option<Block> {
    let lines = reading
        .lines
        .iter()
        .take_while(|line| is_field(line))
        .count();
    let known = |line: &&&str| is_known(line);
    if !reading.lines[..lines].iter().any(|line| known(&line)) {
        return None;
    }
    let text = reading.lines[..lines].join("\n");
    let mut look = Look::of(Sample::default());
    let mut block = Block {
        what: "/proc/meminfo".to_owned(),
        lines,
        unit: "KiB",
        ..Block::default()
    };
    let read = reading.parsers.read(
        "/proc/meminfo",
        text.as_bytes(),
        &mut look.sample,
        reading.facts,
    );
    if let Err(error) = read {
        block.problems.push((error.line - 1, error.to_string()));
    }
    reading.look(look);
    Some(block)
}

/// `MemFree:  349408 kB`, `HugePages_Total:  0`.
fn is_field(line: &str) -> bool {
    let Some((name, value)) = line.split_once(':') else {
        return false;
    };
    let mut words = value.split_whitespace();
    !name.contains(' ')
        && words
            .next()
            .is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit()))
        && matches!(words.next(), None | Some("kB"))
}

fn is_known(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    signals::field_of("/proc/meminfo").any(|(field, ..)| field == name)
}
