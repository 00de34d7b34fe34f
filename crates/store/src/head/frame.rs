//! Frames: length, checksum, kind and payload, one after the other.
//!
//! `length` (u32, little-endian) counts the payload; `checksum` (u32, CRC-32) covers length, kind and payload. Payloads
//! that need no earlier frame begin with [`MARK`], so that a reader that lost the frames' boundaries finds the next
//! one.

/// The beginning of payloads that need no earlier frame. Its last byte is the format.
pub(super) const MARK: &[u8; 8] = b"memtide\x01";

/// Bytes before a payload.
pub(super) const HEADER: usize = 9;

/// The longest payload: 2,000 processes take a third of a MiB.
pub(super) const FRAME_BYTES_MAX: usize = 64 << 20;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum FrameKind {
    /// The names of entities and signals, in the order that samples use.
    Dictionary = 1,
    /// A sample that needs no earlier one.
    Key = 2,
    /// A sample as the difference to the previous one.
    Step = 3,
    Event = 4,
    /// A kernel file that could not be read.
    Absent = 5,
    /// Fields that the catalogue does not know.
    Unknown = 6,
    /// The writer ended cleanly.
    End = 8,
}

impl FrameKind {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        use FrameKind::*;
        [Dictionary, Key, Step, Event, Absent, Unknown, End]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// Begins a frame at the end of a buffer; after its payload is appended, [`end`] must be called with the returned
/// offset.
pub(super) fn begin(into: &mut Vec<u8>, kind: FrameKind) -> usize {
    let at = into.len();
    into.extend_from_slice(&[0; HEADER]);
    into[at + HEADER - 1] = kind as u8;
    at
}

/// Ends the frame that begins at `at`: all bytes after its header are its payload.
#[allow(clippy::cast_possible_truncation)] // The writer drops frames longer than FRAME_BYTES_MAX.
pub(super) fn end(into: &mut [u8], at: usize) {
    let length = (into.len() - at - HEADER) as u32;
    into[at..at + 4].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(&into[at..]);
    into[at + 4..at + 8].copy_from_slice(&sum.to_le_bytes());
}

fn checksum(frame: &[u8]) -> u32 {
    let mut sum = FrameChecksum::new(frame);
    sum.add(&frame[HEADER..]);
    sum.end()
}

/// The checksum of a frame, piece by piece.
#[derive(Debug)]
pub(super) struct FrameChecksum(crc32fast::Hasher);

impl FrameChecksum {
    /// Begins with a frame's header.
    pub(super) fn new(header: &[u8]) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header[..4]);
        hasher.update(&header[HEADER - 1..HEADER]);
        Self(hasher)
    }

    /// Adds bytes of the payload.
    pub(super) fn add(&mut self, payload: &[u8]) {
        self.0.update(payload);
    }

    pub(super) fn end(self) -> u32 {
        self.0.finalize()
    }
}
