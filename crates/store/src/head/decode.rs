//! Decodes frames into samples of a timeline, directly as runs.

use std::collections::BTreeSet;
use std::sync::Mutex;

use timeline::signals::{self, Entity};
use timeline::{Absence, BootId, Event, EventKind, Stamp, Timeline, facts};
use units::{Count, Span, WallClock};

use super::bytes::ByteReader;
use super::dictionary::NameDictionary;
use super::encode::{HAS_AWAKE, HAS_BOOT_ID, HAS_WALL, HeadClocks};
use super::frame::{FrameKind, MARK};
use super::frames::FoundFrame;
use super::series::HeadTableDecoder;
use super::table::{ALL_DECLARED, PARTIAL};
use super::{HeadRead, Window};

/// A file with more problems is damaged all over: the others are counted.
const PROBLEMS_MAX: usize = 64;

/// Reads one file's frames.
#[derive(Debug)]
pub(super) struct Decoder<'t> {
    into: &'t mut Timeline,
    window: Option<Window>,
    /// Whether only the clocks of samples are read.
    only_clocks: bool,
    dictionary: Option<NameDictionary>,
    tables: Vec<HeadTableDecoder>,
    clocks: HeadClocks,
    /// The boot of the samples of this block.
    boot_id: Option<BootId>,
    /// Whether samples that depend on the previous one can be read.
    is_in_block: bool,
    /// The number in the file of the next expected sample.
    expected: u64,
    lost: u64,
    /// Samples behind damage, since the last whole one.
    skipped: u64,
    is_damaged: bool,
    was_wanted: bool,
    strange_events: BTreeSet<String>,
    /// Problems beyond the first.
    unlisted: u64,
    pub(super) read: HeadRead,
}

impl<'t> Decoder<'t> {
    pub(super) fn new(into: &'t mut Timeline, window: Option<Window>) -> Self {
        Self {
            into,
            window,
            only_clocks: false,
            dictionary: None,
            tables: Vec::new(),
            clocks: HeadClocks::default(),
            boot_id: None,
            is_in_block: false,
            expected: 0,
            lost: 0,
            skipped: 0,
            is_damaged: false,
            was_wanted: false,
            strange_events: BTreeSet::new(),
            unlisted: 0,
            read: HeadRead::default(),
        }
    }

    /// Reads only the clocks of samples: nothing goes into the timeline.
    pub(super) fn of_clocks(unused: &'t mut Timeline) -> Self {
        Self { only_clocks: true, ..Self::new(unused, None) }
    }

    /// Takes the next frame of the file, or damage.
    pub(super) fn take(&mut self, found: &FoundFrame<'_>) {
        match *found {
            FoundFrame::Frame(kind, payload) => {
                if self.frame(kind, payload).is_none() {
                    self.is_in_block = false;
                    self.note(format!("a frame of kind {kind} is invalid"));
                }
            }
            FoundFrame::Damage { at, len } => {
                self.is_in_block = false;
                self.is_damaged = true;
                self.note(format!("{len} bytes at byte {at} are damaged"));
            }
            FoundFrame::Tail { at, len } => {
                self.is_in_block = false;
                self.read.tail = Some((at, len));
            }
        }
    }

    /// Notes a problem; of a file that has countless ones the first are enough.
    pub(super) fn note(&mut self, problem: String) {
        if self.read.problems.len() < PROBLEMS_MAX {
            self.read.problems.push(problem);
        } else {
            self.unlisted += 1;
        }
    }

    fn frame(&mut self, kind: u8, payload: &[u8]) -> Option<()> {
        let Some(kind) = FrameKind::from_byte(kind) else {
            self.note(format!("frames of kind {kind} are of a later memtide and are skipped"));
            return Some(());
        };
        let mut input = ByteReader(payload);
        match kind {
            FrameKind::Dictionary => self.dictionary(payload),
            FrameKind::Key => self.key(input),
            FrameKind::Step if !self.is_in_block => {
                self.skipped += 1;
                Some(())
            }
            FrameKind::Step => self.sample(input),
            FrameKind::Event => self.event(input),
            FrameKind::Absent => self.absent(&mut input),
            FrameKind::Unknown => self.unknown(input),
            FrameKind::End => {
                self.read.ended = true;
                Some(())
            }
        }
    }

    /// Takes a dictionary; the second copy is skipped.
    fn dictionary(&mut self, payload: &[u8]) -> Option<()> {
        let dictionary = NameDictionary::read(payload)?;
        if self.dictionary.is_none() {
            self.use_dictionary(dictionary);
        }
        Some(())
    }

    fn use_dictionary(&mut self, mut dictionary: NameDictionary) {
        let strange = std::mem::take(&mut dictionary.strange);
        if !strange.is_empty() {
            let names = list(&strange);
            self.note(format!(
                "{} are unknown to this memtide and are skipped: {names}",
                counted(strange.len())
            ));
        }
        self.tables = dictionary.tables.iter().map(HeadTableDecoder::new).collect();
        self.dictionary = Some(dictionary);
    }

    fn key(&mut self, mut input: ByteReader<'_>) -> Option<()> {
        input = ByteReader(input.0.strip_prefix(MARK)?);
        let checksum = u32::from_le_bytes(input.take(4)?.try_into().ok()?);
        let number = input.number()?;
        if self.dictionary.is_none() {
            // Both copies are damaged; this memtide's own dictionary can be used if it is the same.
            self.use_dictionary(NameDictionary::own());
        }
        if self.dictionary.as_ref().map(|known| known.checksum) != Some(checksum) {
            self.is_in_block = false;
            self.note("samples with a damaged dictionary are skipped".to_owned());
            return Some(());
        }
        // After a file was removed, the next one continues it and need not begin with its first sample.
        if self.expected > 0 || self.is_damaged {
            self.lost += number.saturating_sub(self.expected);
        }
        self.expected = number;
        self.skipped = 0;
        self.is_in_block = true;
        self.clocks = HeadClocks::default();
        self.boot_id = None;
        self.tables.iter_mut().for_each(HeadTableDecoder::begin_block);
        self.sample(input)
    }

    fn sample(&mut self, mut input: ByteReader<'_>) -> Option<()> {
        let stamp = self.stamp(&mut input)?;
        self.expected += 1;
        self.read.first = self.read.first.or(stamp.wall);
        self.read.last = stamp.wall.or(self.read.last);
        self.read.begin = self.read.begin.or(Some(stamp));
        self.read.end = Some(stamp);
        let index = self.is_wanted(stamp).then(|| self.push(stamp));
        while let Some(first) = input.byte() {
            let table = self.tables.get_mut(usize::from(first & !(ALL_DECLARED | PARTIAL)))?;
            table.section(first, &mut input, index, self.into)?;
        }
        Some(())
    }

    fn stamp(&mut self, input: &mut ByteReader<'_>) -> Option<Stamp> {
        let flags = input.byte()?;
        let clocks = &mut self.clocks;
        clocks.step = input.step(clocks.step)?;
        clocks.boot = clocks.boot.wrapping_add(clocks.step);
        let mut stamp = Stamp { boot: Span::from_nanos(clocks.boot), ..Stamp::default() };
        if flags & HAS_AWAKE != 0 {
            clocks.awake = input.step(clocks.awake)?;
            stamp.awake = Some(Span::from_nanos(clocks.boot.wrapping_sub(clocks.awake)));
        }
        if flags & HAS_WALL != 0 {
            clocks.wall = input.step(clocks.wall)?;
            let wall = clocks.boot.wrapping_add(clocks.wall).cast_signed();
            stamp.wall = Some(WallClock::from_unix_nanos(wall));
        }
        if flags & HAS_BOOT_ID != 0 {
            self.boot_id = boot_id(input)?;
        }
        stamp.boot_id = self.boot_id;
        Some(stamp)
    }

    /// Whether a sample is requested; readings of others are skipped.
    fn is_wanted(&mut self, stamp: Stamp) -> bool {
        let is_wanted = self.window_holds(stamp);
        if self.was_wanted && !is_wanted {
            self.tables.iter_mut().for_each(HeadTableDecoder::pause);
        }
        self.was_wanted = is_wanted;
        is_wanted
    }

    fn push(&mut self, stamp: Stamp) -> usize {
        // After a restart with an earlier wall clock the order of samples is unknown; such a sample starts a segment.
        if self.into.push_stamp(stamp).is_err() {
            self.into.push_stamp_new_segment(stamp);
        }
        self.into.len() - 1
    }

    fn event(&mut self, mut input: ByteReader<'_>) -> Option<()> {
        let flags = input.byte()?;
        let mut stamp = Stamp { boot: Span::from_nanos(input.number()?), ..Stamp::default() };
        if flags & HAS_AWAKE != 0 {
            stamp.awake = Some(Span::from_nanos(input.number()?));
        }
        if flags & HAS_WALL != 0 {
            let nanos = input.number()?.cast_signed();
            stamp.wall = Some(WallClock::from_unix_nanos(nanos));
        }
        if flags & HAS_BOOT_ID != 0 {
            stamp.boot_id = boot_id(&mut input)?;
        }
        let kind = input.string()?;
        let Some(kind) = EventKind::by_name(&kind) else {
            if self.strange_events.len() < PROBLEMS_MAX {
                self.strange_events.insert(kind);
            }
            return Some(());
        };
        let event = Event {
            stamp,
            kind,
            subject: input.string()?,
            text: input.string()?,
            report: input.string()?,
        };
        if self.window_holds(stamp) {
            self.into.add_recorder_event(event);
        }
        Some(())
    }

    /// Whether a time is within the window. What has no wall clock always is.
    fn window_holds(&self, stamp: Stamp) -> bool {
        if self.only_clocks {
            return false;
        }
        let (Some((since, until)), Some(wall)) = (self.window, stamp.wall) else {
            return true;
        };
        since.is_none_or(|since| wall >= since) && until.is_none_or(|until| wall <= until)
    }

    fn absent(&mut self, input: &mut ByteReader<'_>) -> Option<()> {
        let file = kernel_file(&input.string()?)?;
        let why = match input.byte()? {
            0 => Absence::NotFound,
            1 => Absence::PermissionDenied,
            _ => Absence::Failed(input.string()?),
        };
        self.into.absent.insert(file, why);
        Some(())
    }

    fn unknown(&mut self, mut input: ByteReader<'_>) -> Option<()> {
        while !input.is_empty() {
            let file = kernel_file(&input.string()?)?;
            let field = input.string()?;
            self.into.note_unknown(file, field, input.number()?);
        }
        Some(())
    }

    /// Whether the timeline has room for no more.
    pub(super) fn is_full(&self) -> bool {
        self.into.is_full()
    }

    /// Ends all runs and reports what is missing.
    pub(super) fn end(mut self) -> HeadRead {
        if self.is_full() {
            self.note(format!(
                "only its first {} samples were read{}",
                self.into.len(),
                self.into.why_full()
            ));
        }
        self.tables.iter_mut().for_each(|table| table.end(self.into));
        if self.lost > 0 {
            self.note(format!("{} samples before others are damaged or missing", self.lost));
        }
        if self.skipped > 0 {
            self.note(format!(
                "{} samples behind that cannot be used: each is stored as the difference to the \
                 one before",
                Count::new(self.skipped)
            ));
        }
        if !self.strange_events.is_empty() {
            let names: Vec<String> = self.strange_events.iter().cloned().collect();
            self.note(format!("events of unknown kinds are skipped: {}", list(&names)));
        }
        if self.unlisted > 0 {
            let more = Count::new(self.unlisted);
            self.read.problems.push(format!("{more} more places are damaged or invalid"));
        }
        self.read
    }
}

/// Reads the number of a boot; `None` where bytes are missing. Zeros name no boot.
fn boot_id(input: &mut ByteReader<'_>) -> Option<Option<BootId>> {
    let bytes = input.take(16)?.try_into().ok()?;
    Some(BootId::from_bytes(bytes))
}

fn counted(names: usize) -> String {
    match names {
        1 => "1 name".to_owned(),
        many => format!("{many} names"),
    }
}

/// Lists some of many names.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(|name| format!("`{}`", name.escape_debug()));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

/// Returns the name of a kernel file as the catalogue has it. Other names are leaked, up to a limit.
pub(crate) fn kernel_file(name: &str) -> Option<&'static str> {
    static OTHERS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    const NAMES_MAX: usize = 1024;
    const NAME_BYTES_MAX: usize = 4096;
    let of_signals = signals::ALL.iter().map(|def| def.file);
    let of_facts = facts::ALL.iter().map(|fact| fact.file);
    if let Some(known) = of_signals.chain(of_facts).find(|file| *file == name) {
        return Some(known);
    }
    let mut others = OTHERS.lock().ok()?;
    if let Some(known) = others.get(name) {
        return Some(known);
    }
    if others.len() >= NAMES_MAX || name.len() > NAME_BYTES_MAX {
        return None;
    }
    let leaked: &'static str = name.to_owned().leak();
    others.insert(leaked);
    Some(leaked)
}

/// Kinds of entities must be numbered below the bits [`ALL_DECLARED`] and [`PARTIAL`].
const _: () = assert!(Entity::ALL.len() < PARTIAL as usize && PARTIAL < ALL_DECLARED);
