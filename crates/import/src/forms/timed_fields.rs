//! Fields of `/proc/meminfo` behind the time, a line for each reading, as small loops print them: `Wed Jul 10 14:36:31 EEST
//! 2019 | MemFree: 2040032 kB MemAvailable: 2288928 kB`. Also the resident memory of a process ([`resident`]).

mod resident;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::line_scan::BlockStart;
use crate::text::times::{PrintedTime, SampleTimes};

pub(super) const FORM: Form = Form {
    name: "timed fields",
    begins: BlockStart::with(&[
        "MemFree",
        "MemAvailable",
        "RSS",
        "rss",
        "Rss",
        "esident set size",
        "esident memory",
        "mem:",
        "mem=",
        "Mem:",
        "Mem=",
        "MEM:",
        "MEM=",
        "emory:",
        "emory=",
        "MEMORY:",
        "mem usage",
        "Mem usage",
        "emory usage",
        "emory used",
        "emory Usage",
        "EMORY USAGE",
        "EMORY USED",
        "MEM USAGE",
    ]),
    read,
};

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let mut series = SampleTimes::new(None);
    let mut lines = 0;
    for line in input.lines {
        let Some((time, fields)) = row(line) else {
            break;
        };
        let Some((when, _)) = series.next(Some(time)) else {
            break;
        };
        let mut snapshot = Snapshot { when, ..Snapshot::default() };
        let read = input.parsers.read(
            "/proc/meminfo",
            fields.as_bytes(),
            &mut snapshot.sample,
            input.facts,
        );
        if read.is_err() || !snapshot.has_readings() {
            break;
        }
        input.add(snapshot);
        lines += 1;
    }
    if lines == 0 {
        return resident::read(input);
    }
    Some(TextBlock {
        what: "fields of /proc/meminfo, a line for each time".to_owned(),
        lines,
        unit: "KiB",
        ..TextBlock::default()
    })
}

/// The time of a row, and its fields as the kernel's lines: `MemFree: 2040032 kB`.
fn row(line: &str) -> Option<(PrintedTime, String)> {
    let (time, rest) = PrintedTime::leading(line)?;
    let mut words = rest
        .split(|c: char| c.is_whitespace() || "|,;".contains(c))
        .filter(|word| !word.is_empty());
    let mut fields = String::new();
    while let Some(name) = words.next() {
        let name = name.strip_suffix(':').filter(|name| name.starts_with(char::is_uppercase))?;
        let number: u64 = words.next()?.parse().ok()?;
        (words.next()? == "kB").then_some(())?;
        fields.push_str(&format!("{name}: {number} kB\n"));
    }
    (!fields.is_empty()).then_some((time, fields))
}

#[cfg(test)]
mod tests {
    use crate::testing::paste;
    use timeline::signals::MEM_AVAILABLE;
    use units::{Bytes, Span};

    #[test]
    fn each_line_is_a_reading_at_its_time() {
        let text = "Wed Jul 10 14:36:31 EEST 2019 | MemFree: 2040032 kB MemAvailable: 2288928 kB\nWed Jul 10 14:36:33 EEST 2019 | MemFree: 2016132 kB MemAvailable: 2265284 kB\n";
        let timeline = paste(text).timeline;
        assert_eq!((timeline.len(), timeline.duration()), (2, Span::from_secs(2)));
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_kib(2_265_284)));
    }
}
