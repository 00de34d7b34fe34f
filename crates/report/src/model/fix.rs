//! What a finding advises: words, commands, and the changes as data.

use diagnose::Lasting;
use schemars::JsonSchema;
use serde::Serialize;
use timeline::Origin;
use units::{Bytes, Limit};

use crate::FixCommands;

/// Something to do.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fix {
    pub what: String,
    /// Commands for now, one a line, which run as they stand; empty where there is none.
    pub now: String,
    /// Whether `now` only reads, and changes nothing.
    pub is_read_only: bool,
    /// Commands for the form that survives a reboot, one a line; empty where there is none.
    pub persistent: String,
    /// Commands that take back what `now` does, one a line; empty where it changes nothing or the state before is not known.
    pub undo: String,
    /// What the commands change, as data and in their order. Absent where they change nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FixChange>,
    /// Versions of Linux on which `memtide lab cure` showed that it ends the finding. Absent where it was not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proven_on: Vec<&'static str>,
}

/// Something that a fix changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FixChange {
    /// A setting of the kernel gets another value.
    Setting {
        /// What holds before; null where that is not known. Where two settings exclude each other, as `vm.dirty_ratio` and
        /// `vm.dirty_bytes`, it may be the other one.
        from: Option<SettingValue>,
        /// What is to hold.
        to: SettingValue,
        /// Whether it is set now; else from the next boot on.
        is_now: bool,
        /// Whether it is set again after a boot.
        is_kept: bool,
    },
    /// A limit of a cgroup gets another value.
    Limit {
        /// The cgroup's path: `/system.slice/web.service`.
        cgroup: String,
        /// The host's unit that it belongs to, which systemd sets; null where it is none.
        unit: Option<String>,
        /// The kernel's file: `memory.high`.
        file: String,
        /// What holds before: bytes or `max`; null where that is not known.
        from: Option<String>,
        /// What is to hold, in bytes.
        to_bytes: Bytes,
    },
    /// What is neither: only the commands show it.
    Command {
        /// What does it now.
        now: String,
        /// What makes it survive a boot; empty where nothing does.
        persistent: String,
        /// What takes it back; empty where nothing does.
        undo: String,
    },
}

/// A setting of the kernel and a value of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SettingValue {
    /// Its dotted name: `vm.swappiness`.
    pub setting: String,
    /// The kernel's file.
    pub file: String,
    /// As it is written to the file.
    pub value: String,
}

impl Fix {
    pub(super) fn new(rule: &str, fix: &diagnose::Fix, origin: &Origin) -> Self {
        let FixCommands { now, is_read_only, persistent, undo } = FixCommands::new(fix, origin);
        Self {
            what: fix.what.clone(),
            now,
            is_read_only,
            persistent,
            undo,
            changes: fix.changes.iter().map(FixChange::new).collect(),
            proven_on: fix.proven_on(rule).to_vec(),
        }
    }
}

impl FixChange {
    fn new(change: &diagnose::FixChange) -> Self {
        match change {
            diagnose::FixChange::Setting(change) => Self::Setting {
                from: change.from.as_ref().map(SettingValue::new),
                to: SettingValue::new(&change.to),
                is_now: change.lasts != Lasting::FromBoot,
                is_kept: change.lasts != Lasting::UntilBoot,
            },
            diagnose::FixChange::Limit(change) => Self::Limit {
                cgroup: change.cgroup.clone(),
                unit: change.unit.clone(),
                file: change.file.name().to_owned(),
                from: change.from.map(|from| match from {
                    Limit::Bytes(size) => size.get().to_string(),
                    Limit::Unlimited => "max".to_owned(),
                }),
                to_bytes: change.to,
            },
            diagnose::FixChange::Command(command) => Self::Command {
                now: command.now.clone(),
                persistent: command.keep.clone(),
                undo: command.undo.clone(),
            },
        }
    }
}

impl SettingValue {
    fn new(held: &diagnose::SettingValue) -> Self {
        Self {
            setting: held.fact.name.to_owned(),
            file: held.fact.file.to_owned(),
            value: held.value.clone(),
        }
    }
}
