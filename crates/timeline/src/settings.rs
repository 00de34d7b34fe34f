//! What is known of each setting of the kernel that a rule names: its default, which values it takes, its unit and scope,
//! when it takes effect, and what takes it back.
//!
//! Read in the kernel's own documentation and sources; `source` names the place. A value that depends on the kernel's
//! version stands with the version from which it holds.

mod defaults;
mod table;

use units::PageSize;

use crate::facts::{Fact, KernelVersion};

pub use defaults::{
    ADMIN_RESERVE_MAX, COMPACTION_PROACTIVENESS_DEFAULT, DIRTY_BACKGROUND_RATIO_DEFAULT,
    DIRTY_EXPIRE_DEFAULT, DIRTY_RATIO_DEFAULT, MAX_PTES_NONE_DEFAULT, MIN_FREE_MAX_KIB,
    MIN_FREE_OF_HUGE_PAGES_MAX, SWAPPINESS_DEFAULT, WATERMARK_SCALE_DEFAULT,
    ZSWAP_MAX_POOL_DEFAULT, default_min_free, huge_page_of,
};
pub use table::ALL;

/// The most that a setting of the kernel's type `int` takes.
pub const INT_MAX: u64 = (1 << 31) - 1;
/// The most that a setting of the kernel's type `long` takes.
pub const LONG_MAX: u64 = (1 << 63) - 1;

/// A setting of the kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Dotted name, as the fact's where sources have it: `vm.swappiness`, `thp.enabled`, `memory.high`.
    pub name: &'static str,
    /// The kernel file; `*` stands for one name, `**` for a cgroup's path.
    pub file: &'static str,
    /// The kernel since which it exists; empty for what is older than 2.6.16.
    pub since: &'static str,
    /// The unit of its numbers.
    pub unit: SettingUnit,
    /// Which values it takes, the newest kernel's last.
    pub values: &'static [FromKernel<AllowedValues>],
    /// What holds where nobody sets it, the newest kernel's last.
    pub default: &'static [FromKernel<DefaultValue>],
    /// The setting of which only one of the two is in effect: the other is shown as 0.
    pub counterpart: Option<Fact>,
    /// To what it applies.
    pub scope: SettingScope,
    /// When a new value takes effect.
    pub takes_effect: &'static str,
    /// What takes a change back.
    pub undone_by: &'static str,
    /// Where that is documented: a file of the kernel's sources.
    pub source: &'static str,
}

/// What holds from a version of the kernel on.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FromKernel<T> {
    pub kernel: KernelVersion,
    /// What holds.
    pub value: T,
}

/// The unit of a setting's numbers.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingUnit {
    /// A count, a choice or a switch.
    Plain,
    Bytes,
    /// KiB, which the kernel calls kB.
    Kib,
    /// Base pages.
    Pages,
    /// Pages, as a power of two.
    PowerOfTwoPages,
    /// Hundredths.
    Percent,
    /// Ten thousandths.
    PerTenThousand,
    /// Hundredths of a second.
    Centiseconds,
    /// MiB a second.
    MibPerSecond,
}

/// Which texts a setting takes.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedValues {
    /// A whole number within these.
    Number { min: u64, max: u64 },
    /// Several numbers, with blanks between them.
    Numbers {
        /// At least as many.
        min_count: usize,
        /// At most as many.
        max_count: usize,
    },
    /// One of these words. The file shows all, the chosen one in brackets.
    Choice(&'static [&'static str]),
    /// On or off: `Y` or `N`, `1` or `0`.
    Switch,
    /// Bits, shown in hexadecimal; `y` sets all that the hardware has, `n` none.
    Bits,
    /// Bytes, or `max` for no limit. The kernel rounds down to whole pages.
    Limit,
    /// Bytes, or -1 for no limit; the file shows a number near 2⁶³ for none. The kernel rounds down to whole pages.
    LimitV1,
    /// A number that is written to do something once. The file keeps nothing.
    Trigger { min: u64, max: u64 },
    /// A word that the file's own text lists.
    Word,
}

/// What a setting is where nobody sets it.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    Number(u64),
    Word(&'static str),
    /// The kernel computes it when it starts; how, in words.
    Computed(&'static str),
    /// Chosen when the kernel was built.
    BuildOption(&'static str),
    /// There is none: it is written only to do something.
    Nothing,
}

/// To what a setting applies.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingScope {
    /// All of the host.
    Host,
    /// Each network namespace has its own.
    NetworkNamespace,
    Device,
    /// A cgroup and those below it.
    Cgroup,
    Process,
}

impl Setting {
    /// The setting of a fact.
    pub fn of(fact: Fact) -> Option<&'static Self> {
        Self::named(fact.name)
    }

    /// The setting of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|setting| setting.name == name)
    }

    /// What holds on this kernel where nobody sets it; on the newest where the kernel is unknown.
    pub fn default_on(&self, kernel: Option<KernelVersion>) -> DefaultValue {
        on(self.default, kernel).unwrap_or(DefaultValue::Nothing)
    }

    /// Which values this kernel takes; the newest where the kernel is unknown.
    pub fn values_on(&self, kernel: Option<KernelVersion>) -> AllowedValues {
        on(self.values, kernel).unwrap_or(AllowedValues::Word)
    }
}

/// What holds on a kernel: what the newest version up to it brought, or the oldest that is known.
fn on<T: Copy>(all: &[FromKernel<T>], kernel: Option<KernelVersion>) -> Option<T> {
    let is_there = |from: &&FromKernel<T>| kernel.is_none_or(|kernel| from.kernel <= kernel);
    all.iter().rev().find(is_there).or(all.first()).map(|from| from.value)
}

impl AllowedValues {
    /// Whether the kernel takes this text.
    pub fn allow(self, text: &str) -> bool {
        let number = || text.parse::<u64>().ok();
        let within = |min, max| number().is_some_and(|number| (min..=max).contains(&number));
        match self {
            Self::Number { min, max } | Self::Trigger { min, max } => within(min, max),
            Self::Numbers { min_count, max_count } => {
                let count = text.split_whitespace().count();
                (min_count..=max_count).contains(&count)
                    && text.split_whitespace().all(|word| word.parse::<u64>().is_ok())
            }
            Self::Choice(words) => words.contains(&text),
            Self::Switch => ["Y", "y", "1", "N", "n", "0"].contains(&text),
            Self::Bits => ["y", "n"].contains(&text) || within(0, 7),
            Self::Limit => text == "max" || number().is_some(),
            Self::LimitV1 => text == "-1" || number().is_some(),
            Self::Word => !text.is_empty(),
        }
    }

    /// Whether a file that was written to and is read back holds what was written: kernels show some values in another
    /// form, and limits as whole pages of this size.
    pub fn holds(self, written: &str, read: &str, page: PageSize) -> bool {
        let read = read.trim();
        let page = page.bytes().get();
        match self {
            Self::Choice(_) => read.contains(&format!("[{written}]")),
            Self::Numbers { .. } => {
                let mut numbers = read.split_whitespace();
                written.split_whitespace().all(|one| numbers.next() == Some(one))
            }
            Self::Switch => is_on(written) == is_on(read),
            Self::Bits => {
                let bits =
                    read.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                match written {
                    "y" => bits.is_some_and(|bits| bits & 1 == 1),
                    "n" => bits == Some(0),
                    _ => bits == written.parse().ok(),
                }
            }
            Self::Limit | Self::LimitV1 => match (written.parse::<u64>(), read.parse::<u64>()) {
                (Ok(written), Ok(read)) => written / page == read / page,
                // No limit: v1 shows the largest number of whole pages.
                (Err(_), Ok(read)) => written == "-1" && read >= u64::MAX / 2 - page,
                _ => written == read,
            },
            Self::Trigger { .. } => true,
            Self::Number { .. } | Self::Word => written == read,
        }
    }
}

fn is_on(text: &str) -> bool {
    ["Y", "y", "1"].contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;

    fn of(fact: Fact) -> &'static Setting {
        Setting::of(fact).unwrap()
    }

    const fn kernel(major: u32, minor: u32) -> Option<KernelVersion> {
        Some(KernelVersion { major, minor })
    }

    #[test]
    fn every_fact_that_can_be_set_is_in_the_table_once_with_its_file() {
        let given = [facts::KERNEL_CMDLINE, facts::KERNEL_VERSION];
        for fact in facts::ALL.iter().filter(|fact| !given.contains(fact)) {
            assert_eq!(of(*fact).file, fact.file, "{}", fact.name);
        }
        let mut names: Vec<&str> = ALL.iter().map(|setting| setting.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn rows_are_whole_and_versions_rise() {
        for setting in ALL {
            let name = setting.name;
            for text in [name, setting.takes_effect, setting.undone_by, setting.source] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{name}: {text}");
            }
            assert!(setting.file.starts_with('/') && setting.source.starts_with("Doc"), "{name}");
            let defaults = setting.default.iter().map(|it| it.kernel);
            let values = setting.values.iter().map(|it| it.kernel);
            assert!(defaults.is_sorted() && values.is_sorted(), "{name}");
            for kernel in setting.default.iter().map(|it| it.kernel) {
                let text = match setting.default_on(Some(kernel)) {
                    DefaultValue::Number(number) => number.to_string(),
                    DefaultValue::Word(word) => word.to_owned(),
                    _ => continue,
                };
                let values = setting.values_on(Some(kernel));
                let is_allowed = values.allow(&text) || values == AllowedValues::Switch;
                assert!(is_allowed, "{name}: {text}");
            }
        }
    }

    #[test]
    fn what_holds_depends_on_the_kernel() {
        let swappiness = |kernel| of(facts::SWAPPINESS).values_on(kernel).allow("150");
        assert!(!swappiness(kernel(5, 7)) && swappiness(kernel(5, 8)) && swappiness(None));
        let defrag = |kernel| of(facts::THP_DEFRAG).default_on(kernel);
        assert_eq!(defrag(kernel(4, 5)), DefaultValue::Word("always"));
        assert_eq!(defrag(kernel(6, 1)), DefaultValue::Word("madvise"));
        assert_eq!(of(facts::ZONE_RECLAIM_MODE).default_on(kernel(3, 16)), DefaultValue::Number(0));
    }

    #[test]
    fn what_was_written_is_recognised_as_the_kernel_shows_it() {
        let holds =
            |fact, written, read| of(fact).values_on(None).holds(written, read, PageSize::USUAL);
        assert!(holds(facts::SWAPPINESS, "60", "60\n"));
        assert!(!holds(facts::SWAPPINESS, "60", "100\n"));
        assert!(holds(facts::THP_DEFRAG, "defer", "always [defer] defer+madvise madvise never\n"));
        assert!(!holds(facts::THP_DEFRAG, "defer", "always defer [defer+madvise] madvise never"));
        assert!(holds(facts::TCP_MEM_LIMITS, "1 2 3", "1\t2\t3\n"));
        assert!(holds(facts::LOWMEM_RESERVE, "64 64 32", "64\t64\t32\t0\t0\n"));
        assert!(holds(facts::MGLRU, "y", "0x0007\n") && holds(facts::MGLRU, "n", "0x0000\n"));
        assert!(!holds(facts::MGLRU, "y", "0x0006\n"));
        assert!(holds(facts::ZSWAP_ENABLED, "1", "Y\n"));
        let limit = |name, written, read| {
            Setting::named(name).unwrap().values_on(None).holds(written, read, PageSize::USUAL)
        };
        assert!(limit("memory.high", "1000000", "999424\n"));
        assert!(limit("memory.high", "max", "max\n") && !limit("memory.max", "4096", "max\n"));
        assert!(limit("memory.limit_in_bytes", "-1", "9223372036854771712\n"));
        assert!(!limit("memory.limit_in_bytes", "-1", "4096\n"));
    }

    #[test]
    fn the_default_of_min_free_kbytes_is_that_of_the_kernel() {
        use units::Bytes;
        let page = PageSize::USUAL;
        let kib = |mib, zones, huge| {
            default_min_free(Bytes::from_mib(mib), page, zones, huge).get() / 1024
        };
        // 512 MiB: 2,896 kB by the root; 5 % of RAM with huge pages.
        assert_eq!((kib(512, 2, false), kib(512, 2, true)), (2896, 26_214));
        // 16 GiB: three zones of 22,528 kB.
        assert_eq!((kib(16_384, 3, false), kib(16_384, 3, true)), (16_384, 67_584));
    }
}
