//! What a rule is: a declaration (id, trigger, what it brings about, what explains it), its documentation, and a story: a
//! function that explains an incident.

use timeline::{EntitySeries, Fact, Stretch, facts};

use crate::evidence::{Evidence, Missing, Need};
use crate::finding::{Finding, Outcome, Severity};
use crate::trigger::Trigger;

/// The incident that a story explains. Its samples are those of the window that the evidence is cut to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incident<'a> {
    /// From when to when the trigger held.
    pub(crate) stretch: Stretch,
    /// In which entity; `None` on the host, and where only a kernel report names it.
    pub(crate) of: Option<&'a EntitySeries>,
    /// The entity's key; `None` on the host.
    pub(crate) key: Option<&'a str>,
}

impl<'a> Incident<'a> {
    /// The entity that a trigger of entities is about.
    ///
    /// # Errors
    /// [`Missing`] where the incident is of the host.
    pub(crate) fn entity(&self) -> Result<&'a EntitySeries, Missing> {
        self.of
            .ok_or_else(|| Missing::because(Vec::new(), Need::SameTime))
    }
}

/// What a rule is about: what the rest of memtide asks when it asks for rules of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// RAM did not hold what was wanted: evicted pages refaulted, tasks reclaimed, processes were killed.
    Shortage,
    /// Little is left, or nothing is left to fall back on: a shortage is near.
    Scarcity,
    /// Tasks wait for a disk, or for memory in large blocks.
    Stall,
    /// A limit of a cgroup or of the system is hit.
    Limit,
    /// A setting takes memory away, or misplaces it.
    Setting,
    /// Something takes much memory, or grows.
    Growth,
    /// The kernel killed for another reason than a shortage of the host.
    Kill,
    /// Tasks waited, and no rule of another class says why.
    Unexplained,
    /// Looks wrong and is not; always [`Severity::Info`](crate::Severity::Info).
    Note,
    /// About the source, not about the host; always [`Severity::Info`](crate::Severity::Info).
    Source,
}

impl Class {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Shortage => "shortage",
            Self::Scarcity => "scarcity",
            Self::Stall => "stall",
            Self::Limit => "limit",
            Self::Setting => "setting",
            Self::Growth => "growth",
            Self::Kill => "kill",
            Self::Unexplained => "unexplained",
            Self::Note => "note",
            Self::Source => "source",
        }
    }
}

/// What tasks wait for in an incident of a rule: how its harm is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// For memory.
    Memory,
    /// For memory or for a disk.
    MemoryOrDisk,
    /// Nobody need wait: a level, a setting, a kill.
    No,
}

/// What explains that a rule finds something on one host and not on another, and how surely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Explains {
    /// Its change is the cause.
    Surely(Fact),
    /// Its change may have contributed.
    Maybe(Fact),
    /// Less swap makes it likelier; that less RAM does follows from its class.
    LittleSwap,
}

/// A rule of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Names the pathology, never the cure; never reused.
    pub id: &'static str,
    /// memtide's version that brought it.
    pub since: &'static str,
    /// What it is about.
    pub class: Class,
    /// Its documentation in Markdown, under five fixed headings.
    pub docs: &'static str,
    /// When an incident of it begins and ends.
    pub(crate) trigger: fn() -> Trigger,
    /// What tasks wait for meanwhile.
    pub(crate) waits: Waits,
    /// Explains an incident; the evidence is that of a window around it.
    pub(crate) story: for<'a> fn(&Evidence<'a>, &Incident<'a>) -> Result<Outcome, Missing>,
    /// Why it happens, where that is the same each time.
    pub(crate) cause: &'static str,
    /// How to see that a fix worked, where that is the same each time.
    pub(crate) verify: &'static str,
    /// Ids of the rules that it can cause.
    pub(crate) brings_about: &'static [&'static str],
    /// Settings that explain it.
    pub(crate) explained_by: &'static [Explains],
    /// Other ids that a reader may know it by.
    pub(crate) aliases: &'static [&'static str],
}

impl Rule {
    /// A finding of this rule, to be completed.
    pub(crate) fn found(&self, severity: Severity, title: impl Into<String>) -> Finding {
        Finding::new(self.id, severity, title)
    }

    /// Its trigger in words: `swapped in from 1 MiB/s and …, for 4 s, on the host`; `None` where it is found in another way.
    pub fn trigger_in_words(&self) -> Option<String> {
        (self.trigger)().words()
    }

    /// Its trigger in PromQL; `None` where none can be given: it rests on kernel reports, on a function, or on the source.
    pub fn promql(&self) -> Option<String> {
        (self.trigger)().promql()
    }

    /// The first sentence of its documentation.
    pub fn summary(&self) -> &'static str {
        self.docs
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .unwrap_or_default()
    }

    /// Kernel documentation and articles: what its documentation lists under *References*, without the remark behind each.
    pub fn references(&self) -> impl Iterator<Item = &'static str> {
        let (_, listed) = self.docs.split_once("## References\n").unwrap_or_default();
        listed
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- "))
            .map(|line| line.split_once(": ").map_or(line, |(what, _)| what))
    }

    /// Ids of the rules that it can cause.
    pub fn brings_about(&self) -> Vec<&'static str> {
        self.brings_about.to_vec()
    }

    /// Names of the settings that explain it.
    pub fn explained_by(&self) -> Vec<&'static str> {
        let named = self.explained_by.iter().map(|explains| match explains {
            Explains::Surely(fact) | Explains::Maybe(fact) => fact.name,
            Explains::LittleSwap => "size of swap",
        });
        named.collect()
    }

    /// Whether it explains something that seems wrong and is harmless, or is about the source.
    pub fn is_note(&self) -> bool {
        matches!(self.class, Class::Note | Class::Source)
    }
}

/// What any problem that takes memory can end in.
pub(crate) const WANT_AND_THRASH: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "swap-full",
    "oom-global",
    "swap-thrash",
    "page-cache-thrash",
    "exec-pages-evicted",
    "swappiness-misfit",
    "no-swap-risk",
    "direct-reclaim-stall",
    "kswapd-saturated",
];

/// The settings that say when dirty pages are written, and when writers wait.
pub(crate) const DIRTY_SETTINGS: &[Fact] = &[
    facts::DIRTY_BYTES,
    facts::DIRTY_RATIO,
    facts::DIRTY_BACKGROUND_BYTES,
    facts::DIRTY_BACKGROUND_RATIO,
    facts::DIRTY_EXPIRE,
    facts::DIRTY_WRITEBACK,
];

/// They may explain that writers wait.
pub(crate) const DIRTY_LIMITS: &[Explains] = &{
    let mut explains = [Explains::LittleSwap; DIRTY_SETTINGS.len()];
    let mut at = 0;
    while at < DIRTY_SETTINGS.len() {
        explains[at] = Explains::Maybe(DIRTY_SETTINGS[at]);
        at += 1;
    }
    explains
};

/// Declares a rule's constant; the doc comment above it is its documentation everywhere.
macro_rules! declare_rule {
    (@or $default:expr) => { $default };
    (@or $default:expr, $given:expr) => { $given };
    ($(#[doc = $doc:literal])* $vis:vis $name:ident = {
        id: $id:literal, since: $since:literal, class: $class:ident,
        trigger: $trigger:expr, $(waits: $waits:ident,)? story: $story:expr,
        $(cause: $cause:literal,)? $(verify: $verify:literal,)?
        $(brings_about: $brings:expr,)? $(explained_by: $explained:expr,)? $(aliases: $aliases:expr,)?
    }) => {
        $(#[doc = $doc])*
        $vis const $name: crate::rule::Rule = crate::rule::Rule {
            id: $id,
            since: $since,
            class: crate::rule::Class::$class,
            docs: concat!($($doc, "\n"),*),
            trigger: $trigger,
            waits: crate::rule::declare_rule!(@or crate::rule::Waits::No $(, crate::rule::Waits::$waits)?),
            story: $story,
            cause: crate::rule::declare_rule!(@or "" $(, $cause)?),
            verify: crate::rule::declare_rule!(@or "" $(, $verify)?),
            brings_about: crate::rule::declare_rule!(@or &[] $(, $brings)?),
            explained_by: crate::rule::declare_rule!(@or &[] $(, $explained)?),
            aliases: crate::rule::declare_rule!(@or &[] $(, $aliases)?),
        };
    };
}

/// `Ok(Outcome::Clear(…))` with a formatted reason.
macro_rules! clear {
    ($($text:tt)*) => { Ok(crate::finding::Outcome::Clear(format!($($text)*))) };
}

pub(crate) use {clear, declare_rule};
