//! Tables as a reader rebuilds them: the last readings of each entity, and the runs that they form.

use std::collections::HashMap;

use timeline::{Entity, Run, SignalId, Timeline};

use super::bytes::{ByteReader, ones};
use super::dictionary::DictionaryColumns;
use super::table::{ALL_DECLARED, NOT_READ, Operation, PARTIAL};

/// The readings of an entity.
#[derive(Debug, Default)]
struct EntityReadings {
    /// Whether it was present in a requested sample.
    is_wanted: bool,
    /// The section in which it was last declared.
    declared: u64,
    /// The sample of the timeline in which it was last read while others were not.
    read: Option<usize>,
    /// Whether its readings may have changed since its runs were last settled: all must be compared.
    is_behind: bool,
    key: String,
    label: String,
    group: String,
    values: Vec<u64>,
    present: Vec<u64>,
    /// Open runs: which columns have one, since which sample, and the value.
    open: Vec<u64>,
    since: Vec<usize>,
    current: Vec<u64>,
    /// Closed runs, in order for each column.
    runs: Vec<(u16, Run)>,
}

impl EntityReadings {
    fn sized(width: usize) -> Self {
        let words = width.div_ceil(64);
        Self {
            values: vec![0; width],
            present: vec![0; words],
            open: vec![0; words],
            since: vec![0; width],
            current: vec![0; width],
            ..Self::default()
        }
    }

    /// Reads which readings changed, and their values.
    fn changes(
        &mut self,
        input: &mut ByteReader<'_>,
        with_presence: bool,
        at: Option<At>,
    ) -> Option<()> {
        let words = self.present.len();
        let mut touched = [0; HeadTableDecoder::WORDS_MAX];
        if with_presence {
            for (word, touched) in touched.iter_mut().enumerate().take(words) {
                *touched = input.bits()?;
                self.present[word] ^= *touched;
            }
        }
        for (word, touched) in touched.iter_mut().enumerate().take(words) {
            let changed = input.bits()?;
            for bit in ones(changed) {
                let value = self.values.get_mut(word * 64 + bit)?;
                *value = input.step(*value)?;
            }
            *touched |= changed;
            if let Some(at) = at {
                self.settle(word, *touched, at);
            }
        }
        Some(())
    }

    /// Closes and opens runs of columns that may have changed.
    fn settle(&mut self, word: usize, touched: u64, at: At) {
        for bit in ones(touched) {
            let column = word * 64 + bit;
            let is_open = self.open[word] >> bit & 1 == 1;
            let is_present = self.present[word] >> bit & 1 == 1;
            let Some(value) = self.values.get(column).copied() else {
                return;
            };
            if is_open && is_present && self.current[column] == value {
                continue;
            }
            if is_open {
                self.finish(column, at.before);
                self.open[word] &= !(1 << bit);
            }
            if is_present {
                self.open[word] |= 1 << bit;
                self.since[column] = at.index;
                self.current[column] = value;
            }
        }
    }

    fn settle_all(&mut self, at: At) {
        self.is_wanted = true;
        self.is_behind = false;
        for word in 0..self.present.len() {
            self.settle(word, self.present[word] | self.open[word], at);
        }
    }

    /// Closes the runs of readings that changed, unread, until `last`; they open again when it is read.
    fn finish_changed(&mut self, last: Option<usize>) {
        self.is_behind = true;
        for word in 0..self.open.len() {
            for bit in ones(self.open[word]) {
                let column = word * 64 + bit;
                let is_present = self.present[word] >> bit & 1 == 1;
                if !is_present || self.values[column] != self.current[column] {
                    self.open[word] &= !(1 << bit);
                    self.finish(column, last);
                }
            }
        }
    }

    /// Closes a run at the last sample in which it was read; drops it if it began after that.
    #[allow(clippy::cast_possible_truncation)] // Dictionaries have at most 4,096 columns.
    fn finish(&mut self, column: usize, last: Option<usize>) {
        let first = self.since[column];
        if let Some(last) = last.filter(|last| *last >= first) {
            let value = self.current[column];
            self.runs.push((column as u16, Run::new(first, last, value)));
        }
    }

    fn finish_all(&mut self, last: Option<usize>) {
        for word in 0..self.open.len() {
            for bit in ones(std::mem::take(&mut self.open[word])) {
                self.finish(word * 64 + bit, last);
            }
        }
    }
}

/// A sample of the timeline, and the previous one in which the same table was read; of an entity, in which it was.
#[derive(Debug, Clone, Copy)]
struct At {
    index: usize,
    before: Option<usize>,
}

impl At {
    /// The same sample for an entity that may have been read, alone, since the whole table was.
    fn of(self, series: &EntityReadings) -> Self {
        let before = self.before.max(series.read.filter(|at| *at < self.index));
        Self { before, ..self }
    }
}

/// Decodes the table of one kind of entity.
#[derive(Debug)]
pub(super) struct HeadTableDecoder {
    entity: Option<Entity>,
    signals: Vec<Option<SignalId>>,
    /// Boxed, so that unused slots take little memory.
    slots: Vec<Option<Box<EntityReadings>>>,
    /// Number of declarations so far.
    declared: usize,
    by_key: HashMap<String, usize>,
    /// Whether all entities were declared in this block.
    is_known: bool,
    sections: u64,
    /// The sample of the timeline in which it was last read whole, and the one before the current section in which it
    /// was.
    last: Option<usize>,
    before: Option<usize>,
    /// Whether samples were skipped: no run is open, and all readings must be compared.
    is_behind: bool,
    /// Whether some entities have readings that were not compared.
    has_behind: bool,
}

impl HeadTableDecoder {
    const WORDS_MAX: usize = 64;
    /// As many slots as Linux has PIDs.
    const SLOTS_MAX: u64 = 1 << 22;
    /// This many slots may be empty, as on a host that now has far fewer processes than before.
    const FREE_SLOTS: usize = 1 << 18;
    /// This many more may be empty per declaration: 512 bytes for about ten bytes of the file.
    const SLOTS_EACH: usize = 64;

    pub(super) fn new(columns: &DictionaryColumns) -> Self {
        Self {
            entity: columns.entity,
            signals: columns.signals.clone(),
            slots: Vec::new(),
            declared: 0,
            by_key: HashMap::new(),
            is_known: false,
            sections: 0,
            last: None,
            before: None,
            is_behind: false,
            has_behind: false,
        }
    }

    /// Begins a block; its next section declares all entities.
    pub(super) fn begin_block(&mut self) {
        self.is_known = false;
    }

    /// Reads a section into sample `index` of the timeline, `None` if it is not requested. Returns `None` for malformed
    /// bytes.
    pub(super) fn section(
        &mut self,
        first: u8,
        input: &mut ByteReader<'_>,
        index: Option<usize>,
        into: &mut Timeline,
    ) -> Option<()> {
        let all_declared = first & ALL_DECLARED != 0;
        if !all_declared && !self.is_known {
            return None;
        }
        self.is_known = true;
        self.sections += 1;
        let is_partial = first & PARTIAL != 0;
        let at = index.map(|index| self.read_at(index, is_partial, into));
        if at.is_some() && std::mem::take(&mut self.is_behind) {
            self.has_behind = true;
            let series = self.slots.iter_mut().flatten();
            series.for_each(|series| series.is_behind = true);
        }
        self.operations(input, at, is_partial, into)?;
        if all_declared {
            self.drop_undeclared(into);
        }
        match at {
            None => self.is_behind = true,
            Some(at) if !is_partial && std::mem::take(&mut self.has_behind) => {
                let series = self.slots.iter_mut().flatten();
                let behind = series.filter(|series| series.is_behind);
                behind.for_each(|series| series.settle_all(at.of(series)));
            }
            Some(_) => {}
        }
        Some(())
    }

    fn read_at(&mut self, index: usize, is_partial: bool, into: &mut Timeline) -> At {
        if is_partial {
            self.before = self.last;
        } else if self.last != Some(index) {
            self.before = self.last.replace(index);
        }
        if let Some(entity) = self.entity {
            if is_partial {
                into.mark_read_in_part(entity, index);
            } else {
                into.mark_read(entity, index);
            }
        }
        At { index, before: self.before }
    }

    fn operations(
        &mut self,
        input: &mut ByteReader<'_>,
        at: Option<At>,
        is_partial: bool,
        into: &mut Timeline,
    ) -> Option<()> {
        let mut slot = 0u64;
        let mut is_read = true;
        loop {
            let number = input.number()?;
            if number == 0 {
                return Some(());
            }
            if number == NOT_READ && is_partial {
                is_read = false;
                continue;
            }
            if number < 4 {
                return None;
            }
            let (operation, zigzag) = Operation::from_number(number);
            slot = slot.wrapping_add((zigzag >> 1) ^ (zigzag & 1).wrapping_neg());
            let index = usize::try_from(slot).ok().filter(|_| slot < Self::SLOTS_MAX)?;
            match operation {
                Operation::Declare => self.declare(index, input, into)?,
                Operation::Gone => {
                    self.slots.get(index)?;
                    self.drop_slot(index, into);
                    continue;
                }
                Operation::Change | Operation::Presence => {}
            }
            self.has_behind |= !is_read;
            let series = self.slots.get_mut(index)?.as_mut()?;
            let here = at.map(|at| at.of(series));
            let with_presence = operation != Operation::Change;
            // A declaration and what was skipped change readings that the operation does not name.
            let settles_all = operation == Operation::Declare || series.is_behind || !is_read;
            series.changes(input, with_presence, here.filter(|_| !settles_all))?;
            let Some(at) = here else {
                continue;
            };
            if !is_read {
                series.finish_changed(at.before);
                continue;
            }
            series.is_wanted = true;
            if settles_all {
                series.settle_all(at);
            }
            if is_partial {
                series.read = Some(at.index);
            }
        }
    }

    fn declare(
        &mut self,
        index: usize,
        input: &mut ByteReader<'_>,
        into: &mut Timeline,
    ) -> Option<()> {
        let (key, label, group) = (input.text()?, input.text()?, input.text()?);
        self.declared += 1;
        // A hostile file must not fill memory by naming high slots: the bytes that declare them limit their number.
        if index > Self::FREE_SLOTS + self.declared * Self::SLOTS_EACH {
            return None;
        }
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let found = self.slots[index].as_ref();
        if found.is_none_or(|series| series.key.as_bytes() != key) {
            self.settle_in(index, String::from_utf8_lossy(key).into_owned(), into);
        }
        let series = self.slots[index].as_mut()?;
        for (old, new) in [(&mut series.label, label), (&mut series.group, group)] {
            if old.as_bytes() != new {
                *old = String::from_utf8_lossy(new).into_owned();
            }
        }
        series.declared = self.sections;
        series.values.fill(0);
        series.present.fill(0);
        Some(())
    }

    /// Gives a slot to another entity.
    fn settle_in(&mut self, index: usize, key: String, into: &mut Timeline) {
        self.drop_slot(index, into);
        if let Some(elsewhere) = self.by_key.get(&key).copied() {
            // A process was declared again under another name.
            self.drop_slot(elsewhere, into);
        }
        self.by_key.insert(key.clone(), index);
        self.slots[index] =
            Some(Box::new(EntityReadings { key, ..EntityReadings::sized(self.signals.len()) }));
    }

    /// Removes the entity of a slot: its runs end at the previous read of its table.
    fn drop_slot(&mut self, index: usize, into: &mut Timeline) {
        let Some(mut series) = self.slots.get_mut(index).and_then(Option::take) else {
            return;
        };
        self.by_key.remove(&series.key);
        series.finish_all(self.before.max(series.read));
        self.hand_over(&series, into);
    }

    fn drop_undeclared(&mut self, into: &mut Timeline) {
        for index in 0..self.slots.len() {
            let series = self.slots[index].as_ref();
            if series.is_some_and(|series| series.declared != self.sections) {
                self.drop_slot(index, into);
            }
        }
    }

    /// Pauses while samples are not requested.
    pub(super) fn pause(&mut self) {
        for series in self.slots.iter_mut().flatten() {
            series.finish_all(self.last.max(series.read));
        }
        self.is_behind = true;
    }

    /// Ends all runs and appends them to the timeline.
    pub(super) fn end(&mut self, into: &mut Timeline) {
        self.pause();
        for series in self.slots.iter().flatten() {
            self.hand_over(series, into);
        }
    }

    fn hand_over(&self, series: &EntityReadings, into: &mut Timeline) {
        match self.entity {
            Some(Entity::Host) => self.hand_over_host(series, into),
            // Entities that were present only in skipped samples are dropped.
            Some(entity) if series.is_wanted => {
                let runs = series.runs.iter().filter_map(|(column, run)| {
                    let signal = self.signals.get(usize::from(*column)).copied()??;
                    Some((signal, [*run]))
                });
                into.append_runs(entity, &series.key, &series.label, &series.group, runs);
            }
            _ => {}
        }
    }

    /// Appends the runs of the host, which has hundreds for each signal: sorted once instead of searched one by one.
    fn hand_over_host(&self, series: &EntityReadings, into: &mut Timeline) {
        let mut columns = vec![Vec::new(); self.signals.len()];
        for (column, run) in &series.runs {
            columns[usize::from(*column)].push(*run);
        }
        for (signal, runs) in self.signals.iter().zip(columns) {
            if let Some(signal) = signal.filter(|_| !runs.is_empty()) {
                into.append_host_runs(signal, runs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bytes::{put, put_bits, put_text};
    use super::*;

    /// Reads a section that declares an entity in each of these slots; returns how many were accepted.
    fn declared(slots: &[u64]) -> (usize, usize) {
        let columns = DictionaryColumns { entity: Some(Entity::Process), signals: vec![None] };
        let mut bytes = Vec::new();
        let mut before = 0;
        for slot in slots {
            put(&mut bytes, ((((slot - before) << 1) + 1) << 2) | Operation::Declare as u64);
            before = *slot;
            put_text(&mut bytes, slot.to_string().as_bytes());
            put_text(&mut bytes, b"");
            put_text(&mut bytes, b"");
            put_bits(&mut bytes, 0);
            put_bits(&mut bytes, 0);
        }
        put(&mut bytes, 0);
        let mut table = HeadTableDecoder::new(&columns);
        let mut into = Timeline::default();
        let _ = table.section(ALL_DECLARED, &mut ByteReader(&bytes), None, &mut into);
        (table.slots.len(), table.slots.iter().flatten().count())
    }

    #[test]
    fn slots_far_apart_take_no_room_and_there_are_no_more_than_the_bytes_allow() {
        assert_eq!(declared(&[0, 1, 2]), (3, 3));
        let (len, there) = declared(&[200_000, 250_000]);
        assert_eq!((len, there), (250_001, 2), "few are left of many");
        let far: Vec<u64> = (0..60).map(|number| number * 65_530).collect();
        let (len, there) = declared(&far);
        assert!(len < 300_000 && there < 6, "{len} {there}");
        assert!(size_of::<Option<Box<EntityReadings>>>() == 8);
    }
}
