//! The writer's state of unknown fields: the last value of each.

use timeline::UnknownFields;

use super::bytes::{put, put_text};
use super::frame::{self, FrameKind};

#[derive(Debug)]
struct Field {
    file: &'static str,
    field: String,
    value: u64,
    written: Option<u64>,
}

/// The fields seen so far, in the order of their first appearance.
#[derive(Debug, Default)]
pub(super) struct UnknownFieldCache(Vec<Field>);

impl UnknownFieldCache {
    /// The same limit as a timeline has.
    const FIELDS_MAX: usize = 4096;

    pub(super) fn take(&mut self, fields: &UnknownFields) {
        let mut at = 0;
        for found in fields.iter() {
            let is_it = |known: &Field| known.file == found.file && known.field == found.field;
            // Fields come in the same order each time, so the search usually ends at once.
            let later = self.0.iter().skip(at).position(is_it).map(|skip| at + skip);
            match later.or_else(|| self.0.iter().position(is_it)) {
                Some(place) => {
                    self.0[place].value = found.value;
                    at = place + 1;
                }
                None if self.0.len() < Self::FIELDS_MAX => self.0.push(Field {
                    file: found.file,
                    field: found.field.clone(),
                    value: found.value,
                    written: None,
                }),
                None => {}
            }
        }
    }

    pub(super) fn forget_written(&mut self) {
        self.0.iter_mut().for_each(|field| field.written = None);
    }

    /// Appends fields that are new or have changed.
    pub(super) fn put(&mut self, into: &mut Vec<u8>) {
        let is_new = |field: &&mut Field| field.written != Some(field.value);
        let mut fields = self.0.iter_mut().filter(is_new).peekable();
        if fields.peek().is_none() {
            return;
        }
        let at = frame::begin(into, FrameKind::Unknown);
        for field in fields {
            put_text(into, field.file.as_bytes());
            put_text(into, field.field.as_bytes());
            put(into, field.value);
            field.written = Some(field.value);
        }
        frame::end(into, at);
    }
}
