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

/// UTF-16 has zero bytes, and a byte order mark. Other files with zero bytes are not text.
fn is_text(start: &[u8]) -> bool {
    start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) || !start.contains(&0)
}

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
            " (a PCP archive: pmrep -a ARCHIVE -o csv mem.physmem mem.util swap > x.csv makes text of it)"
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
    let inside = if packing == Packing::None {
        ""
    } else {
        " inside the compression"
    };
    if shown.contains('\u{fffd}') || shown.is_empty() {
        let bytes: Vec<String> = start.iter().take(4).map(|b| format!("{b:02x}")).collect();
        format!("the bytes {}{guess}{inside}", bytes.join(" "))
    } else {
        format!("`{shown}`{guess}{inside}")
    }
}
