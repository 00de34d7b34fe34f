//! The frames of a file, one after the other; and how a reader resynchronises after damage.

use std::fs::File;
use std::io;

use super::frame::{FRAME_BYTES_MAX, FrameChecksum, HEADER, MARK};
use super::window::{FileWindow, WINDOW};

/// The content at an offset of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FoundFrame<'a> {
    /// A complete frame: its kind as written, and its payload.
    Frame(u8, &'a [u8]),
    /// Bytes that are not a frame, followed by more frames.
    Damage { at: u64, len: u64 },
    /// Bytes at the end that are not a complete frame.
    Tail { at: u64, len: u64 },
}

/// Iterates over the frames of a range of a file. It needs memory for one frame.
#[derive(Debug)]
pub(super) struct Frames<'f> {
    window: FileWindow<'f>,
    at: u64,
    /// Bytes that were checksummed, with those of frames that turned out to be none.
    checked: u64,
    /// Bytes that may be read and checksummed: bounds the time for hostile files.
    work_max: u64,
}

impl<'f> Frames<'f> {
    /// Begins at an offset of a file and goes on to an end.
    pub(super) fn new(file: &'f File, at: u64, end: u64) -> Self {
        Self {
            window: FileWindow::new(file, end),
            at,
            checked: 0,
            work_max: end.saturating_sub(at).saturating_mul(8) + (64 << 20),
        }
    }

    /// Returns what comes next; `None` at the end.
    pub(super) fn take_next(&mut self) -> io::Result<Option<FoundFrame<'_>>> {
        let (at, end) = (self.at, self.window.end());
        if at >= end {
            return Ok(None);
        }
        if let Some(len) = self.complete(at)? {
            self.at += len as u64;
            let frame = self.window.bytes(at, len)?;
            return Ok(Some(match frame {
                Some(frame) => FoundFrame::Frame(frame[HEADER - 1], &frame[HEADER..]),
                // Another program cut it between the check and now.
                None => FoundFrame::Damage { at, len: len as u64 },
            }));
        }
        let next = self.after_damage()?;
        self.at = next.unwrap_or(end);
        let len = self.at - at;
        Ok(Some(match next {
            Some(_) => FoundFrame::Damage { at, len },
            None => FoundFrame::Tail { at, len },
        }))
    }

    /// Returns the length of the frame at an offset, if it is complete.
    fn complete(&mut self, at: u64) -> io::Result<Option<usize>> {
        let Some(len) = self.length(at)? else {
            return Ok(None);
        };
        self.checked += len as u64;
        if self.is_too_much_work() {
            return Ok(None);
        }
        Ok(self.is_sound(at, len)?.then_some(len))
    }

    fn is_too_much_work(&self) -> bool {
        self.checked.saturating_add(self.window.read) > self.work_max
    }

    /// Returns the length of the frame at an offset, with its header, if it is plausible.
    fn length(&mut self, at: u64) -> io::Result<Option<usize>> {
        let end = self.window.end();
        let Some(&[a, b, c, d, ..]) = self.window.bytes(at, HEADER)? else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Ok(None);
        }
        let len = HEADER + length;
        Ok((at + len as u64 <= end).then_some(len))
    }

    /// Whether the checksum of the frame at an offset is right. Checked piece by piece: what merely claims to be long
    /// takes no memory.
    fn is_sound(&mut self, at: u64, len: usize) -> io::Result<bool> {
        let Some(first) = self.window.bytes(at, len.min(WINDOW))? else {
            return Ok(false);
        };
        let &[_, _, _, _, a, b, c, d, ..] = first else {
            return Ok(false);
        };
        let mut sum = FrameChecksum::new(first);
        sum.add(&first[HEADER..]);
        let mut done = first.len();
        while done < len {
            let piece = (len - done).min(WINDOW);
            let Some(bytes) = self.window.bytes(at + done as u64, piece)? else {
                return Ok(false);
            };
            sum.add(bytes);
            done += piece;
        }
        Ok(sum.end() == u32::from_le_bytes([a, b, c, d]))
    }

    /// Returns where the next frame begins after a damaged one.
    fn after_damage(&mut self) -> io::Result<Option<u64>> {
        // If the length is intact, only this frame is lost.
        if let Some(len) = self.length(self.at)? {
            let end = self.at + len as u64;
            if self.complete(end)?.is_some() {
                return Ok(Some(end));
            }
        }
        let mut from = self.at + 1;
        while !self.is_too_much_work() {
            let Some(mark) = self.window.find(MARK, from)? else {
                break;
            };
            let start = mark.checked_sub(HEADER as u64);
            if let Some(start) = start.filter(|start| *start > self.at)
                && self.complete(start)?.is_some()
            {
                return Ok(Some(start));
            }
            from = mark + 1;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{FrameKind, begin, end};
    use super::super::tests::file_with;
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::FileExt;

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

    /// Returns the sizes of complete frames, and of what lies between and after them.
    fn sizes(bytes: &[u8]) -> (Vec<usize>, Vec<u64>) {
        let (mut complete, mut others) = (Vec::new(), Vec::new());
        let file = file_with(bytes);
        let mut frames = Frames::new(&file, 0, bytes.len() as u64);
        while let Some(found) = frames.take_next().unwrap() {
            match found {
                FoundFrame::Frame(_, payload) => complete.push(HEADER + payload.len()),
                FoundFrame::Damage { len, .. } | FoundFrame::Tail { len, .. } => others.push(len),
            }
        }
        (complete, others)
    }

    fn whole(bytes: &[u8]) -> usize {
        sizes(bytes).0.len()
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
            let (complete, others) = sizes(&all);
            let covered = complete.iter().sum::<usize>() as u64 + others.iter().sum::<u64>();
            prop_assert_eq!(covered, all.len() as u64);
        }
    }

    #[test]
    fn a_frame_longer_than_the_window_is_found_before_and_after_damage() {
        let long = vec![7; 3 * WINDOW];
        let bytes = file(&[b"one", &long, b"three", &long, b"five"]);
        assert_eq!(sizes(&bytes).0.len(), 5);
        for at in [0, HEADER + 2, 100, WINDOW, 4 * WINDOW] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let (complete, others) = sizes(&damaged);
            assert_eq!((complete.len(), others.len()), (4, 1), "byte {at}");
        }
    }

    #[test]
    fn a_hole_is_skipped_and_what_stands_after_it_is_found() {
        let before = file(&[b"one", b"two"]);
        let after = file(&[b"three"]);
        let hole = 3 << 30;
        let whole = file_with(&before);
        whole.write_all_at(&after, hole).unwrap();
        let end = hole + after.len() as u64;
        let mut frames = Frames::new(&whole, 0, end);
        let mut found = Vec::new();
        while let Some(frame) = frames.take_next().unwrap() {
            found.push(matches!(frame, FoundFrame::Frame(..)));
        }
        assert_eq!(found, [true, true, false, true]);
        assert!(frames.window.read < 4 << 20, "{}", frames.window.read);
    }

    #[test]
    fn marks_that_begin_no_frame_cost_a_bounded_number_of_reads() {
        // Each claims nearly all that follows it, and the checksum of none is right.
        let len: u32 = 8 << 20;
        let unit = [&len.to_le_bytes()[..], &[0; 4], &[2], MARK].concat();
        let bytes = unit.repeat((1 << 20) / unit.len());
        let mut all = bytes.clone();
        all.resize(16 << 20, 1);
        let file = file_with(&all);
        let mut frames = Frames::new(&file, 0, all.len() as u64);
        assert!(matches!(frames.take_next().unwrap(), Some(FoundFrame::Tail { at: 0, .. })));
        assert!(frames.window.read < 12 * all.len() as u64 + (128 << 20));
    }
}
