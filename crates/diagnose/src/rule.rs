//! What a rule is: a declaration (id, trigger, consequences, explaining settings), its documentation, and a story,
//! which is a function that explains an incident.

mod prose;

use timeline::{Entity, EntitySeries, Fact, Stretch, facts};

use crate::evidence::{Evidence, Missing, Need};
use crate::finding::{Finding, Outcome, Severity, Title};
use crate::trigger::{AlertMetrics, Occurrence, PrometheusAlert, Trigger};

use prose::ProseConstant;

/// The incident that a story explains. Its sample numbers refer to the window that the evidence is cut to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incident<'a> {
    /// The interval in which the trigger held.
    pub(crate) stretch: Stretch,
    /// The entity of the incident; `None` for the host, and where only a kernel report names the entity.
    pub(crate) of: Option<&'a EntitySeries>,
    /// The entity's key; `None` for the host.
    pub(crate) key: Option<&'a str>,
}

impl<'a> Incident<'a> {
    /// Returns the entity of an incident, if its trigger is about entities.
    ///
    /// # Errors
    /// [`Missing`] if the incident is one of the host.
    pub(crate) fn entity(&self) -> Result<&'a EntitySeries, Missing> {
        self.of.ok_or_else(|| Missing::because(Vec::new(), Need::SameTime))
    }
}

/// Returns where what led to an incident begins; `None` if nothing did.
pub(crate) type LooksBack = fn(&Evidence<'_>, &Occurrence) -> Option<usize>;

/// What a rule is about. The rest of memtide selects rules by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// RAM did not hold the working set: evicted pages refaulted, tasks reclaimed, processes were killed.
    Shortage,
    /// Little memory, or no fallback, is left: a shortage is near.
    Scarcity,
    /// Tasks wait for a disk, or for memory in large blocks.
    Stall,
    /// A limit of a cgroup or of the system is hit.
    Limit,
    /// A setting takes memory away, or misplaces it.
    Setting,
    /// A consumer takes much memory, or grows.
    Growth,
    /// The kernel killed for a reason other than a shortage of the host.
    Kill,
    /// The hardware fails.
    Hardware,
    /// Tasks waited, and no rule of another class says why.
    Unexplained,
    /// Looks wrong but is harmless; always [`Severity::Info`](crate::Severity::Info).
    Note,
    /// About the source, not about the host; always [`Severity::Info`](crate::Severity::Info).
    Source,
}

impl Class {
    /// Returns the class as one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Shortage => "shortage",
            Self::Scarcity => "scarcity",
            Self::Stall => "stall",
            Self::Limit => "limit",
            Self::Setting => "setting",
            Self::Growth => "growth",
            Self::Kill => "kill",
            Self::Hardware => "hardware",
            Self::Unexplained => "unexplained",
            Self::Note => "note",
            Self::Source => "source",
        }
    }
}

/// What tasks wait for in an incident of a rule. Its harm includes this waiting time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// For memory.
    Memory,
    /// For memory or for a disk.
    MemoryOrDisk,
    /// For nothing: the rule is about a level, a setting or a kill.
    No,
}

/// A setting that can explain why a rule finds something on one host and not on another, and how surely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Explains {
    /// Its change is the cause.
    Surely(Fact),
    /// Its change may have contributed.
    Maybe(Fact),
    /// Less swap makes it likelier. That less RAM does so follows from the rule's class.
    LittleSwap,
}

/// A rule of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Identifies the rule. Names the pathology, never the cure; never reused.
    pub id: &'static str,
    /// The memtide version that introduced it.
    pub since: &'static str,
    /// What it is about.
    pub class: Class,
    /// Its documentation as it is written, with constants by name; [`Rule::docs`] is what readers get.
    pub(crate) prose: &'static str,
    /// The constants that `prose`, `cause` and `verify` name.
    pub(crate) numbers: &'static [ProseConstant],
    /// When an incident of the rule begins and ends.
    pub(crate) trigger: fn() -> Trigger,
    /// What tasks wait for during an incident.
    pub(crate) waits: Waits,
    /// Explains an incident, given the evidence of a window around it.
    pub(crate) story: for<'a> fn(&Evidence<'a>, &Incident<'a>) -> Result<Outcome, Missing>,
    /// How far back the evidence of a story must reach for what led to an incident: a sample of the whole source.
    pub(crate) looks_back: Option<LooksBack>,
    /// Why it happens, if that is the same each time.
    pub(crate) cause: &'static str,
    /// How to verify a fix, if that is the same each time.
    pub(crate) verify: &'static str,
    /// Ids of the rules that it can bring about.
    pub(crate) brings_about: &'static [&'static str],
    /// Settings that explain it.
    pub(crate) explained_by: &'static [Explains],
    /// Stock alerts of node_exporter's mixin for which its alert may stand: it says what major faults or a full RAM are the
    /// sign of.
    pub replaces: &'static [&'static str],
    /// Other ids that readers may know it by.
    pub(crate) aliases: &'static [&'static str],
}

impl Rule {
    /// Starts a finding of this rule.
    pub(crate) fn found(&self, severity: Severity, title: impl Into<Title>) -> Finding {
        Finding::new(self.id, severity, title)
    }

    /// Returns the trigger in words: `swapped in from 1 MiB/s and …, for 4 s, on the host`; `None` if the trigger is
    /// not a predicate.
    pub fn trigger_in_words(&self) -> Option<String> {
        (self.trigger)().words()
    }

    /// Returns the trigger as an alert of Prometheus; `None` if it rests on kernel reports, on a function, or on the source,
    /// and for notes, on which nobody acts.
    pub fn prometheus(&self, metrics: AlertMetrics) -> Option<PrometheusAlert> {
        // What is unexplained is so because other reasons were measured.
        let is_by_exclusion = self.class == Class::Unexplained;
        if self.is_note() || (is_by_exclusion && metrics == AlertMetrics::NodeExporter) {
            return None;
        }
        (self.trigger)().prometheus(metrics)
    }

    /// Returns a text of the rule with its constants as they print.
    pub(crate) fn filled(&self, text: &str) -> String {
        prose::filled(text, self.numbers)
    }

    /// Returns its documentation in Markdown, under five fixed headings.
    pub fn docs(&self) -> String {
        self.filled(self.prose)
    }

    /// Returns the first sentence of the documentation.
    pub fn summary(&self) -> String {
        let mut lines = self.prose.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        self.filled(first.unwrap_or_default())
    }

    /// Returns the kernel documentation and articles listed under *References*, without the remark behind each.
    pub fn references(&self) -> impl Iterator<Item = &'static str> {
        let (_, listed) = self.prose.split_once("## References\n").unwrap_or_default();
        listed
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- "))
            .map(|line| line.split_once(": ").map_or(line, |(what, _)| what))
    }

    /// Returns the ids of the rules that it can bring about.
    pub fn brings_about(&self) -> Vec<&'static str> {
        self.brings_about.to_vec()
    }

    /// Returns the names of the settings that explain it.
    pub fn explained_by(&self) -> Vec<&'static str> {
        let named = self.explained_by.iter().map(|explains| match explains {
            Explains::Surely(fact) | Explains::Maybe(fact) => fact.name,
            Explains::LittleSwap => "size of swap",
        });
        named.collect()
    }

    /// Whether the rule is about cgroups one by one.
    pub(crate) fn is_of_cgroups(&self) -> bool {
        (self.trigger)().entity() == Entity::Cgroup
    }

    /// Whether the rule explains something that seems wrong and is harmless, or is about the source.
    pub fn is_note(&self) -> bool {
        matches!(self.class, Class::Note | Class::Source)
    }
}

/// What any problem that takes memory can bring about.
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

/// The settings that decide when dirty pages are written, and when writers wait.
pub(crate) const DIRTY_SETTINGS: &[Fact] = &[
    facts::DIRTY_BYTES,
    facts::DIRTY_RATIO,
    facts::DIRTY_BACKGROUND_BYTES,
    facts::DIRTY_BACKGROUND_RATIO,
    facts::DIRTY_EXPIRE,
    facts::DIRTY_WRITEBACK,
];

/// The settings that may explain why writers wait.
pub(crate) const DIRTY_LIMITS: &[Explains] = &{
    let mut explains = [Explains::LittleSwap; DIRTY_SETTINGS.len()];
    let mut at = 0;
    while at < DIRTY_SETTINGS.len() {
        explains[at] = Explains::Maybe(DIRTY_SETTINGS[at]);
        at += 1;
    }
    explains
};

/// Declares a rule's constant. The doc comment above it is the rule's documentation everywhere. A threshold stands in it,
/// in `cause` and in `verify` as `{NAME}`, or `{PressureWindow::CALM}`, and its constant under `numbers`.
macro_rules! declare_rule {
    (@or $default:expr) => { $default };
    (@or $default:expr, $given:expr) => { $given };
    ($(#[doc = $doc:literal])* $vis:vis $name:ident = {
        id: $id:literal, since: $since:literal, class: $class:ident,
        $(numbers: [$($number:path),+ $(,)?],)?
        trigger: $trigger:expr, $(waits: $waits:ident,)? story: $story:expr,
        $(looks_back: $looks_back:expr,)?
        $(cause: $cause:literal,)? $(verify: $verify:literal,)?
        $(brings_about: $brings:expr,)? $(explained_by: $explained:expr,)?
        $(replaces: $replaces:expr,)? $(aliases: $aliases:expr,)?
    }) => {
        $(#[doc = $doc])*
        $vis const $name: crate::rule::Rule = crate::rule::Rule {
            id: $id,
            since: $since,
            class: crate::rule::Class::$class,
            prose: concat!($($doc, "\n"),*),
            numbers: crate::rule::declare_rule!(
                @or &[] $(, &[$((stringify!($number), || $number.to_string())),+])?
            ),
            trigger: $trigger,
            waits: crate::rule::declare_rule!(@or crate::rule::Waits::No $(, crate::rule::Waits::$waits)?),
            story: $story,
            looks_back: crate::rule::declare_rule!(@or None $(, Some($looks_back))?),
            cause: crate::rule::declare_rule!(@or "" $(, $cause)?),
            verify: crate::rule::declare_rule!(@or "" $(, $verify)?),
            brings_about: crate::rule::declare_rule!(@or &[] $(, $brings)?),
            explained_by: crate::rule::declare_rule!(@or &[] $(, $explained)?),
            replaces: crate::rule::declare_rule!(@or &[] $(, $replaces)?),
            aliases: crate::rule::declare_rule!(@or &[] $(, $aliases)?),
        };
    };
}

/// Returns `Ok(Outcome::Clear(…))` with a formatted reason.
macro_rules! clear {
    ($($text:tt)*) => { Ok(crate::finding::Outcome::Clear(format!($($text)*))) };
}

pub(crate) use {clear, declare_rule};
