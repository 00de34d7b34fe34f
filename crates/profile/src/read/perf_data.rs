//! `perf.data`, as `perf record` writes it to a file or a pipe. It holds addresses: names of the kernel's come from `/proc/kallsyms`, if it
//! was recorded on this host since its last boot; programs are not unwound. Files of `perf record -z` are not read.
//!
//! The format is tools/perf/Documentation/perf.data-file-format.txt of the kernel: a header with sections for attributes of events, records,
//! and features; in a pipe all of it are records. Any bytes are accepted: what is cut is not there.

use std::collections::HashMap;

use perf_event_open_sys::bindings as sys;
use probe::{Kallsyms, Root};

use super::ReadProfileError;
use crate::collected::{CpuUnit, Profile};
use crate::stack::{FramePlace, NAMELESS, StackTable};

/// From here on values of a call chain are marks (`PERF_CONTEXT_MAX`).
const MARKS: u64 = (-4095_i64).cast_unsigned();
/// Behind this mark stand functions of the kernel (`PERF_CONTEXT_KERNEL`).
pub(crate) const KERNEL_MARK: u64 = (-128_i64).cast_unsigned();
/// The kernel's mapping and the symbol that its offset is the address of.
const KERNEL_MAPS: [(&str, &str); 2] =
    [("[kernel.kallsyms]_text", "_text"), ("[kernel.kallsyms]_stext", "_stext")];
/// The header of a file; that of a pipe has 16 bytes.
const FILE_HEADER: u64 = 104;
/// Records of perf itself: an attribute in a pipe, data that stand behind their record, compressed records.
const RECORD_ATTRIBUTE: u32 = 64;
const RECORD_TRACING_DATA: u32 = 66;
const RECORD_AUX_TRACE: u32 = 71;
const RECORD_COMPRESSED: [u32; 2] = [81, 83];
/// Numbers of features: the kernel's release, CPUs, names of events.
const FEATURE_RELEASE: u32 = 4;
const FEATURE_CPUS: u32 = 7;
const FEATURE_EVENTS: u32 = 12;
/// Bits of `perf_event_attr`: a rate, not a period.
const ATTRIBUTE_HAS_RATE: u64 = 1 << 10;

/// Hands over the addresses of the kernel in a call chain, the innermost first, and notes whether it has a part in a program.
pub(crate) fn kernel_chain(
    chain: impl IntoIterator<Item = u64>,
    mut take: impl FnMut(u64),
    has_user: &mut bool,
) {
    let mut in_kernel = false;
    for value in chain {
        if value >= MARKS {
            in_kernel = value == KERNEL_MARK;
        } else if in_kernel {
            take(value);
        } else {
            *has_user = true;
        }
    }
}

/// The addresses of the kernel in a call chain, the outermost first, and whether it has a part in a program.
fn chain_of(chain: impl IntoIterator<Item = u64>) -> (Vec<u64>, bool) {
    let (mut kernel, mut has_user) = (Vec::new(), false);
    kernel_chain(chain, |address| kernel.push(address), &mut has_user);
    kernel.reverse();
    (kernel, has_user)
}

/// Numbers from the start of some bytes, one after another.
#[derive(Clone, Copy)]
struct ByteCursor<'a>(&'a [u8]);

impl<'a> ByteCursor<'a> {
    fn take(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_ne_bytes)
    }

    /// A text behind its length.
    fn text(&mut self) -> Option<String> {
        let length = self.u32()?;
        self.take(length.into()).map(text_of)
    }
}

/// A text up to its zero.
fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// What is known of an event: a part of `perf_event_attr`.
#[derive(Debug, Clone, Default)]
struct RecordedEvent {
    kind: u32,
    config: u64,
    rate: Option<u64>,
    sample_type: u64,
    read_format: u64,
    ids: Vec<u64>,
    name: Option<String>,
}

impl RecordedEvent {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut cursor = ByteCursor(bytes);
        let kind = cursor.u32()?;
        let _size = cursor.u32()?;
        let (config, every, sample_type) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let (read_format, flags) = (cursor.u64()?, cursor.u64()?);
        let rate = (flags & ATTRIBUTE_HAS_RATE != 0).then_some(every);
        Some(Self { kind, config, rate, sample_type, read_format, ..Self::default() })
    }

    /// Whether it samples busy CPUs.
    fn is_clock(&self) -> bool {
        match self.kind {
            sys::PERF_TYPE_HARDWARE => true,
            sys::PERF_TYPE_SOFTWARE => {
                [sys::PERF_COUNT_SW_CPU_CLOCK, sys::PERF_COUNT_SW_TASK_CLOCK]
                    .map(u64::from)
                    .contains(&self.config)
            }
            _ => false,
        }
    }

    fn has(&self, part: sys::perf_event_sample_format) -> bool {
        self.sample_type & u64::from(part) != 0
    }

    /// The parts of a sample that are needed. Their order is that of the kernel.
    fn sample(&self, body: &[u8]) -> Option<RecordedSample> {
        let mut cursor = ByteCursor(body);
        let mut sample = RecordedSample::default();
        if self.has(sys::PERF_SAMPLE_IDENTIFIER) {
            sample.id = Some(cursor.u64()?);
        }
        let ip = if self.has(sys::PERF_SAMPLE_IP) { Some(cursor.u64()?) } else { None };
        if self.has(sys::PERF_SAMPLE_TID) {
            let _pid = cursor.u32()?;
            sample.tid = Some(cursor.u32()?);
        }
        if self.has(sys::PERF_SAMPLE_TIME) {
            sample.time_ns = Some(cursor.u64()?);
        }
        if self.has(sys::PERF_SAMPLE_ADDR) {
            cursor.u64()?;
        }
        if self.has(sys::PERF_SAMPLE_ID) {
            sample.id = Some(cursor.u64()?);
        }
        for part in [sys::PERF_SAMPLE_STREAM_ID, sys::PERF_SAMPLE_CPU, sys::PERF_SAMPLE_PERIOD] {
            if self.has(part) {
                cursor.u64()?;
            }
        }
        if self.has(sys::PERF_SAMPLE_READ) {
            self.skip_counts(&mut cursor)?;
        }
        let chain = if self.has(sys::PERF_SAMPLE_CALLCHAIN) {
            let count = cursor.u64()?;
            let addresses = cursor.take(count.checked_mul(8)?)?;
            Some(addresses.chunks_exact(8).filter_map(|one| ByteCursor(one).u64()))
        } else {
            None
        };
        sample.has_chain = chain.is_some();
        (sample.kernel, sample.has_user) = match chain {
            Some(chain) => chain_of(chain),
            // The address alone says where it was: the kernel's is the upper half.
            None => chain_of(
                ip.into_iter().flat_map(|ip| [if ip >> 63 == 1 { KERNEL_MARK } else { MARKS }, ip]),
            ),
        };
        Some(sample)
    }

    /// Counts that were read with a sample.
    fn skip_counts(&self, cursor: &mut ByteCursor<'_>) -> Option<()> {
        let has = |part: sys::perf_event_read_format| self.read_format & u64::from(part) != 0;
        let times = u64::from(has(sys::PERF_FORMAT_TOTAL_TIME_ENABLED))
            + u64::from(has(sys::PERF_FORMAT_TOTAL_TIME_RUNNING));
        let each = 1 + u64::from(has(sys::PERF_FORMAT_ID)) + u64::from(has(sys::PERF_FORMAT_LOST));
        let numbers = if has(sys::PERF_FORMAT_GROUP) {
            let count = cursor.u64()?;
            count.checked_mul(each)?.checked_add(times)?
        } else {
            times + each
        };
        cursor.take(numbers.checked_mul(8)?).map(|_| ())
    }
}

#[derive(Debug, Default)]
struct RecordedSample {
    id: Option<u64>,
    tid: Option<u32>,
    time_ns: Option<u64>,
    kernel: Vec<u64>,
    has_user: bool,
    has_chain: bool,
}

/// What is collected while records are read.
#[derive(Default)]
struct DataReader {
    events: Vec<RecordedEvent>,
    comms: HashMap<u32, String>,
    /// Chains are named when all is read.
    chains: HashMap<(String, Vec<u64>, bool), f64>,
    kernel_at: Option<(&'static str, u64)>,
    first_ns: Option<u64>,
    last_ns: u64,
    lost: u64,
    has_chain: bool,
    is_packed: bool,
}

pub(super) fn read(content: &[u8]) -> Result<Profile, ReadProfileError> {
    let wrong = |text: &str| ReadProfileError::PerfData(text.to_owned());
    let mut profile = Profile::default();
    profile.origin.form = "perf.data".to_owned();
    let mut reader = DataReader::default();
    let mut header = ByteCursor(content);
    let (_magic, size) = (header.u64(), header.u64());
    let size = size.ok_or_else(|| wrong("it is cut in its header"))?;
    if size.swap_bytes() == FILE_HEADER || size.swap_bytes() == 16 {
        return Err(wrong("it was recorded on a machine of the other byte order"));
    }
    let records = if size >= FILE_HEADER {
        let records = reader.header(content, &mut header, &mut profile);
        records.ok_or_else(|| wrong("its header is damaged"))?
    } else {
        content.get(16..).unwrap_or_default()
    };
    reader.records(records);
    if reader.chains.is_empty() && reader.is_packed {
        return Err(wrong("it is compressed (perf record -z)"));
    }
    if reader.chains.is_empty() {
        return Err(ReadProfileError::Empty { form: "perf.data" });
    }
    reader.finish(&mut profile);
    Ok(profile)
}

impl DataReader {
    /// Reads the header of a file; returns the bytes of its records.
    fn header<'a>(
        &mut self,
        content: &'a [u8],
        header: &mut ByteCursor<'_>,
        profile: &mut Profile,
    ) -> Option<&'a [u8]> {
        let section = |(offset, size): (u64, u64)| {
            let start = usize::try_from(offset).ok()?;
            let rest = content.get(start..)?;
            // A file that was cut has less than its header says.
            Some(rest.get(..usize::try_from(size).ok()?).unwrap_or(rest))
        };
        let entry = header.u64()?;
        let attributes = section((header.u64()?, header.u64()?))?;
        let (data_at, data_size) = (header.u64()?, header.u64()?);
        let _event_types = (header.u64()?, header.u64()?);
        let features: Vec<u64> = (0..4).filter_map(|_| header.u64()).collect();
        let entry = usize::try_from(entry).ok().filter(|entry| *entry > 16)?;
        for one in attributes.chunks_exact(entry) {
            let (attribute, ids) = one.split_at_checked(entry - 16)?;
            let mut event = RecordedEvent::read(attribute)?;
            let mut ids = ByteCursor(ids);
            let ids = section((ids.u64()?, ids.u64()?)).unwrap_or_default();
            event.ids = ids.chunks_exact(8).filter_map(|id| ByteCursor(id).u64()).collect();
            self.events.push(event);
        }
        // Places of features stand behind the records, in the order of their bits.
        let places = content.get(usize::try_from(data_at.checked_add(data_size)?).ok()?..);
        let mut places = ByteCursor(places.unwrap_or_default());
        for number in 0..256_u32 {
            let word = features.get(number as usize / 64).copied().unwrap_or(0);
            if word >> (number % 64) & 1 == 0 {
                continue;
            }
            let (Some(offset), Some(size)) = (places.u64(), places.u64()) else {
                break;
            };
            let bytes = ByteCursor(section((offset, size)).unwrap_or_default());
            self.feature(number, bytes, profile);
        }
        section((data_at, data_size))
    }

    fn feature(&mut self, number: u32, mut bytes: ByteCursor<'_>, profile: &mut Profile) {
        match number {
            FEATURE_RELEASE => profile.origin.kernel = bytes.text().filter(|text| !text.is_empty()),
            FEATURE_CPUS => {
                let _available = bytes.u32();
                profile.origin.cpus = bytes.u32();
            }
            FEATURE_EVENTS => {
                let _count = bytes.u32();
                let size = bytes.u32().unwrap_or(0);
                for event in &mut self.events {
                    let Some((ids, name)) = event_name(&mut bytes, size) else {
                        break;
                    };
                    event.name = Some(name);
                    if bytes.take(u64::from(ids) * 8).is_none() {
                        break;
                    }
                }
            }
            _ => {}
        }
    }

    fn records(&mut self, records: &[u8]) {
        let mut rest = ByteCursor(records);
        loop {
            let (Some(kind), Some(sizes)) = (rest.u32(), rest.u32()) else {
                return;
            };
            // A record's length has the upper half, flags the lower one; it counts its header.
            let Some(length) = (sizes >> 16).checked_sub(8) else {
                return;
            };
            let Some(body) = rest.take(length.into()) else {
                return;
            };
            self.record(kind, body);
            let behind = match kind {
                RECORD_TRACING_DATA => {
                    ByteCursor(body).u32().map(|size| size.next_multiple_of(8).into())
                }
                RECORD_AUX_TRACE => ByteCursor(body).u64(),
                _ => Some(0),
            };
            if behind.and_then(|bytes| rest.take(bytes)).is_none() {
                return;
            }
        }
    }

    fn record(&mut self, kind: u32, body: &[u8]) {
        let mut cursor = ByteCursor(body);
        match kind {
            sys::PERF_RECORD_SAMPLE => self.sample(body),
            sys::PERF_RECORD_COMM => {
                let (_pid, tid) = (cursor.u32(), cursor.u32());
                if let Some(tid) = tid {
                    self.comms.insert(tid, text_of(cursor.0));
                }
            }
            sys::PERF_RECORD_FORK => {
                let (_pid, parent, tid) = (cursor.u32(), cursor.u32(), cursor.u32());
                let name = parent.and_then(|parent| self.comms.get(&parent).cloned());
                if let (Some(tid), Some(name)) = (tid, name) {
                    self.comms.entry(tid).or_insert(name);
                }
            }
            sys::PERF_RECORD_MMAP => {
                // Thread, address and length come before the offset.
                if cursor.take(24).is_some()
                    && let Some(offset) = cursor.u64()
                {
                    let path = text_of(cursor.0);
                    let kernel = KERNEL_MAPS.iter().find(|(name, _)| *name == path);
                    self.kernel_at = self.kernel_at.or(kernel.map(|(_, symbol)| (*symbol, offset)));
                }
            }
            sys::PERF_RECORD_LOST => {
                cursor.u64();
                self.lost = self.lost.saturating_add(cursor.u64().unwrap_or(0));
            }
            RECORD_ATTRIBUTE => {
                let size = ByteCursor(body.get(4..).unwrap_or_default()).u32().unwrap_or(0);
                if let Some(mut event) = cursor.take(size.into()).and_then(RecordedEvent::read) {
                    let ids = cursor.0.chunks_exact(8);
                    event.ids = ids.filter_map(|id| ByteCursor(id).u64()).collect();
                    self.events.push(event);
                }
            }
            kind if RECORD_COMPRESSED.contains(&kind) => self.is_packed = true,
            _ => {}
        }
    }

    fn sample(&mut self, body: &[u8]) {
        // Where there are several events, the number of each stands at the same place in all samples.
        let used = self.used();
        let Some(sample) = used.and_then(|event| event.sample(body)) else {
            return;
        };
        let is_other = self.events.len() > 1
            && sample.id.is_some_and(|id| used.is_some_and(|event| !event.ids.contains(&id)));
        if is_other {
            return;
        }
        if let Some(time_ns) = sample.time_ns {
            self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
            self.last_ns = self.last_ns.max(time_ns);
        }
        self.has_chain |= sample.has_chain;
        let comm = match sample.tid.map(|tid| (tid, self.comms.get(&tid))) {
            Some((_, Some(name))) => name.clone(),
            Some((0, None)) => "swapper".to_owned(),
            _ => "?".to_owned(),
        };
        *self.chains.entry((comm, sample.kernel, sample.has_user)).or_default() += 1.0;
    }

    /// The event that counts: the first that samples busy CPUs.
    fn used(&self) -> Option<&RecordedEvent> {
        self.events.iter().find(|event| event.is_clock()).or(self.events.first())
    }

    fn finish(self, profile: &mut Profile) {
        if let Some(event) = self.used() {
            let usual = match (event.kind, event.config) {
                (sys::PERF_TYPE_SOFTWARE, 0) => Some("cpu-clock"),
                (sys::PERF_TYPE_HARDWARE, 0) => Some("cycles"),
                _ => None,
            };
            profile.origin.event = event.name.clone().or(usual.map(str::to_owned));
            #[allow(clippy::cast_precision_loss)] // hundreds
            {
                profile.origin.hz = event.rate.map(|rate| rate as f64);
            }
        }
        let symbols = symbols_of(self.kernel_at);
        if symbols.is_none() {
            profile.remarks.push(super::NO_NAMES.to_owned());
        }
        if !self.has_chain {
            profile.remarks.push(super::NO_CHAINS.to_owned());
        }
        let mut stacks = StackTable::default();
        for ((comm, kernel, has_user), weight) in &self.chains {
            let name = |address: &u64| {
                symbols.as_ref().and_then(|symbols| symbols.name(*address)).unwrap_or(NAMELESS)
            };
            let user = (*has_user).then_some(("[user]", FramePlace::User));
            let frames =
                user.into_iter().chain(kernel.iter().map(|one| (name(one), FramePlace::Kernel)));
            stacks.add(comm, frames, *weight);
        }
        let lasted = self.first_ns.and_then(|first| self.last_ns.checked_sub(first));
        let some_time = lasted.filter(|nanos| *nanos > 0);
        profile.origin.seconds =
            some_time.map(|nanos| units::Nanos::new(nanos).to_span().as_secs_f64());
        profile.origin.lost = Some(self.lost);
        profile.cpu = Some((CpuUnit::Samples, stacks));
    }
}

/// The count of an event's numbers and its name in the list of names.
fn event_name(bytes: &mut ByteCursor<'_>, attribute: u32) -> Option<(u32, String)> {
    bytes.take(attribute.into())?;
    Some((bytes.u32()?, bytes.text()?))
}

/// This host's symbols, if the kernel is where it was when the file was recorded: each boot moves it.
fn symbols_of(kernel_at: Option<(&str, u64)>) -> Option<Kallsyms> {
    let (symbol, address) = kernel_at?;
    let symbols = Kallsyms::of_this_host(&Root::default()).ok()?;
    (symbols.address(symbol) == Some(address)).then_some(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    #[test]
    fn a_chain_is_split_by_its_marks() {
        let user_mark = (-512_i64).cast_unsigned();
        let chain = [KERNEL_MARK, 3, 2, 1, user_mark, 77, 78];
        assert_eq!(chain_of(chain), (vec![1, 2, 3], true));
        assert_eq!(chain_of([KERNEL_MARK, 9]), (vec![9], false));
        assert_eq!(chain_of([user_mark, 77]), (vec![], true));
    }

    fn numbers(all: &[u64]) -> Vec<u8> {
        all.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len() + 8).unwrap();
        let head = [&kind.to_ne_bytes()[..], &[0; 2], &length.to_ne_bytes()];
        [head.concat(), body.to_vec()].concat()
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    /// Samples of one thread, as `perf record -e cpu-clock -F 99 -g` writes them: IP, TID, TIME, CALLCHAIN.
    fn recorded(in_pipe: bool) -> Vec<u8> {
        let attribute = numbers(&[pair(1, 64), 0, 99, 1 | 2 | 4 | 32, 0, ATTRIBUTE_HAS_RATE, 0, 0]);
        let comm = record(
            sys::PERF_RECORD_COMM,
            &[&numbers(&[pair(7, 7)])[..], b"db\0\0\0\0\0\0"].concat(),
        );
        let user_mark = (-512_i64).cast_unsigned();
        let sample = |time| {
            let chain = [3, KERNEL_MARK, 1 << 63, user_mark];
            record(
                sys::PERF_RECORD_SAMPLE,
                &numbers(&[&[1 << 63, pair(7, 7), time], &chain[..]].concat()),
            )
        };
        let records = [comm, sample(1_000_000_000), sample(3_000_000_000)].concat();
        let magic = u64::from_ne_bytes(*b"PERFILE2");
        if in_pipe {
            let attribute = record(RECORD_ATTRIBUTE, &attribute);
            return [numbers(&[magic, 16]), attribute, records].concat();
        }
        let entry = [attribute, numbers(&[0, 0])].concat();
        let (at, size) = (FILE_HEADER + entry.len() as u64, records.len() as u64);
        let attributes = [entry.len() as u64, FILE_HEADER, entry.len() as u64];
        let header =
            [&[magic, FILE_HEADER], &attributes[..], &[at, size, 0, 0, 0, 0, 0, 0]].concat();
        [numbers(&header), entry, records].concat()
    }

    #[test]
    fn files_and_pipes_are_read() {
        for in_pipe in [false, true] {
            let profile = read(&recorded(in_pipe)).unwrap();
            let (_, stacks) = profile.cpu.as_ref().unwrap();
            let (stack, count) = stacks.iter().next().unwrap();
            assert_eq!((&*stack.comm, count, stacks.len()), ("db", 2.0, 1));
            assert_eq!(crate::classify(stack).reason, Reason::OtherKernel);
            assert_eq!(profile.origin.hz, Some(99.0));
            assert_eq!(profile.origin.event.as_deref(), Some("cpu-clock"));
            assert!((profile.origin.seconds.unwrap() - 2.0).abs() < 1e-9);
            // Its kernel is nowhere: names are not guessed.
            assert_eq!(profile.remarks, [super::super::NO_NAMES]);
        }
    }

    #[test]
    fn damaged_files_are_errors_or_shorter() {
        for whole in [recorded(false), recorded(true)] {
            for end in 8..whole.len() {
                let _ = read(whole.get(..end).unwrap());
                for byte in [0, 1, 0x7f, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[end] = byte;
                    let _ = read(&damaged);
                }
            }
        }
        let packed = [numbers(&[0, 16]), record(81, &[1; 64])].concat();
        let error = read(&packed).unwrap_err().to_string();
        assert!(error.contains("perf record -z"), "{error}");
    }
}
