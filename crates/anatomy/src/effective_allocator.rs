//! Which malloc does a process really use? Seen from outside, while it runs.
//!
//! The dynamic linker has written the address of `malloc` into a slot of every file that calls it. What a slot points into
//! is the truth; the environment, the libraries that are mapped and what the program reports of itself are not: a Redis that was
//! linked to jemalloc and runs with glibc's malloc preloaded still reports jemalloc, and keeps it mapped.
//!
//! A slot that points into its own file is not bound yet, unless it has the very address of the function that the file
//! defines. Not seen: calls within a file (an allocator that is linked into the program, [`EffectiveAllocator::bundled`]), and
//! pointers that a program keeps elsewhere.
//!
//! Nothing is written and the process is not stopped; pages with slots count as accessed. Cost: 2 to 4 ms with ten libraries and a
//! program of 2 MiB; 40 ms for a browser with 128 files.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use probe::{
    FileKey, MapFiles, MappedFile, Mapping, Mappings, ProcessIdentity, ProcessMemory, ReadError,
    Root,
};
use units::PageSize;

use crate::allocator::{Allocator, AllocatorKind};
use crate::elf::{Bytewise, ElfImage, OwnFunction, RelocationSlot};
use crate::find_allocators::{allocators_of_file, bundled_in, key_of};
use crate::provider_file::ProviderFile;

/// The functions by which an allocator is reached.
const FUNCTIONS: [&str; 4] = ["malloc", "free", "calloc", "realloc"];
/// Files beyond this number are not opened.
const FILES_MAX: usize = 512;
/// More places that slots point into are not named: a usual process has one.
const PROVIDERS_MAX: usize = 16;
/// Of one file, mapped several times by `dlmopen(3)`: the C library takes 16 namespaces.
const INSTANCES_MAX: usize = 16;
/// Tables of all files together: a browser's have 30 MiB.
const READ_BYTES_MAX: u64 = 256 << 20;
const NOT_64_BIT: &str = "it is no ELF file of 64 bits, little-endian";

/// The malloc that a process uses.
#[derive(Debug, Clone)]
pub struct EffectiveAllocator {
    /// Where the bound slots point, that of most slots first; several are several allocators at once. None where no slot is
    /// bound: in a static program, or before the first call.
    pub providers: Vec<MallocProvider>,
    /// Whether the program has no dynamic linker: nothing can be preloaded into it. False also where its file is among `unread`.
    pub is_static: bool,
    /// Allocators in the program's own file, Go's runtime among them: calls within the file reach them without a slot. In a
    /// static program this is its malloc.
    pub bundled: Vec<Allocator>,
    /// Whether the process obeys its environment.
    pub environment: EnvironmentUse,
    /// Files that could not be read: what their slots hold is unknown.
    pub unread: Vec<UnreadImage>,
}

/// Where slots point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MallocProvider {
    /// The file, or memory without one.
    pub place: ProviderPlace,
    /// The files that call it, each with the functions of its bound slots, in order of address.
    pub callers: Vec<MallocCaller>,
}

/// What slots point into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderPlace {
    /// A library, or the program itself.
    File(ProviderFile),
    /// Memory without a file: code that was made at run time.
    Anonymous,
    /// Nothing is mapped there: the slot is damaged, or the mapping came or went meanwhile.
    Nowhere,
}

/// A file with bound slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MallocCaller {
    /// Its path, as the process names it.
    pub file: String,
    /// Whether it is the program.
    pub is_program: bool,
    /// The functions, in the order `malloc`, `free`, `calloc`, `realloc`.
    pub functions: Vec<&'static str>,
}

/// Whether a process obeys `LD_PRELOAD`, `MALLOC_*` and `GLIBC_TUNABLES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvironmentUse {
    /// As far as its dynamic linker and its malloc know them.
    Obeyed,
    /// It was started with more rights than its user has (`AT_SECURE`): ignored, though `/proc/PID/environ` shows them.
    IgnoredAsSecure,
    /// This could not be read.
    Unknown,
}

/// A file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadImage {
    /// Its path, as the process names it.
    pub file: String,
    /// Why, in words.
    pub why: String,
}

/// Why the malloc of a process could not be seen.
#[derive(Debug, thiserror::Error)]
pub enum AllocatorNotSeen {
    /// The process has ended, or this user may not read its memory.
    #[error(transparent)]
    Denied(#[from] ReadError),
    /// It has no memory of its own.
    #[error("process {0} runs no program: it is a thread of the kernel, or has ended")]
    NoProgram(u32),
}

impl EffectiveAllocator {
    /// The allocator that serves the process, where all bound slots agree.
    pub fn only(&self) -> Option<&MallocProvider> {
        match self.providers.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Returns whether it has more than one allocator: slots that disagree, or one in the program's file besides that to which
    /// they point.
    pub fn has_several(&self) -> bool {
        let served = self.providers.first();
        let file = served.and_then(MallocProvider::file).map(|file| file.path.as_str());
        let others = self.bundled.iter().filter(|one| Some(one.file.as_str()) != file);
        self.providers.len() > 1 || others.count() > usize::from(served.is_none())
    }
}

impl MallocProvider {
    /// The allocator; `None` for memory without a file, and for a library without a known sign.
    pub fn kind(&self) -> Option<AllocatorKind> {
        self.file().and_then(|file| file.kind)
    }

    /// The file; `None` for memory without one.
    pub const fn file(&self) -> Option<&ProviderFile> {
        match &self.place {
            ProviderPlace::File(file) => Some(file),
            ProviderPlace::Anonymous | ProviderPlace::Nowhere => None,
        }
    }
}

/// Reads which malloc a process uses now, on a host with pages of this size. It may answer late: a process that is not trusted
/// is read in a [`probe::TimedRead`].
///
/// # Errors
/// [`AllocatorNotSeen`] if it has ended, is a thread of the kernel, or may not be read.
pub fn effective_allocator(
    root: &Root,
    pid: u32,
    page: PageSize,
) -> Result<EffectiveAllocator, AllocatorNotSeen> {
    let mappings = Mappings::read(root, pid)?;
    let program = ProcessIdentity::read(root, pid)?.program;
    let program = program.ok_or(AllocatorNotSeen::NoProgram(pid))?;
    if mappings.all.is_empty() {
        return Err(AllocatorNotSeen::NoProgram(pid));
    }
    let memory = ProcessMemory::open(root, pid, page)?;
    let files = MapFiles::of(root, pid);
    let open = |mapping: &Mapping| files.open(mapping).map_err(|error| error.source.to_string());
    let word = |address: u64| {
        let mut word = [0; 8];
        let got = memory.read_at(address, &mut word).unwrap_or(0);
        (got == word.len()).then(|| u64::from_le_bytes(word))
    };
    let environment = match probe::is_secure_start(root, pid) {
        Ok(Some(true)) => EnvironmentUse::IgnoredAsSecure,
        Ok(Some(false)) => EnvironmentUse::Obeyed,
        Ok(None) | Err(_) => EnvironmentUse::Unknown,
    };
    let mut slots = SlotSearch::new(&mappings, &program);
    slots.read_files(&open, &word);
    Ok(slots.finish(&open, environment))
}

/// Collects what the slots of a process point into.
struct SlotSearch<'a> {
    mappings: &'a Mappings,
    program: &'a [u8],
    slots: Vec<FilledSlot<'a>>,
    /// Addresses at which a program jumps through its own slot.
    stubs: HashSet<u64>,
    bundled: Vec<Allocator>,
    is_static: bool,
    unread: Vec<UnreadImage>,
}

/// What a slot points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotTarget {
    File(FileKey),
    Anonymous,
    Nowhere,
}

/// What a slot holds.
struct FilledSlot<'a> {
    caller: &'a Mapping,
    /// Its number in [`FUNCTIONS`].
    function: usize,
    value: u64,
    /// Whether it is the address of the function in the caller's own file.
    is_own: bool,
}

struct CallingFile<'a> {
    mapping: &'a Mapping,
    /// By their number in [`FUNCTIONS`].
    functions: [bool; FUNCTIONS.len()],
    slots: usize,
}

impl<'a> CallingFile<'a> {
    fn note(callers: &mut Vec<Self>, slot: &FilledSlot<'a>) {
        let key = key_of(slot.caller);
        let at = callers.iter().position(|one| key_of(one.mapping) == key).unwrap_or_else(|| {
            callers.push(Self { mapping: slot.caller, functions: [false; 4], slots: 0 });
            callers.len() - 1
        });
        if let Some(is_called) = callers[at].functions.get_mut(slot.function) {
            *is_called = true;
            callers[at].slots += 1;
        }
    }

    fn named(&self, program: &[u8]) -> MallocCaller {
        let path = self.mapping.path().unwrap_or_default();
        let functions = FUNCTIONS.iter().zip(self.functions);
        MallocCaller {
            file: String::from_utf8_lossy(path).into_owned(),
            is_program: path == program,
            functions: functions
                .filter(|(_, is_called)| *is_called)
                .map(|(name, _)| *name)
                .collect(),
        }
    }
}

/// A file of which no more is read than the budget has left.
struct BudgetedFile<'a> {
    file: &'a MappedFile,
    left: &'a Cell<u64>,
}

impl Bytewise for BudgetedFile<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let length = buffer.len() as u64;
        let left = self.left.get().checked_sub(length);
        self.left.set(left.unwrap_or(0));
        left.map_or(0, |_| Bytewise::read_at(self.file, offset, buffer))
    }
}

fn is_elf(file: &dyn Bytewise) -> bool {
    let mut magic = [0; 4];
    file.read_at(0, &mut magic) == magic.len() && magic == *b"\x7fELF"
}

/// The executed mappings of each file.
fn executed_files(mappings: &Mappings) -> Vec<Vec<&Mapping>> {
    let mut files: Vec<Vec<&Mapping>> = Vec::new();
    let mut places = HashMap::new();
    for mapping in &mappings.all {
        if mapping.access.execute && mapping.path().is_some() {
            let place = *places.entry(key_of(mapping)).or_insert(files.len());
            match files.get_mut(place) {
                Some(file) => file.push(mapping),
                None => files.push(vec![mapping]),
            }
        }
    }
    files
}

type ImageOpener<'f> = &'f dyn Fn(&Mapping) -> Result<MappedFile, String>;
type SlotReader<'f> = &'f dyn Fn(u64) -> Option<u64>;

impl<'a> SlotSearch<'a> {
    fn new(mappings: &'a Mappings, program: &'a [u8]) -> Self {
        Self {
            mappings,
            program,
            slots: Vec::new(),
            stubs: HashSet::new(),
            bundled: Vec::new(),
            is_static: false,
            unread: Vec::new(),
        }
    }

    fn read_files(&mut self, open: ImageOpener<'_>, word: SlotReader<'_>) {
        let budget = Cell::new(READ_BYTES_MAX);
        for (number, image) in executed_files(self.mappings).into_iter().enumerate() {
            let file = if number < FILES_MAX {
                open(image[0])
            } else {
                Err(format!("more than {FILES_MAX} files are mapped"))
            };
            let read = file.and_then(|file| self.read_file(&image, &file, &budget, word));
            if let Err(why) = read {
                let file = String::from_utf8_lossy(image[0].path().unwrap_or_default());
                self.unread.push(UnreadImage { file: file.into_owned(), why });
            }
        }
    }

    /// Reads one file by its executed mappings.
    fn read_file(
        &mut self,
        image: &[&'a Mapping],
        file: &MappedFile,
        budget: &Cell<u64>,
        word: SlotReader<'_>,
    ) -> Result<(), String> {
        let file = BudgetedFile { file, left: budget };
        let Some(elf) = ElfImage::open(&file) else {
            return if is_elf(&file) { Err(NOT_64_BIT.to_owned()) } else { Ok(()) };
        };
        let is_program = image[0].path() == Some(self.program);
        if is_program {
            self.is_static = elf.interpreter.is_none();
            let signs = allocators_of_file(file.file, self.program, true);
            self.bundled = bundled_in(signs, self.is_static);
        }
        let names = FUNCTIONS.map(str::as_bytes);
        let slots = elf.slots(&names);
        let mut biases: Vec<u64> = Vec::new();
        let mut is_whole = elf.has_known_slots();
        for mapping in image {
            let Some(bias) = elf.bias(mapping.range.start, mapping.offset) else {
                continue;
            };
            let is_known = biases.contains(&bias) || biases.len() >= INSTANCES_MAX;
            if is_known || !self.is_loaded(&elf, bias, mapping) {
                continue;
            }
            biases.push(bias);
            for slot in &slots {
                match word(bias.wrapping_add(slot.address)) {
                    Some(value) => self.note(mapping, slot, bias, value),
                    None => is_whole = false,
                }
            }
        }
        if budget.get() == 0 {
            return Err("the tables of all files together are too large".to_owned());
        }
        is_whole.then_some(()).ok_or_else(|| "not all of its slots could be read".to_owned())
    }

    /// Whether a file begins where it does if it was loaded with this bias: Node.js maps a piece of itself once more.
    fn is_loaded(&self, elf: &ElfImage<'_>, bias: u64, mapping: &Mapping) -> bool {
        let Some((address, offset)) = elf.first_page() else {
            return false;
        };
        let first = self.mappings.at(bias.wrapping_add(address));
        first.is_some_and(|one| one.offset == offset && key_of(one) == key_of(mapping))
    }

    fn note(&mut self, caller: &'a Mapping, slot: &RelocationSlot, bias: u64, value: u64) {
        let own = match slot.own {
            OwnFunction::None => None,
            OwnFunction::Defined(address) => Some(bias.wrapping_add(address)),
            OwnFunction::Stub(address) => {
                self.stubs.insert(bias.wrapping_add(address));
                None
            }
        };
        // An optional function that no file has.
        if value != 0 {
            let is_own = own == Some(value);
            self.slots.push(FilledSlot { caller, function: slot.function, value, is_own });
        }
    }

    /// What a slot points into; `None` if it is not bound yet, or leads to another slot.
    fn target_of(&self, slot: &FilledSlot<'_>) -> Option<SlotTarget> {
        if self.stubs.contains(&slot.value) {
            return None;
        }
        match self.mappings.at(slot.value) {
            None => Some(SlotTarget::Nowhere),
            Some(mapping) if mapping.path().is_none() => Some(SlotTarget::Anonymous),
            Some(mapping) => {
                let key = key_of(mapping);
                (slot.is_own || key != key_of(slot.caller)).then_some(SlotTarget::File(key))
            }
        }
    }

    /// The callers by what their slots point into, that of most slots first; of as many, that which comes first in memory.
    fn bound(&self) -> Vec<(SlotTarget, Vec<CallingFile<'a>>)> {
        let mut bound: Vec<(SlotTarget, Vec<CallingFile<'a>>)> = Vec::new();
        for slot in &self.slots {
            let Some(target) = self.target_of(slot) else {
                continue;
            };
            let at = bound.iter().position(|(one, _)| *one == target).unwrap_or_else(|| {
                bound.push((target, Vec::new()));
                bound.len() - 1
            });
            CallingFile::note(&mut bound[at].1, slot);
        }
        let slots_of = |callers: &[CallingFile<'_>]| callers.iter().map(|one| one.slots).sum();
        bound.sort_by_key(|(_, callers)| Reverse::<usize>(slots_of(callers)));
        bound
    }

    fn finish(self, open: ImageOpener<'_>, environment: EnvironmentUse) -> EffectiveAllocator {
        let mut providers = Vec::new();
        for (target, callers) in self.bound().into_iter().take(PROVIDERS_MAX) {
            let place = match target {
                SlotTarget::Anonymous => ProviderPlace::Anonymous,
                SlotTarget::Nowhere => ProviderPlace::Nowhere,
                SlotTarget::File(key) => ProviderPlace::File(self.provider(key, open)),
            };
            let callers = callers.iter().map(|one| one.named(self.program)).collect();
            providers.push(MallocProvider { place, callers });
        }
        EffectiveAllocator {
            providers,
            is_static: self.is_static,
            bundled: self.bundled,
            environment,
            unread: self.unread,
        }
    }

    fn provider(&self, key: FileKey, open: ImageOpener<'_>) -> ProviderFile {
        let mapping = self.mappings.all.iter().find(|one| key_of(one) == key);
        let path = mapping.and_then(Mapping::path).unwrap_or_default();
        let is_deleted = mapping.is_some_and(Mapping::is_deleted);
        match mapping.map(open) {
            Some(Ok(file)) => ProviderFile::read(&file, path, path == self.program, is_deleted),
            _ => ProviderFile::by_name(path, is_deleted),
        }
    }
}
