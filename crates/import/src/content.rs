//! Recognises the content of a file by its first bytes.

use std::io::{BufRead, Cursor};

use crate::decompress::Packing;
use crate::{capture, process_table, sar};

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileContent {
    Capture,
    Tar,
    Sar(sar::SarFormat),
    ProcessTable,
    Text,
    Other,
}

impl FileContent {
    /// Recognises it by the first bytes, unpacked.
    pub(crate) fn recognise(start: &[u8]) -> Self {
        if capture::looks_like(start) {
            Self::Capture
        } else if start.get(257..262) == Some(b"ustar") {
            Self::Tar
        } else if let Some(format) = sar::SarFormat::recognise(start) {
            Self::Sar(format)
        } else if process_table::looks_like(start) {
            Self::ProcessTable
        } else if is_text(start) {
            Self::Text
        } else {
            Self::Other
        }
    }
}

/// UTF-16 has zero bytes, and a byte order mark. A log has runs of them where the host crashed or was rotated, between
/// lines of text.
fn is_text(start: &[u8]) -> bool {
    let is_wide = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
    is_wide || !start.contains(&0) || begins_with_a_line(start)
}

/// Whether a line of text stands first, behind zero bytes at most.
fn begins_with_a_line(start: &[u8]) -> bool {
    let first = start.iter().position(|byte| *byte != 0);
    let rest = first.and_then(|first| start.get(first..)).unwrap_or_default();
    let line = memchr::memchr(b'\n', rest).and_then(|end| str::from_utf8(&rest[..end]).ok());
    let is_control = |c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\u{1b}');
    line.is_some_and(|line| line.len() >= LINE_LEN_MIN && !line.contains(is_control))
}

/// A shorter line may be the beginning of anything.
const LINE_LEN_MIN: usize = 20;

/// The first bytes of a file that was not recognised, and what it probably is.
pub(crate) fn describe(start: &[u8], packing: Packing) -> String {
    let guess = match start {
        [0xff, 0xd8, 0xff, ..] => " (a JPEG picture)",
        [0x89, b'P', b'N', b'G', ..] => " (a PNG picture)",
        [0x7f, b'E', b'L', b'F', ..] => " (a program)",
        [b'P', b'K', 3, 4, ..] => " (a zip archive)",
        [b'%', b'P', b'D', b'F', ..] => " (a PDF)",
        [b'P', b'A', b'R', b'1', ..] => " (Parquet)",
        [b'B', b'Z', b'h', ..] => " (bzip2: unpack it first)",
        // The magic number of its header, in either byte order.
        [0xef, 0xbe, 0xed, 0xfe, ..] | [0xfe, 0xed, 0xbe, 0xef, ..] => {
            " (a raw file of atop: atop -r FILE -P MEM,SWP,PAG > x.txt makes text of it)"
        }
        // The label of a log volume: its length, and PM_LOG_MAGIC with the version.
        [_, _, _, _, 0x50, 0x05, 0x26, 1..=3, ..] => {
            " (a PCP archive: pmrep -a ARCHIVE -o csv mem.physmem mem.util swap > x.csv makes text \
             of it)"
        }
        _ => "",
    };
    let mut line = Vec::new();
    let _ = Cursor::new(start).read_until(b'\n', &mut line);
    let shown: String = String::from_utf8_lossy(&line[..line.len().min(60)])
        .chars()
        .filter(|c| !c.is_control())
        .take(30)
        .collect();
    let inside = if packing == Packing::None { "" } else { " inside the compression" };
    if shown.contains('\u{fffd}') || shown.is_empty() {
        let bytes: Vec<String> = start.iter().take(4).map(|b| format!("{b:02x}")).collect();
        format!("the bytes {}{guess}{inside}", bytes.join(" "))
    } else {
        format!("`{shown}`{guess}{inside}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_with_zero_bytes_is_text_and_a_binary_file_is_not() {
        let line = b"Nov 21 23:58:47 db1 sshd[1]: Accepted key\n";
        let is_text =
            |parts: &[&[u8]]| FileContent::recognise(&parts.concat()) == FileContent::Text;
        assert!(is_text(&[line, &[0; 4096], line]));
        assert!(is_text(&[&[0; 4096], line]));
        assert!(!is_text(&[&[0; 4096]]));
        assert!(!is_text(&[b"SQLite format 3\0", line]));
        assert!(!is_text(&[b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", line]));
        assert!(!is_text(&[&[0x7f], b"ELF\x02\x01\x01\0\0", line]));
    }
}
