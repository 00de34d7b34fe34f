//! Log records that are more than a line of text: JSON of the journal, of containers and of log services, the journal's
//! export format, messages with escaped line ends, several messages on one line. Each message becomes a line.

use std::sync::LazyLock;

use jiff::Timestamp;
use memchr::memmem::Finder;
use serde_json::Value;

use super::kernel_words;
use super::times::PrintedTime;

/// What a line carries.
#[derive(Debug)]
pub(super) enum Carried {
    Line,
    /// These messages; none if it is a field that is not shown.
    Messages(Vec<String>),
}

/// Reads records, line by line.
#[derive(Debug, Default)]
pub(super) struct RecordReader {
    /// The time of the record of the export format that is open.
    export: Option<String>,
}

/// At most 4 MiB of a line: a report of 20,000 tasks in one text.
const LINE_MAX: usize = 4 << 20;
/// The names of the field with the message.
const MESSAGES: [&str; 9] =
    ["MESSAGE", "message", "msg", "log", "textPayload", "_raw", "line", "Line", "_msg"];
/// The names of the field with the time.
const TIMES: [&str; 10] = [
    "__REALTIME_TIMESTAMP",
    "_SOURCE_REALTIME_TIMESTAMP",
    "timestamp",
    "@timestamp",
    "time",
    "ts",
    "_time",
    "eventTime",
    "lastTimestamp",
    "receiveTimestamp",
];

impl RecordReader {
    /// Unpacks a line.
    pub(super) fn read(&mut self, line: &str) -> Carried {
        if line.len() > LINE_MAX {
            return Carried::Line;
        }
        let start = line.trim_start();
        if start.starts_with('{') || start.starts_with('[') || start.starts_with("data: {") {
            if let Some(messages) = json(start) {
                return Carried::Messages(messages);
            }
        } else if let Some(carried) = self.export(start) {
            return carried;
        }
        if !may_carry(line) {
            return Carried::Line;
        }
        if let Some(parts) = escaped(line).or_else(|| literals(line)) {
            return Carried::Messages(parts.iter().flat_map(|part| glued(part)).collect());
        }
        let parts = glued(line);
        if parts.len() < 2 { Carried::Line } else { Carried::Messages(parts) }
    }

    /// Reads a line of `journalctl -o export` and `-o verbose`: of a record only its message is shown.
    fn export(&mut self, line: &str) -> Option<Carried> {
        let nothing = || Some(Carried::Messages(Vec::new()));
        if line.starts_with("__CURSOR=") {
            self.export = Some(String::new());
            return nothing();
        }
        if line.ends_with(']') && line.contains(" [s=") && line.contains(";i=") {
            let time = PrintedTime::leading(line).and_then(|(time, _)| time.wall());
            self.export = Some(time.map_or_else(String::new, |wall| prefix_at(wall.unix_nanos())));
            return nothing();
        }
        let time = self.export.as_mut()?;
        if let Some(message) = line.strip_prefix("MESSAGE=") {
            return Some(Carried::Messages(vec![format!("{time}{message}")]));
        }
        if let Some(micros) = line.strip_prefix("__REALTIME_TIMESTAMP=") {
            *time = micros.parse().map_or_else(
                |_| String::new(),
                |micros: i64| prefix_at(micros.saturating_mul(1000)),
            );
            return nothing();
        }
        let is_field = line.split_once('=').is_some_and(|(name, _)| {
            let is_char = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
            !name.is_empty() && name.bytes().all(is_char)
        });
        if line.is_empty() || is_field {
            return nothing();
        }
        self.export = None;
        None
    }
}

/// A prefix with a time, as the journal prints it with `-o short-iso`.
fn prefix_at(unix_nanos: i64) -> String {
    Timestamp::from_nanosecond(i128::from(unix_nanos))
        .map_or_else(|_| String::new(), |time| format!("{time} host kernel: "))
}

/// The messages in a line of JSON, each with its time. `None` if it is not JSON, or has no message.
fn json(line: &str) -> Option<Vec<String>> {
    let line = line.strip_prefix("data: ").unwrap_or(line).trim_end();
    let line = line.strip_suffix(',').unwrap_or(line);
    line.ends_with(['}', ']']).then_some(())?;
    let value: Value = serde_json::from_str(line).ok()?;
    let mut messages = Vec::new();
    collect(&value, "", &mut messages);
    (!messages.is_empty()).then_some(messages)
}

/// Collects the messages of a value; `time` is that of the record around it.
fn collect(value: &Value, time: &str, messages: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let own = TIMES.iter().find_map(|name| time_of(fields.get(*name)?));
            let time = own.as_deref().unwrap_or(time);
            let known = messages.len();
            for name in MESSAGES {
                if let Some(text) = fields.get(name).and_then(text_of) {
                    push_lines(&text, time, messages);
                    break;
                }
            }
            if messages.len() == known {
                let inner = fields.values().filter(|v| v.is_object() || v.is_array());
                inner.for_each(|value| collect(value, time, messages));
            }
        }
        Value::Array(values) => {
            // `["1795305527000000000", "message"]` of Loki.
            if let [stamp, Value::String(text)] = values.as_slice()
                && let Some(time) = time_of(stamp)
            {
                push_lines(text, &time, messages);
                return;
            }
            for value in values {
                match value {
                    Value::String(text) if !kernel_words::starts(text).is_empty() => {
                        push_lines(text, time, messages);
                    }
                    value => collect(value, time, messages),
                }
            }
        }
        _ => {}
    }
}

/// A text, or the bytes of one: the journal writes those of other encodings as numbers.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(bytes) if !bytes.is_empty() => {
            let byte = |value: &Value| u8::try_from(value.as_u64()?).ok();
            let bytes: Vec<u8> = bytes.iter().map(byte).collect::<Option<_>>()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => None,
    }
}

/// The prefix of a time: text, or seconds, milliseconds, microseconds or nanoseconds since 1970.
fn time_of(value: &Value) -> Option<String> {
    let since_1970 = |text: &str| {
        let (digits, fraction) = text.split_once('.').unwrap_or((text, ""));
        let number: i64 = digits.parse().ok()?;
        let scale = match digits.len() {
            10 => 1_000_000_000,
            13 => 1_000_000,
            16 => 1_000,
            19 => 1,
            _ => return None,
        };
        let part: f64 = format!("0.{fraction}0").parse().ok()?;
        #[allow(clippy::cast_possible_truncation)] // less than a second
        let rest = (part * 1e9) as i64 * i64::from(digits.len() == 10);
        Some(prefix_at(number.checked_mul(scale)?.checked_add(rest)?))
    };
    match value {
        Value::Number(number) => since_1970(&number.to_string()),
        Value::String(text) => since_1970(text).or_else(|| {
            let wall = PrintedTime::leading(text)?.0.wall()?;
            Some(prefix_at(wall.unix_nanos()))
        }),
        _ => None,
    }
}

fn push_lines(text: &str, time: &str, messages: &mut Vec<String>) {
    for line in text.trim_end().lines() {
        if may_carry(line) {
            messages.extend(glued(line).into_iter().map(|line| format!("{time}{line}")));
        } else {
            messages.push(format!("{time}{line}"));
        }
    }
}

/// Whether a line may carry more than one message.
fn may_carry(line: &str) -> bool {
    static WORDS: LazyLock<[Finder<'static>; 4]> =
        LazyLock::new(|| ["kB", "oom", "pages", "rocess"].map(Finder::new));
    let has = |word: &Finder<'_>| word.find(line.as_bytes()).is_some();
    line.len() > 80 && WORDS.iter().any(has)
}

/// The lines of a text with its line ends written as `\n` or `<br>`, and without its other escapes.
fn escaped(line: &str) -> Option<Vec<String>> {
    let ends = ["\\r\\n", "\\n", "<br>", "<br/>", "<br />"];
    if !ends[1..].iter().any(|end| line.contains(end)) || kernel_words::starts(line).is_empty() {
        return None;
    }
    let mut text = line.to_owned();
    for (escape, plain) in ends.map(|end| (end, "\n")).into_iter().chain([
        ("\\t", " "),
        ("\\\"", "\""),
        ("\\u003c", "<"),
        ("\\u003e", ">"),
    ]) {
        text = text.replace(escape, plain);
    }
    // The mark behind the last line end is no line.
    let is_text = |line: &&str| line.contains(|c: char| c.is_alphanumeric());
    Some(text.lines().filter(is_text).map(str::to_owned).collect())
}

/// The quoted texts of a line, if at least two of them have a message of the kernel: `["…", "…"]`.
fn literals(line: &str) -> Option<Vec<String>> {
    let starts = kernel_words::starts(line);
    if starts.len() < 2 || line.matches('"').count() < 4 {
        return None;
    }
    let literals: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    let is_kernel = |text: &&&str| !kernel_words::starts(text).is_empty();
    (literals.iter().filter(is_kernel).count() > 1)
        .then(|| literals.into_iter().map(str::to_owned).collect())
}

/// The messages of a line in which line ends were lost: each begins with its stamp, or with words that only begin one.
fn glued(line: &str) -> Vec<String> {
    let mut cuts = stamps(line);
    if cuts.len() < 2 {
        cuts = kernel_words::starts(line);
        // Two messages on a line may be one sentence about both.
        if cuts.len() < 3 {
            return vec![line.to_owned()];
        }
    }
    cuts.push(line.len());
    if cuts.first() != Some(&0) {
        cuts.insert(0, 0);
    }
    let parts = cuts.windows(2).filter_map(|cut| line.get(cut[0]..cut[1]));
    parts.map(|part| part.trim().to_owned()).collect()
}

/// Where the stamps of a kernel log begin in a line, with what stands before them: `Nov 21 23:58:47 host kernel: `,
/// `[12345.678901] `, `<4>`.
fn stamps(line: &str) -> Vec<usize> {
    let mut found: Vec<usize> =
        line.match_indices("kernel: ").map(|(at, _)| date_before(line, at).unwrap_or(at)).collect();
    for (at, _) in line.match_indices('[') {
        let rest = line.get(at + 1..).unwrap_or_default();
        let end = rest.bytes().take(20).position(|b| b == b']');
        let is_stamp = end.and_then(|end| rest.get(..end)).is_some_and(|inner| {
            let (whole, part) = inner.trim_start().split_once('.').unwrap_or_default();
            let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
            !whole.is_empty() && part.len() == 6 && digits(whole) && digits(part)
        });
        let before = line.get(..at).unwrap_or_default();
        if is_stamp && !before.ends_with("kernel: ") {
            let level = before.strip_suffix('>').and_then(|rest| rest.rfind('<'));
            found.push(level.filter(|level| at - level <= 4).unwrap_or(at));
        }
    }
    found.sort_unstable();
    found
}

/// Where the date of a prefix begins that ends at `end`.
fn date_before(line: &str, end: usize) -> Option<usize> {
    const PREFIX_LEN_MAX: usize = 100;
    (end.saturating_sub(PREFIX_LEN_MAX)..end).rev().find(|at| {
        let Some(rest) = line.get(*at..end) else {
            return false;
        };
        let is_start = rest.starts_with(|c: char| c.is_ascii_uppercase())
            || (rest.get(4..5) == Some("-") && rest.starts_with(|c: char| c.is_ascii_digit()));
        is_start && rest.contains(':') && PrintedTime::leading(rest).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(line: &str) -> Vec<String> {
        match RecordReader::default().read(line) {
            Carried::Line => vec![line.to_owned()],
            Carried::Messages(messages) => messages,
        }
    }

    #[test]
    fn messages_are_read_from_json() {
        let message = "2026-11-21T23:58:47Z host kernel: Mem-Info:";
        for line in [
            r#"{"log":"Mem-Info:\n","stream":"stdout","time":"2026-11-21T23:58:47Z"}"#,
            r#"{"MESSAGE":"Mem-Info:","__REALTIME_TIMESTAMP":"1795305527000000","_TRANSPORT":"kernel"}"#,
            r#"{"MESSAGE":[77,101,109,45,73,110,102,111,58],"__REALTIME_TIMESTAMP":"1795305527000000"}"#,
            r#"{"jsonPayload":{"message":"Mem-Info:"},"timestamp":"2026-11-21T23:58:47Z"}"#,
            r#"{"textPayload":"Mem-Info:","timestamp":"2026-11-21T23:58:47Z"}"#,
            r#"{"streams":[{"stream":{"a":"b"},"values":[["1795305527000000000","Mem-Info:"]]}]}"#,
        ] {
            assert_eq!(carried(line), [message], "{line}");
        }
        for line in [r#"{"a": 1}"#, "{", "[1, 2]", "[  12.5] Mem-Info:", "[ 12]  0  12"] {
            assert_eq!(carried(line), [line]);
        }
    }

    #[test]
    fn records_of_the_export_format_are_one_line() {
        let mut reader = RecordReader::default();
        let mut shown = Vec::new();
        for line in "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1795305527000000\nPRIORITY=6\nMESSAGE=Mem-Info:\n\nprose".lines() {
            match reader.read(line) {
                Carried::Line => shown.push(line.to_owned()),
                Carried::Messages(messages) => shown.extend(messages),
            }
        }
        assert_eq!(shown, ["2026-11-21T23:58:47Z host kernel: Mem-Info:", "prose"]);
    }

    #[test]
    fn glued_messages_are_split() {
        let one = "Oct 15 08:52:40 host kernel: memory: usage 4kB, limit 4kB, failcnt 8";
        assert_eq!(carried(&format!("{one}{one}")), [one, one]);
        let stamped = "[13461.623846] memory: usage 53824kB, limit 102400kB, failcnt 20427";
        assert_eq!(carried(&format!("{stamped}{stamped}")), [stamped, stamped]);
        let bare = "active_anon:1 inactive_anon:2 Node 0 DMA free:1kB min:2kB lowmem_reserve[]: 0 \
                    0 5 pages reserved";
        assert_eq!(carried(bare).len(), 4);
        let prose = "it wrote Out of memory: Killed process 12 (a) total-vm:1kB, and not Mem-Info: \
                     as I had expected it to";
        assert_eq!(carried(prose), [prose]);
    }

    #[test]
    fn escaped_line_ends_end_lines() {
        let line = r#"  "text": "[1.0] Mem-Info:\n[1.0] active_anon:1 inactive_anon:2 isolated_anon:0\n[1.0] 5 pages RAM","#;
        assert_eq!(carried(line).len(), 3);
        let path = r"C:\new\process names and pages that have no message of a kernel in it, at all, anywhere";
        assert_eq!(carried(path), [path]);
    }
}
