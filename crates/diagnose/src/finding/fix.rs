//! What to do about a finding: words, and what changes as data. The shell's lines are written by who prints it.

use timeline::signals::{CGROUP_HIGH, CGROUP_MAX, CGROUP_MAX_WITH_SWAP, CGROUP_MIN};
use timeline::{Fact, Gauge, Signal};
use units::{Bytes, Limit};

/// One way to fix a finding.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fix {
    /// What to do, in words.
    pub what: String,
    /// What only shows something, before anything is changed.
    pub inspect: Inspection,
    /// What is changed, in this order; empty if the fix is words only, or only shows something.
    pub changes: Vec<FixChange>,
    /// The limit that was too small, if the fix raises one: by its changes, or in words.
    pub raises: Option<SmallLimit>,
}

/// What shows more and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Inspection {
    /// The fix only says what to do.
    #[default]
    None,
    /// Commands on the host, one per line.
    Commands(String),
    /// How what the source shows grew, which memtide answers from the same source.
    Growth {
        /// The name of the service, cgroup or process; `None` for all of them.
        of: Option<String>,
    },
}

impl FixChange {
    /// What is changed: the setting, the limit's file, or `command`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Setting(change) => change.to.fact.name,
            Self::Limit(change) => change.file.name(),
            Self::Command(_) => "command",
        }
    }
}

/// A limit of a cgroup that was too small.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallLimit {
    /// The cgroup's path as the source has it.
    pub cgroup: String,
    pub file: LimitFile,
    /// What it was when that was felt.
    pub size: Bytes,
}

/// Something that a fix changes on the host.
#[derive(Debug, Clone, PartialEq)]
pub enum FixChange {
    /// A setting of the kernel.
    Setting(SettingChange),
    /// A limit of a cgroup.
    Limit(LimitChange),
    /// What is neither, as commands.
    Command(ShellCommand),
}

/// A setting gets another value. Values are plain words or numbers: a shell takes them unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// What holds before; `None` if that is unknown. It is another setting where two exclude each other, as
    /// `vm.dirty_bytes` and `vm.dirty_ratio` do.
    pub from: Option<SettingValue>,
    /// What is to hold.
    pub to: SettingValue,
    /// From when on, and how long.
    pub lasts: Lasting,
}

/// A setting with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingValue {
    /// The setting.
    pub fact: Fact,
    /// As it is written to the setting's file.
    pub value: String,
}

/// When a changed setting holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// From now to the next boot: nothing has to be added to a file to keep it.
    UntilBoot,
    /// From now on, also after a boot.
    Kept,
    /// From the next boot on.
    FromBoot,
}

/// A cgroup gets another limit. Its names are safe in a command.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq)]
pub struct LimitChange {
    /// Path of the cgroup below the root of the hierarchy: `/system.slice/web.service`.
    pub cgroup: String,
    /// The host's unit that the cgroup belongs to: systemd sets its limits, and would undo what others write.
    pub unit: Option<String>,
    pub file: LimitFile,
    /// What holds before; `None` if that is unknown.
    pub from: Option<Limit>,
    /// What is to hold.
    pub to: Bytes,
}

impl LimitChange {
    /// The kernel's file, where the hierarchy is mounted as systemd does.
    pub fn path(&self) -> String {
        let controller = if self.file.is_v1() { "/memory" } else { "" };
        format!("/sys/fs/cgroup{controller}{}/{}", self.cgroup, self.file.name())
    }
}

/// A limit of a cgroup that an administrator can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitFile {
    /// The kernel does not reclaim below it.
    Min,
    /// The kernel slows the cgroup down above it.
    High,
    /// The kernel kills in the cgroup above it.
    Max,
    /// The same on cgroup v1.
    MaxV1,
    /// The limit of memory and swap together, on cgroup v1: the kernel refuses a larger limit of memory alone.
    MaxWithSwapV1,
}

impl LimitFile {
    /// The name of the kernel's file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "memory.min",
            Self::High => "memory.high",
            Self::Max => "memory.max",
            Self::MaxV1 => "memory.limit_in_bytes",
            Self::MaxWithSwapV1 => "memory.memsw.limit_in_bytes",
        }
    }

    /// Systemd's name of it; `None` on cgroup v1, which is written to by hand.
    pub const fn property(self) -> Option<&'static str> {
        match self {
            Self::Min => Some("MemoryMin"),
            Self::High => Some("MemoryHigh"),
            Self::Max => Some("MemoryMax"),
            Self::MaxV1 | Self::MaxWithSwapV1 => None,
        }
    }

    /// Whether only cgroup v1 has it.
    pub const fn is_v1(self) -> bool {
        matches!(self, Self::MaxV1 | Self::MaxWithSwapV1)
    }

    /// The limit as it is written to the kernel's file.
    pub fn written(self, limit: Limit) -> String {
        match (limit, self) {
            (Limit::Bytes(size), _) => size.get().to_string(),
            (Limit::Unlimited, file) if file.is_v1() => "-1".to_owned(),
            (Limit::Unlimited, _) => "max".to_owned(),
        }
    }

    pub(crate) const fn signal(self) -> Signal<Gauge<Limit>> {
        match self {
            Self::Min => CGROUP_MIN,
            Self::High => CGROUP_HIGH,
            Self::Max | Self::MaxV1 => CGROUP_MAX,
            Self::MaxWithSwapV1 => CGROUP_MAX_WITH_SWAP,
        }
    }
}

/// Commands that run as they stand, one per line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellCommand {
    /// What takes effect now.
    pub now: String,
    /// What makes it survive a boot; empty if nothing does.
    pub keep: String,
    /// What takes it back; empty if there is nothing to take back, or the state before is unknown.
    pub undo: String,
}

impl Fix {
    /// Creates a fix in words only.
    pub(crate) fn say(what: impl Into<String>) -> Self {
        Self { what: what.into(), ..Self::default() }
    }

    /// Returns the same changes with this description, before a sentence that they have.
    #[must_use]
    pub(crate) fn described(mut self, what: impl Into<String>) -> Self {
        let sentence = std::mem::replace(&mut self.what, what.into());
        if !sentence.is_empty() {
            self.what.push(' ');
            self.what.push_str(&sentence);
        }
        self
    }

    /// Sets commands that change nothing.
    #[must_use]
    pub(crate) fn inspect(mut self, commands: impl Into<String>) -> Self {
        self.inspect = Inspection::Commands(commands.into());
        self
    }

    /// Asks how a service, a cgroup or a process of the source grew, or all of them.
    #[must_use]
    pub(crate) fn inspect_growth(mut self, of: Option<&str>) -> Self {
        self.inspect = Inspection::Growth { of: of.map(str::to_owned) };
        self
    }

    /// Adds a setting.
    #[must_use]
    pub(crate) fn set(mut self, change: SettingChange) -> Self {
        self.changes.push(FixChange::Setting(change));
        self
    }

    /// Leaves to do what a setting that has its value already still needs: a line that keeps it.
    pub(crate) fn leave_set(&mut self, name: &str, value: &str) {
        self.changes.retain_mut(|change| match change {
            FixChange::Setting(change)
                if change.to.fact.name == name && change.to.value == value =>
            {
                let is_kept = change.lasts != Lasting::UntilBoot;
                change.lasts = Lasting::FromBoot;
                is_kept
            }
            _ => true,
        });
    }

    /// Adds a limit.
    #[must_use]
    pub(crate) fn limit(mut self, change: LimitChange) -> Self {
        self.changes.push(FixChange::Limit(change));
        self
    }

    /// Adds commands that change something now.
    #[must_use]
    pub(crate) fn run(self, commands: impl Into<String>) -> Self {
        self.command(ShellCommand { now: commands.into(), ..ShellCommand::default() })
    }

    /// Adds commands that change something now, keep it, and take it back.
    #[must_use]
    pub(crate) fn command(mut self, command: ShellCommand) -> Self {
        self.changes.push(FixChange::Command(command));
        self
    }
}

impl SettingChange {
    /// A setting that gets a value now, and keeps it.
    pub(crate) fn new(fact: Fact, value: impl ToString) -> Self {
        Self {
            from: None,
            to: SettingValue { fact, value: value.to_string() },
            lasts: Lasting::Kept,
        }
    }

    /// Sets the value before, if it is known.
    #[must_use]
    pub(crate) fn instead_of(mut self, value: Option<impl ToString>) -> Self {
        let fact = self.to.fact;
        self.from = value.map(|value| SettingValue { fact, value: value.to_string() });
        self
    }

    /// Sets when it holds.
    #[must_use]
    pub(crate) fn lasting(self, lasts: Lasting) -> Self {
        Self { lasts, ..self }
    }
}
