//! A bounded reader of ELF files: sections, symbols, texts. 64-bit little-endian only, as x86-64 and aarch64 are.
//!
//! The file belongs to the process under examination and may be forged: every read is bounded, every offset checked by
//! the read itself. Format: `elf(5)`. Cost: a symbol table of 100,000 entries 4 ms; a text search 1 GiB/s.
//!
//! Not the reader of `object` (0.39): it reads a table whole or not at all, and its cache keeps a copy of every symbol's name.
//! A forged file of 1.3 MiB, 50,000 symbols with names of up to 4000 bytes that share theirs, cost it 98 MiB.

mod dynamic;

use std::ops::Range;

pub(crate) use dynamic::{OwnFunction, RelocationSlot};

/// Something that can be read at an offset.
pub(crate) trait Bytewise {
    /// Reads until `buffer` is full or the data ends; returns the number of bytes.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize;
}

impl Bytewise for std::fs::File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset.saturating_add(filled as u64);
            match std::os::unix::fs::FileExt::read_at(self, &mut buffer[filled..], at) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(got) => filled += got,
            }
        }
        filled
    }
}

impl Bytewise for probe::MappedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        Self::read_at(self, offset, buffer).unwrap_or(0)
    }
}

/// The parts of an ELF file that matter here.
pub(crate) struct ElfImage<'a> {
    file: &'a dyn Bytewise,
    sections: Vec<ElfSection>,
    /// Name of the dynamic linker, for instance `/lib/ld-musl-x86_64.so.1`.
    pub(crate) interpreter: Option<Vec<u8>>,
    /// Read-only data in the file, by its segments.
    constants: Vec<Range<u64>>,
    /// The last address of the image, relative to its first page, with its zeroed data.
    pub(crate) memory_size: u64,
    pub(crate) machine: ElfMachine,
    loads: Vec<LoadSegment>,
    /// Where in the file its dynamic segment is.
    dynamic: Option<Range<u64>>,
    /// Where in the file notes are.
    notes: Vec<Range<u64>>,
}

/// The processor that a file is for.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElfMachine {
    X86_64,
    Aarch64,
    /// Another, by its number in `elf.h`.
    Other(u16),
}

impl ElfMachine {
    /// That of this program.
    pub const HOST: Self = if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 };

    const fn of(number: u16) -> Self {
        match number {
            62 => Self::X86_64,
            183 => Self::Aarch64,
            other => Self::Other(other),
        }
    }
}

/// A piece of the file that is mapped.
struct LoadSegment {
    address: u64,
    in_file: Range<u64>,
    is_executed: bool,
}

struct ElfSection {
    name: Vec<u8>,
    kind: u32,
    range: Range<u64>,
    link: usize,
}

/// Symbols of a program are read to this size, and so are their names.
const SYMBOLS_MAX: u64 = 24 << 20;
/// Headers beyond these numbers are not read.
const SECTIONS_MAX: usize = 4096;
const SEGMENTS_MAX: usize = 128;

/// `SHT_SYMTAB`.
const SYMBOL_TABLE: u32 = 2;
/// `SHT_DYNSYM`.
const DYNAMIC_SYMBOLS: u32 = 11;
/// `SHT_NOBITS`: a section without data in the file.
const NO_BITS: u32 = 8;

impl<'a> ElfImage<'a> {
    /// Reads the headers of a file; `None` if it is no such ELF file.
    pub(crate) fn open(file: &'a dyn Bytewise) -> Option<Self> {
        let header = bytes(file, 0, 64)?;
        // Class 64-bit, little-endian.
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let mut image = Self {
            file,
            sections: Vec::new(),
            interpreter: None,
            constants: Vec::new(),
            memory_size: 0,
            machine: ElfMachine::of(u16_at(&header, 18)?),
            loads: Vec::new(),
            dynamic: None,
            notes: Vec::new(),
        };
        image.read_segments(&header);
        image.read_sections(&header);
        Some(image)
    }

    fn read_segments(&mut self, header: &[u8]) -> Option<()> {
        let start = u64_at(header, 32)?;
        let count = usize::from(u16_at(header, 56)?).min(SEGMENTS_MAX);
        let table = bytes(self.file, start, count * 56)?;
        let mut first = u64::MAX;
        let mut last = 0;
        for row in table.chunks_exact(56) {
            let (kind, flags) = (u32_at(row, 0)?, u32_at(row, 4)?);
            let (offset, address) = (u64_at(row, 8)?, u64_at(row, 16)?);
            let (in_file, in_memory) = (u64_at(row, 32)?, u64_at(row, 40)?);
            let range = offset..offset.saturating_add(in_file);
            match kind {
                1 => {
                    first = first.min(address & !4095);
                    last = last.max(address.saturating_add(in_memory));
                    // Readable, perhaps executable, not writable.
                    if flags & 2 == 0 {
                        self.constants.push(range.clone());
                    }
                    let is_executed = flags & 1 != 0;
                    self.loads.push(LoadSegment { address, in_file: range, is_executed });
                }
                2 => self.dynamic = Some(range),
                3 => {
                    let name = bytes(self.file, offset, usize::try_from(in_file).ok()?.min(256))?;
                    let end = memchr::memchr(0, &name).unwrap_or(name.len());
                    self.interpreter = Some(name[..end].to_vec());
                }
                4 => self.notes.push(range),
                _ => {}
            }
        }
        self.memory_size = last.saturating_sub(first);
        Some(())
    }

    fn read_sections(&mut self, header: &[u8]) -> Option<()> {
        let start = u64_at(header, 40)?;
        let count = usize::from(u16_at(header, 60)?).min(SECTIONS_MAX);
        let table = bytes(self.file, start, count * 64)?;
        let names_row = table.get(usize::from(u16_at(header, 62)?) * 64..)?;
        let names_size = usize::try_from(u64_at(names_row, 32)?).ok()?.min(1 << 20);
        let names = bytes(self.file, u64_at(names_row, 24)?, names_size)?;
        for row in table.chunks_exact(64) {
            let (offset, size) = (u64_at(row, 24)?, u64_at(row, 32)?);
            self.sections.push(ElfSection {
                name: text_at(&names, u32_at(row, 0)?).to_vec(),
                kind: u32_at(row, 4)?,
                range: offset..offset.saturating_add(size),
                link: usize::try_from(u32_at(row, 40)?).ok()?,
            });
        }
        Some(())
    }

    /// The build id that the linker wrote, in hexadecimal digits.
    pub(crate) fn build_id(&self) -> Option<String> {
        const NOTES_MAX: u64 = 4096;
        self.notes.iter().find_map(|range| build_id_in(&bounded(self.file, range, NOTES_MAX)?))
    }

    /// Returns the start of a section, at most `size_max` bytes.
    pub(crate) fn section(&self, name: &str, size_max: usize) -> Option<Vec<u8>> {
        let section = self.find_section(name)?;
        let size = usize::try_from(length(&section.range)).ok()?.min(size_max);
        bytes(self.file, section.range.start, size)
    }

    fn find_section(&self, name: &str) -> Option<&ElfSection> {
        let mut sections = self.sections.iter();
        sections.find(|one| one.name == name.as_bytes() && one.kind != NO_BITS)
    }

    /// Calls `each` with the name of every symbol that the file defines, of the dynamic table and, if wanted, of the
    /// full one.
    pub(crate) fn each_defined(&self, with_full: bool, each: &mut dyn FnMut(&[u8])) {
        let is_wanted = |kind| kind == DYNAMIC_SYMBOLS || (with_full && kind == SYMBOL_TABLE);
        for table in self.sections.iter().filter(|one| is_wanted(one.kind)) {
            self.each_symbol(table, each);
        }
        self.each_dynamic_symbol(each);
    }

    fn each_symbol(&self, table: &ElfSection, each: &mut dyn FnMut(&[u8])) -> Option<()> {
        let names = self.sections.get(table.link)?;
        let names = bounded(self.file, &names.range, SYMBOLS_MAX)?;
        let symbols = bounded(self.file, &table.range, SYMBOLS_MAX)?;
        for row in symbols.chunks_exact(24) {
            // Section 0: the symbol is another file's.
            if u16_at(row, 6)? != 0 {
                each(text_at(&names, u32_at(row, 0)?));
            }
        }
        Some(())
    }

    /// Searches the read-only data for texts, at most `size_max` bytes of it. Calls `found` with the number of the text
    /// and what follows it, up to [`FOLLOWING_MAX`] bytes, until it returns true.
    pub(crate) fn search(
        &self,
        needles: &[&[u8]],
        size_max: u64,
        found: &mut dyn FnMut(usize, &[u8]) -> bool,
    ) {
        let of_section = |name| self.find_section(name).map(|one| vec![one.range.clone()]);
        let ranges = of_section(".rodata").unwrap_or_else(|| self.constants.clone());
        let mut left = size_max;
        for range in ranges {
            let end = range.start.saturating_add(length(&range).min(left));
            left -= end - range.start;
            if search_range(self.file, &(range.start..end), needles, found) {
                return;
            }
        }
    }
}

/// A search returns this many bytes behind a text.
pub(crate) const FOLLOWING_MAX: usize = 128;

fn search_range(
    file: &dyn Bytewise,
    range: &Range<u64>,
    needles: &[&[u8]],
    found: &mut dyn FnMut(usize, &[u8]) -> bool,
) -> bool {
    const WINDOW: usize = 256 << 10;
    /// A text that begins in the last bytes of a window is found in the next one.
    const OVERLAP: usize = 2 * FOLLOWING_MAX;
    let mut window = vec![0; WINDOW];
    let mut at = range.start;
    while at < range.end {
        let wanted = usize::try_from(range.end - at).unwrap_or(WINDOW).min(WINDOW);
        let got = file.read_at(at, &mut window[..wanted]);
        let is_last = got < WINDOW;
        for (number, needle) in needles.iter().enumerate() {
            for place in memchr::memmem::find_iter(&window[..got], needle) {
                let start = place + needle.len();
                let is_cut = place > WINDOW - OVERLAP && !is_last;
                let end = (start + FOLLOWING_MAX).min(got);
                if !is_cut && found(number, &window[start..end]) {
                    return true;
                }
            }
        }
        if is_last {
            return false;
        }
        at += (WINDOW - OVERLAP) as u64;
    }
    false
}

/// Looks for GNU's note 3 among notes.
fn build_id_in(mut notes: &[u8]) -> Option<String> {
    /// Linkers write 20 bytes, of SHA-1.
    const ID_LEN_MAX: usize = 64;
    loop {
        let [name, size] = [u32_at(notes, 0)?, u32_at(notes, 4)?].map(usize::try_from);
        let (name, size) = (name.ok()?, size.ok()?);
        let kind = u32_at(notes, 8)?;
        let start = name.checked_next_multiple_of(4)?.checked_add(12)?;
        let id = notes.get(start..start.checked_add(size)?)?;
        if kind == 3 && notes.get(12..)?.starts_with(b"GNU\0") {
            let id = id.iter().take(ID_LEN_MAX);
            return Some(id.map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(start.checked_add(size.checked_next_multiple_of(4)?)?..)?;
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Reads a range, at most `size_max` bytes, or what the file has of it.
fn bounded(file: &dyn Bytewise, range: &Range<u64>, size_max: u64) -> Option<Vec<u8>> {
    let size = usize::try_from(length(range).min(size_max)).ok()?;
    bytes(file, range.start, size)
}

/// Reads in steps, so that a forged size costs no more memory than the file has.
fn bytes(file: &dyn Bytewise, offset: u64, size: usize) -> Option<Vec<u8>> {
    const STEP: usize = 1 << 20;
    let mut all = Vec::new();
    while all.len() < size {
        let start = all.len();
        let step = (size - start).min(STEP);
        all.resize(start + step, 0);
        let got = file.read_at(offset.checked_add(start as u64)?, &mut all[start..]);
        all.truncate(start + got);
        if got < step {
            break;
        }
    }
    Some(all)
}

/// Returns the text from an offset to its zero byte. Longer ones are cut, so that a million symbols that share one cost little.
fn text_at(texts: &[u8], offset: u32) -> &[u8] {
    const TEXT_LEN_MAX: usize = 1024;
    let rest = usize::try_from(offset).ok().and_then(|at| texts.get(at..));
    let rest = rest.unwrap_or_default();
    let rest = &rest[..rest.len().min(TEXT_LEN_MAX)];
    &rest[..memchr::memchr(0, rest).unwrap_or(rest.len())]
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_le_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    pub(super) fn everything(file: &[u8]) -> usize {
        let Some(image) = ElfImage::open(&file) else {
            return 0;
        };
        let mut symbols = 0;
        image.each_defined(true, &mut |_| symbols += 1);
        image.search(&[b"glibc"], 1 << 20, &mut |_, _| false);
        let _ = image.section(".go.buildinfo", 1 << 10);
        let _ = (image.soname(), image.needed(), image.build_id(), image.bias(4096, 0));
        image.slots(&[b"malloc", b"free"]);
        symbols
    }

    #[test]
    fn this_program_defines_symbols_and_has_an_interpreter() {
        let file = own();
        let file = file.as_slice();
        let image = ElfImage::open(&file).unwrap();
        let interpreter = image.interpreter.clone().unwrap();
        assert!(interpreter.starts_with(b"/lib"), "{interpreter:?}");
        assert!(image.memory_size > 100_000);
        let mut has_main = false;
        image.each_defined(true, &mut |name| has_main |= name == b"main");
        assert!(has_main);
    }

    /// Found in the constants of this very test.
    const NEEDLE: &[u8] = b"a text that nothing else has, version ";

    #[test]
    fn a_text_is_found_with_what_follows_it() {
        let long = [&vec![b'.'; (256 << 10) - 70], NEEDLE, b"7.1 and more"].concat();
        let mut following = Vec::new();
        let range = 0..long.len() as u64;
        let file = long.as_slice();
        search_range(&file, &range, &[b"absent", NEEDLE], &mut |number, text| {
            following.push((number, text.to_vec()));
            false
        });
        let expected = [(1, b"7.1 and more".to_vec())];
        assert_eq!(following, expected, "also over the edge of a window");
    }

    impl Bytewise for &[u8] {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let start = start.min(self.len());
            let length = buffer.len().min(self.len() - start);
            buffer[..length].copy_from_slice(&self[start..start + length]);
            length
        }
    }

    #[test]
    fn a_cut_or_damaged_file_is_read_as_far_as_it_goes() {
        let file = own();
        let start = &file[..file.len().min(4096)];
        for cut in 0..start.len() {
            everything(&start[..cut]);
        }
        for at in 0..64 {
            let mut damaged = file[..200_000].to_vec();
            damaged[at] = !damaged[at];
            everything(&damaged);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(bytes: Vec<u8>, header: [u8; 58]) {
            everything(&bytes);
            everything(&[b"\x7fELF\x02\x01".as_slice(), &header, &bytes].concat());
        }
    }
}
