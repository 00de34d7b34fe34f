//! The dynamic segment of an ELF file: what the dynamic linker reads. It is there also without section headers.
//!
//! Format: `elf(5)`, and the supplements of both processors for the types of relocations. Cost: the relocations and the
//! symbols that they name are read, 2 ms for a library of 100,000.

use std::ops::Range;

use super::{DYNAMIC_SYMBOLS, ElfImage, ElfMachine, SYMBOLS_MAX, bounded, bytes, length, text_at};
use super::{u16_at, u32_at, u64_at};

/// A type of table in the dynamic segment: `DT_NEEDED` and so on.
const NEEDED: u64 = 1;
const PLT_SIZE: u64 = 2;
const HASH: u64 = 4;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const RELA: u64 = 7;
const RELA_SIZE: u64 = 8;
const STRINGS_SIZE: u64 = 10;
const SONAME: u64 = 14;
const PLT: u64 = 23;

/// Entries beyond this number are not read.
const ENTRIES_MAX: usize = 1024;
/// Names of needed libraries beyond this number are not read.
const NEEDED_MAX: usize = 256;
/// Relocations are read to this size: Chromium has 10 MiB.
const RELOCATIONS_MAX: u64 = 32 << 20;
/// Of a file, this many slots are kept; four functions have two each where a file is linked as usual.
const SLOTS_MAX: usize = 64;

/// A place in memory into which the dynamic linker writes the address of a function of another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RelocationSlot {
    /// Its address in the file's own numbering: [`ElfImage::bias`] is added.
    pub(crate) address: u64,
    /// Which of the wanted functions.
    pub(crate) function: usize,
    /// Where the file itself has the function, in its own numbering.
    pub(crate) own: OwnFunction,
}

/// What a file has under the name of a function, besides the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnFunction {
    /// Nothing: it is another file's.
    None,
    /// The function, at this address.
    Defined(u64),
    /// A jump through the slot, at this address, which is the function's address for all files: a program at a fixed address
    /// takes it (`&free`).
    Stub(u64),
}

/// The entries of a dynamic segment, in their order.
pub(crate) struct DynamicTable(Vec<(u64, u64)>);

impl DynamicTable {
    fn get(&self, tag: u64) -> Option<u64> {
        self.0.iter().find(|(one, _)| *one == tag).map(|(_, value)| *value)
    }
}

impl ElfImage<'_> {
    /// Reads the dynamic segment; `None` in a static program.
    pub(crate) fn dynamic(&self) -> Option<DynamicTable> {
        let range = self.dynamic.as_ref()?;
        let entries = bounded(self.file, range, ENTRIES_MAX as u64 * 16)?;
        let pairs = entries.chunks_exact(16).map_while(|row| {
            let tag = u64_at(row, 0)?;
            // DT_NULL ends it.
            (tag != 0).then_some((tag, u64_at(row, 8)?))
        });
        Some(DynamicTable(pairs.collect()))
    }

    /// The name by which other files ask for it.
    pub(crate) fn soname(&self) -> Option<Vec<u8>> {
        let table = self.dynamic()?;
        let at = table.get(SONAME)?;
        self.dynamic_text(&table, at)
    }

    /// Names of the libraries that it asks for.
    pub(crate) fn needed(&self) -> Vec<Vec<u8>> {
        let Some(table) = self.dynamic() else {
            return Vec::new();
        };
        let offsets = table.0.iter().filter(|(tag, _)| *tag == NEEDED).map(|(_, at)| *at);
        offsets.take(NEEDED_MAX).filter_map(|at| self.dynamic_text(&table, at)).collect()
    }

    fn dynamic_text(&self, table: &DynamicTable, at: u64) -> Option<Vec<u8>> {
        let start = self.offset_of(table.get(STRINGS)?.checked_add(at)?)?;
        let text = bytes(self.file, start, 256)?;
        Some(text_at(&text, 0).to_vec())
    }

    /// Returns the slots of these functions.
    pub(crate) fn slots(&self, functions: &[&[u8]]) -> Vec<RelocationSlot> {
        let table = self.dynamic();
        table.and_then(|table| self.slots_of(&table, functions)).unwrap_or_default()
    }

    /// Whether the relocations of its processor are known here.
    pub(crate) const fn has_known_slots(&self) -> bool {
        slot_types(self.machine).is_some()
    }

    fn slots_of(&self, table: &DynamicTable, functions: &[&[u8]]) -> Option<Vec<RelocationSlot>> {
        let mut wanted = Vec::new();
        for (start, size) in [(PLT, PLT_SIZE), (RELA, RELA_SIZE)] {
            if let (Some(start), Some(size)) = (table.get(start), table.get(size)) {
                self.each_slot(start, size, &mut |address, symbol| wanted.push((address, symbol)));
            }
        }
        let last = wanted.iter().map(|(_, symbol)| *symbol).max()?;
        let start = self.offset_of(table.get(SYMBOLS)?)?;
        let end = start.saturating_add((u64::from(last) + 1).saturating_mul(24));
        let symbols = bounded(self.file, &(start..end), SYMBOLS_MAX)?;
        let names = self.dynamic_strings(table)?;
        let slot = |(address, symbol): (u64, u32)| {
            let row = symbols.get(usize::try_from(symbol).ok()?.checked_mul(24)?..)?;
            let name = names.get(usize::try_from(u32_at(row, 0)?).ok()?..)?;
            let is_it =
                |one: &&[u8]| name.strip_prefix(*one).is_some_and(|rest| rest.first() == Some(&0));
            let function = functions.iter().position(is_it)?;
            let own = match (u16_at(row, 6)?, u64_at(row, 8)?) {
                // Section 0: the symbol is another file's.
                (0, 0) => OwnFunction::None,
                (0, address) => OwnFunction::Stub(address),
                (_, address) => OwnFunction::Defined(address),
            };
            Some(RelocationSlot { address, function, own })
        };
        Some(wanted.into_iter().filter_map(slot).take(SLOTS_MAX).collect())
    }

    /// Calls `each` with address and symbol of every relocation by which a function of another file is reached.
    fn each_slot(&self, start: u64, size: u64, each: &mut dyn FnMut(u64, u32)) -> Option<()> {
        let types = slot_types(self.machine)?;
        let start = self.offset_of(start)?;
        let rows = bounded(self.file, &(start..start.saturating_add(size)), RELOCATIONS_MAX)?;
        for row in rows.chunks_exact(24) {
            if types.contains(&u32_at(row, 8)?) {
                each(u64_at(row, 0)?, u32_at(row, 12)?);
            }
        }
        Some(())
    }

    fn dynamic_strings(&self, table: &DynamicTable) -> Option<Vec<u8>> {
        let start = self.offset_of(table.get(STRINGS)?)?;
        let end = start.saturating_add(table.get(STRINGS_SIZE)?);
        bounded(self.file, &(start..end), SYMBOLS_MAX)
    }

    /// Calls `each` with the name of every dynamic symbol that the file defines, where no section header shows them.
    pub(super) fn each_dynamic_symbol(&self, each: &mut dyn FnMut(&[u8])) -> Option<()> {
        if self.sections.iter().any(|one| one.kind == DYNAMIC_SYMBOLS) {
            return None;
        }
        let table = self.dynamic()?;
        let names = self.dynamic_strings(&table)?;
        let symbols = self.dynamic_symbols(&table)?;
        for row in bounded(self.file, &symbols, SYMBOLS_MAX)?.chunks_exact(24) {
            if u16_at(row, 6)? != 0 {
                each(text_at(&names, u32_at(row, 0)?));
            }
        }
        Some(())
    }

    /// Where the dynamic symbols are. Their number stands in the old hash table. Without one they are taken to reach to their
    /// names, before which linkers put them: what lies between is read as symbols too, and names nothing.
    fn dynamic_symbols(&self, table: &DynamicTable) -> Option<Range<u64>> {
        let start = self.offset_of(table.get(SYMBOLS)?)?;
        let counted = || {
            let hash = bytes(self.file, self.offset_of(table.get(HASH)?)?, 8)?;
            Some(start.saturating_add(u64::from(u32_at(&hash, 4)?) * 24))
        };
        let until_names = || self.offset_of(table.get(STRINGS)?).filter(|end| *end > start);
        Some(start..counted().or_else(until_names)?)
    }

    /// What is added to the file's addresses, where it is mapped at `start` from `offset` on to be executed.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let page = |at: u64| at & !4095;
        let executed = self.loads.iter().filter(|one| one.is_executed);
        let mut covering = executed.filter(|one| {
            let end = one.in_file.end.saturating_add(4095);
            (page(one.in_file.start)..end).contains(&offset)
        });
        let load = covering.next()?;
        let address = load.address.wrapping_add(offset.wrapping_sub(load.in_file.start));
        Some(start.wrapping_sub(address))
    }

    /// Address and place in the file of its first mapped page.
    pub(crate) fn first_page(&self) -> Option<(u64, u64)> {
        let load = self.loads.first()?;
        Some((load.address & !4095, load.in_file.start & !4095))
    }

    /// Whether it has a function of this name for other files.
    pub(crate) fn defines(&self, function: &[u8]) -> bool {
        let mut is_defined = false;
        self.each_defined(false, &mut |name| is_defined |= name == function);
        is_defined
    }

    /// Where in the file an address of its own numbering is.
    fn offset_of(&self, address: u64) -> Option<u64> {
        self.loads.iter().find_map(|load| {
            let into = address.checked_sub(load.address)?;
            (into < length(&load.in_file)).then(|| load.in_file.start.saturating_add(into))
        })
    }
}

/// The types of relocations that hold the address of a function: `GLOB_DAT` and `JUMP_SLOT`.
const fn slot_types(machine: ElfMachine) -> Option<[u32; 2]> {
    match machine {
        ElfMachine::X86_64 => Some([6, 7]),
        ElfMachine::Aarch64 => Some([1025, 1026]),
        ElfMachine::Other(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::everything;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const FUNCTIONS: [&[u8]; 4] = [b"malloc", b"free", b"calloc", b"realloc"];

    /// A library that this test runs with.
    fn library(name: &str) -> Vec<u8> {
        let own = std::process::id();
        let mappings = probe::Mappings::read(&probe::Root::default(), own).unwrap().all;
        let paths = mappings.iter().filter_map(|one| std::str::from_utf8(one.path()?).ok());
        let path = paths.into_iter().find(|path| path.contains(name)).unwrap();
        std::fs::read(path).unwrap()
    }

    fn without_sections(mut file: Vec<u8>) -> Vec<u8> {
        file[40..48].fill(0);
        file[58..64].fill(0);
        file
    }

    fn defined(file: &[u8]) -> BTreeSet<Vec<u8>> {
        let mut names = BTreeSet::new();
        let image = ElfImage::open(&file).unwrap();
        image.each_defined(false, &mut |name| {
            names.insert(name.to_vec());
        });
        names
    }

    #[test]
    fn the_c_library_has_a_name_an_id_and_slots_of_its_own_malloc() {
        let file = library("/libc.so.6");
        let file = file.as_slice();
        let image = ElfImage::open(&file).unwrap();
        assert_eq!(image.soname().as_deref(), Some(b"libc.so.6".as_slice()));
        assert!(image.build_id().is_none_or(|id| id.len() >= 16));
        let slots = image.slots(&FUNCTIONS);
        assert!(slots.iter().any(|slot| slot.function == 0), "{slots:?}");
        assert!(slots.iter().all(|slot| matches!(slot.own, OwnFunction::Defined(_))), "{slots:?}");
    }

    #[test]
    fn a_library_names_what_it_needs_and_calls() {
        let file = library("/libgcc_s.so.1");
        let file = file.as_slice();
        let image = ElfImage::open(&file).unwrap();
        assert_eq!(image.needed(), [b"libc.so.6"]);
        let slots = image.slots(&FUNCTIONS);
        let functions: BTreeSet<usize> = slots.iter().map(|slot| slot.function).collect();
        assert!(functions.contains(&0) && functions.contains(&1), "{slots:?}");
        assert!(slots.iter().all(|slot| slot.own == OwnFunction::None), "{slots:?}");
    }

    #[test]
    fn without_section_headers_the_same_is_found() {
        for name in ["/libc.so.6", "/libgcc_s.so.1"] {
            let whole = library(name);
            let bare = without_sections(whole.clone());
            let (whole_file, bare_file) = (whole.as_slice(), bare.as_slice());
            let [with, without] =
                [&whole_file, &bare_file].map(|file| ElfImage::open(file).unwrap());
            assert_eq!(with.slots(&FUNCTIONS), without.slots(&FUNCTIONS), "{name}");
            assert_eq!(with.build_id(), without.build_id(), "{name}");
            assert_eq!(with.needed(), without.needed(), "{name}");
            let (expected, found) = (defined(&whole), defined(&bare));
            assert!(expected.len() > 50 && found.is_superset(&expected), "{name}");
        }
    }

    #[test]
    fn the_bias_is_where_the_file_was_loaded() {
        let file = library("/libgcc_s.so.1");
        let file = file.as_slice();
        let image = ElfImage::open(&file).unwrap();
        let executed = image.loads.iter().find(|load| load.is_executed).unwrap();
        let start = 0x7000_0000_0000 + (executed.address & !4095);
        let offset = executed.in_file.start & !4095;
        assert_eq!(image.bias(start, offset), Some(0x7000_0000_0000));
        assert_eq!(image.bias(start, 1 << 40), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_forged_dynamic_segment_is_no_panic(
            words in prop::collection::vec((0..64_usize, prop_oneof![any::<u64>(), 0..1_u64 << 20]), 1..8)
        ) {
            let mut file = without_sections(library("/libgcc_s.so.1"));
            let range = {
                let file = file.as_slice();
                ElfImage::open(&file).unwrap().dynamic.unwrap()
            };
            for (place, word) in words {
                let at = usize::try_from(range.start).unwrap() + place * 8;
                file[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            everything(&file);
        }

        #[test]
        fn forged_program_headers_are_no_panic(
            words in prop::collection::vec((0..77_usize, prop_oneof![any::<u64>(), 0..1_u64 << 20]), 1..8)
        ) {
            let mut file = without_sections(library("/libgcc_s.so.1"));
            for (place, word) in words {
                file[64 + place * 8..72 + place * 8].copy_from_slice(&word.to_le_bytes());
            }
            everything(&file);
        }
    }
}
