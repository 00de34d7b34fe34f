//! Frames: length, checksum, kind and payload, one after the other; and how a reader resynchronises after damage.
//!
//! `length` (u32, little-endian) counts the payload; `checksum` (u32, CRC-32) covers length, kind and payload. Payloads
//! that need no earlier frame begin with [`MARK`], so that a reader that lost the frames' boundaries finds the next
//! one.

use memchr::memmem;

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
    /// An event.
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
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&frame[..4]);
    hasher.update(&frame[HEADER - 1..]);
    hasher.finalize()
}

/// The content at an offset of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FoundFrame<'a> {
    /// A complete frame: its kind as written, and its payload.
    Frame(u8, &'a [u8]),
    /// Bytes that are not a frame, followed by more frames.
    Damage { at: usize, len: usize },
    /// Bytes at the end that are not a complete frame.
    Tail { at: usize, len: usize },
}

/// Iterates over the frames of a file.
#[derive(Debug)]
pub(super) struct Frames<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes that may still be checksummed while searching for a frame: bounds the time for hostile files.
    budget: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            budget: bytes.len().saturating_mul(8),
        }
    }

    /// Returns the frame at an offset, if it is complete.
    fn frame(&mut self, at: usize) -> Option<(u8, &'a [u8])> {
        let end = self.end_of(at)?;
        let frame = &self.bytes[at..end];
        self.budget = self.budget.checked_sub(frame.len())?;
        let stored: [u8; 4] = frame[4..8].try_into().ok()?;
        (u32::from_le_bytes(stored) == checksum(frame))
            .then(|| (frame[HEADER - 1], &frame[HEADER..]))
    }

    /// Returns where the frame at an offset ends, if its length is plausible.
    fn end_of(&self, at: usize) -> Option<usize> {
        let length: [u8; 4] = self.bytes.get(at..at + 4)?.try_into().ok()?;
        let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
        let end = at.checked_add(HEADER)?.checked_add(length)?;
        (length <= FRAME_BYTES_MAX && end <= self.bytes.len()).then_some(end)
    }

    /// Returns where the next frame begins after a damaged one.
    fn after_damage(&mut self) -> Option<usize> {
        // If the length is intact, only this frame is lost.
        if let Some(end) = self.end_of(self.at)
            && self.frame(end).is_some()
        {
            return Some(end);
        }
        let mut from = self.at + 1;
        while let Some(found) = memmem::find(self.bytes.get(from..)?, MARK) {
            let mark = from + found;
            let start = mark.checked_sub(HEADER).filter(|start| *start > self.at);
            if let Some(start) = start
                && self.frame(start).is_some()
            {
                return Some(start);
            }
            from = mark + 1;
        }
        None
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = FoundFrame<'a>;

    fn next(&mut self) -> Option<FoundFrame<'a>> {
        let at = self.at;
        if at >= self.bytes.len() {
            return None;
        }
        if let Some((kind, payload)) = self.frame(at) {
            self.at += HEADER + payload.len();
            return Some(FoundFrame::Frame(kind, payload));
        }
        let len = |end: usize| end - at;
        Some(match self.after_damage() {
            Some(next) => {
                self.at = next;
                FoundFrame::Damage { at, len: len(next) }
            }
            None => {
                self.at = self.bytes.len();
                FoundFrame::Tail {
                    at,
                    len: len(self.at),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for payload in payloads {
            let at = begin(&mut bytes, FrameKind::Key);
            bytes.extend_from_slice(MARK);
            bytes.extend_from_slice(payload);
            end(&mut bytes, at);
        }
        bytes
    }

    fn whole(bytes: &[u8]) -> usize {
        let found = Frames::new(bytes);
        found
            .filter(|found| matches!(found, FoundFrame::Frame(..)))
            .count()
    }

    #[test]
    fn a_flipped_bit_costs_one_frame_wherever_it_is() {
        let bytes = file(&[b"one", b"two", b"three", b"four"]);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(whole(&flipped), 3, "bit {bit}");
        }
    }

    #[test]
    fn a_cut_costs_the_last_frame() {
        let bytes = file(&[b"one", b"two"]);
        for cut in 0..bytes.len() {
            let expected = usize::from(cut >= bytes.len() / 2);
            assert_eq!(whole(&bytes[..cut]), expected, "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_frames_damage_or_a_tail(bytes: Vec<u8>, noise: Vec<u8>) {
            let mut all = bytes.clone();
            all.extend(file(&[b"whole"]));
            all.extend(&noise);
            prop_assert!(whole(&all) >= 1);
            let covered: usize = Frames::new(&all).map(|found| match found {
                FoundFrame::Frame(_, payload) => HEADER + payload.len(),
                FoundFrame::Damage { len, .. } | FoundFrame::Tail { len, .. } => len,
            }).sum();
            prop_assert_eq!(covered, all.len());
        }
    }
}
