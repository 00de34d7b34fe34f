//! What each mapping of a process costs: `/proc/PID/smaps`, a block of lines for each line of `/proc/PID/maps`.
//!
//! A block is the line of `maps`, then `Name: number kB` (KiB), `THPeligible: 0` and `VmFlags:`, two letters for each
//! flag. Fields came one by one: `Pss` 2.6.25, `Swap` 2.6.26, `VmFlags` 3.8, `Private_Hugetlb` 4.3,
//! `ShmemPmdMapped` 4.8, `THPeligible` 5.0, `FilePmdMapped` 5.4. What a kernel does not print is absent, not zero. Pages of
//! hugetlbfs are in `Shared_Hugetlb` and `Private_Hugetlb` only, not in `Rss`. Format: `fs/proc/task_mmu.c`.
//!
//! Cost: the kernel walks the page tables under the process's mmap lock for reading, a buffer of text at a time: 5 ms
//! for a GiB, and about 6 µs and 700 bytes of text for each mapping. Lines are read through one buffer, whatever the
//! length of the text. Needs the right to trace the process.

use units::Bytes;

use crate::error::{First, ParseError, ReadError};
use crate::kernel_file::Root;
use crate::process::maps::{self, Mapping};
use crate::text;

/// Declares the fields: a variant and its name in the file.
macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// A size in a block.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum SmapsField {
            $($(#[$doc])* $variant,)*
        }

        impl SmapsField {
            /// All of them, in the order of the file.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in the file.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            fn named(name: &[u8]) -> Option<Self> {
                $(if name == $name.as_bytes() {
                    return Some(Self::$variant);
                })*
                None
            }
        }
    };
}

fields! {
    /// Resident pages.
    Rss "Rss",
    /// Resident pages, each divided by the number of its users.
    Pss "Pss",
    /// Resident, mapped by this process alone, unchanged.
    PrivateClean "Private_Clean",
    /// Resident, mapped by this process alone, changed.
    PrivateDirty "Private_Dirty",
    /// Resident and without a file.
    Anonymous "Anonymous",
    /// The part of `Anonymous` in transparent huge pages.
    AnonHugePages "AnonHugePages",
    /// Shared memory in huge pages.
    ShmemPmdMapped "ShmemPmdMapped",
    /// Files in huge pages.
    FilePmdMapped "FilePmdMapped",
    /// Pages of hugetlbfs that others map too.
    SharedHugetlb "Shared_Hugetlb",
    /// Pages of hugetlbfs of this process alone.
    PrivateHugetlb "Private_Hugetlb",
    /// In swap.
    Swap "Swap",
    /// Locked into RAM.
    Locked "Locked",
}

const FIELDS: usize = SmapsField::ALL.len();

/// What the kernel knows of a mapping beyond its access: the letters of `VmFlags`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmFlag {
    /// `gd`: it grows downward, as the first thread's stack does.
    GrowsDown,
    /// `lo`: locked into RAM.
    Locked,
    /// `io`: memory of a device.
    Io,
    /// `pf`: page frames without accounting, as drivers map them; never in RSS.
    Frames,
    /// `ht`: pages of hugetlbfs.
    Hugetlb,
    /// `hg`: `MADV_HUGEPAGE`.
    HugePage,
    /// `nh`: `MADV_NOHUGEPAGE`.
    NoHugePage,
    /// `mg`: KSM may merge it.
    Mergeable,
    /// `ss`: a shadow stack.
    ShadowStack,
}

const FLAGS: [(&[u8], VmFlag); 9] = [
    (b"gd", VmFlag::GrowsDown),
    (b"lo", VmFlag::Locked),
    (b"io", VmFlag::Io),
    (b"pf", VmFlag::Frames),
    (b"ht", VmFlag::Hugetlb),
    (b"hg", VmFlag::HugePage),
    (b"nh", VmFlag::NoHugePage),
    (b"mg", VmFlag::Mergeable),
    (b"ss", VmFlag::ShadowStack),
];

/// The flags of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VmFlags(u16);

impl VmFlags {
    /// Whether it has the flag.
    pub const fn has(self, flag: VmFlag) -> bool {
        self.0 & (1 << flag as u16) != 0
    }

    fn parse(words: &[u8]) -> Self {
        let bits = text::words(words).filter_map(|word| {
            let (_, flag) = FLAGS.iter().find(|(letters, _)| *letters == word)?;
            Some(1 << *flag as u16)
        });
        Self(bits.fold(0, |all, bit: u16| all | bit))
    }
}

/// One mapping and what it costs.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmapsBlock {
    pub mapping: Mapping,
    sizes: [u64; FIELDS],
    present: u32,
    /// Whether it may get transparent huge pages; absent before 5.0.
    pub thp_eligible: Option<bool>,
    /// Its flags; absent before 3.8.
    pub flags: Option<VmFlags>,
}

impl SmapsBlock {
    /// A mapping without sizes.
    pub fn new(mapping: Mapping) -> Self {
        Self { mapping, ..Self::default() }
    }

    /// Returns a size; `None` if this kernel does not print it.
    pub fn get(&self, field: SmapsField) -> Option<Bytes> {
        let index = field as usize;
        (self.present & (1 << index) != 0).then(|| Bytes::new(self.sizes[index]))
    }

    /// Sets a size.
    pub fn set(&mut self, field: SmapsField, size: Bytes) {
        let index = field as usize;
        self.sizes[index] = size.get();
        self.present |= 1 << index;
    }

    /// Whether it has a flag; a kernel that prints no flags has none.
    pub fn has(&self, flag: VmFlag) -> bool {
        self.flags.is_some_and(|flags| flags.has(flag))
    }
}

/// Calls `each` for every mapping of a process, in order of address. Returns the first malformed line, if one is: the
/// other lines are read.
///
/// # Errors
/// [`ReadError`] if the file cannot be opened or read: the process has ended, or this user may not trace it.
pub fn each_smaps_block(
    root: &Root,
    pid: u32,
    each: &mut dyn FnMut(SmapsBlock),
) -> Result<Option<ParseError>, ReadError> {
    let mut reader = BlockOfLines::default();
    maps::each_line(root, pid, "smaps", &mut |number, line| {
        reader.line(number, line, each);
    })?;
    Ok(reader.finish(each))
}

/// Like [`each_smaps_block`], for a text.
pub fn parse_smaps(text: &[u8], each: &mut dyn FnMut(SmapsBlock)) -> Option<ParseError> {
    let mut reader = BlockOfLines::default();
    for (number, line) in text::lines(text) {
        reader.line(number, line, each);
    }
    reader.finish(each)
}

/// Collects the lines of a block until the next one begins.
#[derive(Default)]
struct BlockOfLines {
    block: Option<SmapsBlock>,
    first: First,
}

impl BlockOfLines {
    fn line(&mut self, number: usize, line: &[u8], each: &mut dyn FnMut(SmapsBlock)) {
        let expected = match field_of(line) {
            Some((name, value)) => match &mut self.block {
                Some(block) => match set(block, name, value) {
                    Some(()) => return,
                    None => "a number of kB",
                },
                None => "a mapping",
            },
            None => {
                if let Some(done) = self.block.take() {
                    each(done);
                }
                self.block = maps::parse_line(line).map(SmapsBlock::new);
                if self.block.is_some() {
                    return;
                }
                "a mapping or one of its sizes"
            }
        };
        let error = || ParseError::new("/proc/PID/smaps", number, expected, line);
        self.first.note(error);
    }

    fn finish(self, each: &mut dyn FnMut(SmapsBlock)) -> Option<ParseError> {
        if let Some(done) = self.block {
            each(done);
        }
        self.first.into_result().err()
    }
}

/// Returns name and value of a line `Name: value`; `None` for the first line of a block, which begins with an address.
fn field_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let name = &line[..colon];
    let is_name =
        !name.is_empty() && (name.iter()).all(|c| c.is_ascii_alphanumeric() || *c == b'_');
    is_name.then(|| (name, &line[colon + 1..]))
}

/// Sets a field of the block; `None` if the value is malformed. Fields without a use are skipped.
fn set(block: &mut SmapsBlock, name: &[u8], value: &[u8]) -> Option<()> {
    if let Some(field) = SmapsField::named(name) {
        let kib = text::trim(text::trim(value).strip_suffix(b"kB")?);
        block.set(field, Bytes::from_kib(text::number(kib)?));
    } else if name == b"THPeligible" {
        block.thp_eligible = Some(text::number(text::trim(value))? != 0);
    } else if name == b"VmFlags" {
        block.flags = Some(VmFlags::parse(value));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    /// Of a 6.1 guest.
    const TEXT: &[u8] = b"\
7f2a44000000-7f2a44021000 rw-p 00000000 00:00 0 \n\
Size:                132 kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\nRss:                  12 kB\n\
Pss:                   8 kB\nPss_Dirty:             8 kB\nShared_Clean:          0 kB\nShared_Dirty:          8 kB\n\
Private_Clean:         0 kB\nPrivate_Dirty:         4 kB\nReferenced:           12 kB\nAnonymous:            12 kB\n\
LazyFree:              0 kB\nAnonHugePages:         0 kB\nShmemPmdMapped:        0 kB\nFilePmdMapped:         0 kB\n\
Shared_Hugetlb:        0 kB\nPrivate_Hugetlb:       0 kB\nSwap:                 16 kB\nSwapPss:              16 kB\n\
Locked:                0 kB\nTHPeligible:    1\nVmFlags: rd wr mr mw me nr nh sd \n\
7ffd395d6000-7ffd395f7000 rw-p 00000000 00:00 0                          [stack]\n\
Size:                132 kB\nRss:                  20 kB\nPss:                  20 kB\nVmFlags: rd wr mr mw me gd ac \n";

    fn blocks(text: &[u8]) -> (Vec<SmapsBlock>, Option<ParseError>) {
        let mut blocks = Vec::new();
        let malformed = parse_smaps(text, &mut |block| blocks.push(block));
        (blocks, malformed)
    }

    #[test]
    fn a_block_is_a_mapping_and_its_sizes() {
        let (blocks, malformed) = blocks(TEXT);
        assert_eq!(malformed, None);
        let [arena, stack] = &blocks[..] else {
            panic!("{blocks:?}");
        };
        assert_eq!(arena.mapping.range.start, 0x7f2a_4400_0000);
        for (field, kib) in [
            (SmapsField::Rss, 12),
            (SmapsField::Pss, 8),
            (SmapsField::PrivateDirty, 4),
            (SmapsField::Swap, 16),
            (SmapsField::AnonHugePages, 0),
        ] {
            assert_eq!(arena.get(field), Some(Bytes::from_kib(kib)), "{field:?}");
        }
        assert_eq!(arena.thp_eligible, Some(true));
        assert!(arena.has(VmFlag::NoHugePage) && !arena.has(VmFlag::GrowsDown));
        assert!(stack.has(VmFlag::GrowsDown));
        assert_eq!(stack.mapping.name, b"[stack]");
    }

    #[test]
    fn what_the_kernel_does_not_print_is_absent() {
        let (blocks, _) = blocks(TEXT);
        assert_eq!(blocks[1].get(SmapsField::Swap), None);
        assert_eq!(blocks[1].thp_eligible, None);
    }

    #[test]
    fn a_bad_line_costs_itself_only() {
        let text = b"1000-2000 rw-p 0 0:0 0\nRss: -1 kB\nPss: 4 kB\nNew_Field: x\nzz\nRss: 3 kB\n\
            2000-3000 rw-p 0 0:0 0\nRss: 8 kB\n";
        let (blocks, malformed) = blocks(text);
        assert_eq!(
            malformed.unwrap().to_string(),
            "/proc/PID/smaps, line 2: expected a number of kB, found `Rss: -1 kB`"
        );
        assert_eq!(blocks[0].get(SmapsField::Rss), None);
        assert_eq!(blocks[0].get(SmapsField::Pss), Some(Bytes::from_kib(4)));
        assert_eq!(
            blocks[1].get(SmapsField::Rss),
            Some(Bytes::from_kib(8)),
            "a size without its mapping is no other mapping's"
        );
    }

    #[test]
    fn every_name_is_found() {
        for field in SmapsField::ALL {
            assert_eq!(SmapsField::named(field.name().as_bytes()), Some(*field));
        }
    }

    #[test]
    fn this_processs_blocks_are_its_mappings() {
        let pid = std::process::id();
        let mut rss = Bytes::ZERO;
        let mut here = false;
        let own = TEXT.as_ptr() as u64;
        let malformed = each_smaps_block(&Root::default(), pid, &mut |block| {
            rss += block.get(SmapsField::Rss).unwrap();
            here |= block.mapping.range.contains(&own);
        });
        assert_eq!(malformed.unwrap(), None);
        assert!(here && rss > Bytes::from_kib(100));
    }

    #[test]
    fn no_text_makes_it_panic() {
        hostile::feed(TEXT, |text| {
            blocks(text);
        });
    }

    #[test]
    fn a_cut_text_loses_nothing_before_the_cut() {
        let (whole, _) = blocks(TEXT);
        let second = memchr::memmem::find(TEXT, b"7ffd").unwrap();
        for cut in second..TEXT.len() {
            assert_eq!(blocks(&TEXT[..cut]).0[0], whole[0], "{cut}");
        }
    }
}
