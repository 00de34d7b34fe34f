//! Names and values in any notation: `MemFree:  349408 kB`, `pswpin 12`, `MemFree=12kB`, several on a line, in a
//! Markdown table, as members of JSON.

use std::borrow::Cow;

use crate::text::figure::PrintedFigure;

/// A name and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldPair<'a> {
    pub(super) name: &'a str,
    pub(super) value: FieldValue<'a>,
    /// Whether a `:` or `=` separates them.
    pub(super) has_colon: bool,
}

/// A value as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FieldValue<'a> {
    /// Digits without a unit and without thousands separators.
    Plain(Cow<'a, str>),
    /// A size with its unit; its value is in bytes.
    Size(PrintedFigure),
}

/// Parses the pairs on a line; `None` if there is anything else.
pub(super) fn parse(line: &str) -> Option<Vec<FieldPair<'_>>> {
    if line.len() > 2000 || !line.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let line = without_list_mark(without_remark(line));
    let mut words = line
        .split([' ', '|', ',', ';', '{', '}'])
        .map(|word| word.trim_matches(['"', '\'', '`', '*']))
        .filter(|word| !word.is_empty() && *word != ".")
        .peekable();
    // A thousands separator can be mistaken for a separator of pairs.
    if has_thousands_separators(line) {
        return parse_one(line);
    }
    let mut pairs = Vec::new();
    while let Some(word) = words.next() {
        let (name, colon, glued) = name_of(word)?;
        let mut has_colon = colon;
        let mut value = glued;
        if value.is_empty() {
            value = words.next()?;
            // `MemFree : 12 kB`, `MemFree = 12 kB`.
            if matches!(value, ":" | "=") {
                has_colon = true;
                value = words.next()?;
            }
        }
        let unit = words.next_if(|next| is_unit(next));
        pairs.push(FieldPair { name, value: value_of(value, unit)?, has_colon });
    }
    (!pairs.is_empty()).then_some(pairs)
}

/// An item of a list: `- MemFree: 12 kB`, `2. MemFree: 12 kB`.
pub(super) fn without_list_mark(line: &str) -> &str {
    let item = line.trim_start();
    let behind = item.trim_start_matches(|c: char| c.is_ascii_digit());
    let bullets = if behind.len() < item.len() { ['.', ')'] } else { ['-', '•'] };
    let text = behind.strip_prefix(bullets).and_then(|rest| rest.strip_prefix(' '));
    text.map_or(line, str::trim_start)
}

/// A line without the remark in brackets that somebody added to it: `VmRSS: 28244936 kB  (~28 GB resident)`.
fn without_remark(line: &str) -> &str {
    let remark = line.trim_end().strip_suffix(')').and_then(|line| line.rsplit_once(" ("));
    match remark {
        Some((front, inner)) if !inner.contains('(') => front.trim_end(),
        _ => line,
    }
}

/// Parses one pair with thousands separators in its value: `MemFree:  1,028 kB`.
fn parse_one(line: &str) -> Option<Vec<FieldPair<'_>>> {
    let mut words = line.split([' ', '|']).filter(|word| !word.is_empty());
    let (name, has_colon, glued) = name_of(words.next()?)?;
    let value = if glued.is_empty() { words.next()? } else { glued };
    let unit = words.next();
    let is_one = words.next().is_none() && unit.is_none_or(is_unit);
    let value = value_of(value, unit)?;
    is_one.then(|| vec![FieldPair { name, value, has_colon }])
}

fn has_thousands_separators(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes
        .windows(3)
        .any(|three| three[0].is_ascii_digit() && three[1] == b',' && three[2].is_ascii_digit())
}

/// The name of a field, whether a `:` or `=` follows it, and the rest of the word.
fn name_of(word: &str) -> Option<(&str, bool, &str)> {
    let split = word.split_once([':', '=']);
    let (name, glued) = split.unwrap_or((word, ""));
    let name = name.trim_matches('"');
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.()".contains(&b));
    is_name.then(|| (name, split.is_some(), glued.trim_matches('"')))
}

fn is_unit(word: &str) -> bool {
    matches!(
        word,
        "kB" | "KB"
            | "kb"
            | "K"
            | "k"
            | "KiB"
            | "MB"
            | "M"
            | "MiB"
            | "GB"
            | "G"
            | "GiB"
            | "B"
            | "bytes"
    )
}

fn value_of<'a>(word: &'a str, unit: Option<&str>) -> Option<FieldValue<'a>> {
    let digits: Cow<'a, str> = if word.bytes().all(|b| b.is_ascii_digit()) {
        Cow::Borrowed(word)
    } else {
        let figure = PrintedFigure::binary(word)?;
        if figure.has_unit {
            return unit.is_none().then_some(FieldValue::Size(figure));
        }
        // `1,028` is whole, `0,5` is not.
        if figure.error < 1.0 {
            let unit = PrintedFigure::binary(&format!("1{}", unit?))?;
            return Some(FieldValue::Size(PrintedFigure {
                value: figure.value * unit.value,
                error: figure.error * unit.value,
                has_unit: true,
            }));
        }
        Cow::Owned(word.replace([',', '.'], ""))
    };
    match unit {
        None => (digits.len() <= 20).then_some(FieldValue::Plain(digits)),
        Some("bytes") => sized(&digits, "B"),
        Some(unit) => sized(&digits, unit),
    }
}

fn sized<'a>(digits: &str, unit: &str) -> Option<FieldValue<'a>> {
    PrintedFigure::binary(&format!("{digits}{unit}")).map(FieldValue::Size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Vec<(String, String, bool)>> {
        let pairs = parse(line)?.into_iter();
        let shown = |value: &FieldValue<'_>| match value {
            FieldValue::Plain(digits) => digits.to_string(),
            FieldValue::Size(figure) => format!("{} B", figure.value),
        };
        Some(pairs.map(|p| (p.name.to_owned(), shown(&p.value), p.has_colon)).collect())
    }

    #[test]
    fn an_item_of_a_list_is_a_pair() {
        for line in [
            "- MemFree: 12 kB",
            " 2. MemFree: 12 kB (0.01 MB)",
            "3) MemFree: 12 kB",
            "• MemFree: 12 kB",
        ] {
            let pairs = parse(line).unwrap();
            assert_eq!(pairs[0].name, "MemFree", "{line}");
        }
        for line in ["-MemFree: 12 kB", "2.5 MemFree: 12 kB", "12 MemFree: 1 kB"] {
            assert!(parse(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_pair_is_read_in_any_notation() {
        for line in [
            "MemFree:         12 kB",
            "MemFree:12kB",
            "MemFree=12 kB",
            "MemFree : 12 KiB,",
            "| MemFree: | 12 kB |",
            "MemFree: 12288 bytes",
        ] {
            let expected = ("MemFree".to_owned(), "12288 B".to_owned(), true);
            assert_eq!(read(line), Some(vec![expected]), "{line}");
        }
        let plain = |name: &str, value: &str, colon| (name.to_owned(), value.to_owned(), colon);
        for (line, expected) in [
            ("pswpin 12", plain("pswpin", "12", false)),
            ("\"MemFree\": 349408,", plain("MemFree", "349408", true)),
            ("Active(anon): 3", plain("Active(anon)", "3", true)),
            ("MemFree: 16,268,680", plain("MemFree", "16268680", true)),
            ("MemFree: 16,268 MB", plain("MemFree", "17058234368 B", true)),
            ("MemFree: 15.5 GB", plain("MemFree", "16642998272 B", true)),
        ] {
            assert_eq!(read(line), Some(vec![expected]), "{line}");
        }
    }

    #[test]
    fn a_line_may_have_several_pairs() {
        let names = |line| read(line).map(|pairs| pairs.len());
        assert_eq!(names("MemTotal 16407076 MemFree 15582272"), Some(2));
        assert_eq!(names("MemTotal: 1 kB MemFree: 2 kB, Cached: 3 kB"), Some(3));
        assert_eq!(names("low 0 high 0 max 3 oom 1 oom_kill 1"), Some(5));
    }

    #[test]
    fn prose_and_tables_are_not_pairs() {
        for line in [
            "",
            "MemFree",
            "MemFree:",
            "MemFree: -5 kB",
            "we have 16 GB of RAM",
            "0 195928 107428 88500",
            "Mem:  80429  58906  579",
            "cpu  1 2 3 4",
            "2026-11-21 23:58:47",
            "procs -----------memory---------- 12",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
