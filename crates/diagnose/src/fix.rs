//! What to do about a finding: words, and commands that a shell takes as they stand.
//!
//! Nothing in a command is left to be filled in: what is not known on that host is said in words.

use std::fmt::Display;

use timeline::{Entity, facts::CgroupMode};
use timeline::{Fact, signals::CGROUP_CURRENT};
use units::{Bytes, Ratio};

use crate::evidence::Evidence;
use crate::groups;

/// Something to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fix {
    /// In words.
    pub what: String,
    /// Commands for now, one a line; empty where there is none.
    pub now: String,
    /// Commands for the form that survives a reboot, one a line; empty where there is none.
    pub persistent: String,
    /// Commands that take back what is done now, one a line; empty where nothing is changed or the state before is not known.
    pub undo: String,
}

impl Fix {
    /// In words only.
    pub(crate) fn say(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            ..Self::default()
        }
    }

    /// The same commands, with these words.
    #[must_use]
    pub(crate) fn told(mut self, what: impl Into<String>) -> Self {
        self.what = what.into();
        self
    }

    /// Commands for now.
    #[must_use]
    pub(crate) fn now(mut self, commands: impl Into<String>) -> Self {
        self.now = commands.into();
        self
    }

    /// Commands that make it last.
    #[must_use]
    pub(crate) fn keep(mut self, commands: impl Into<String>) -> Self {
        self.persistent = commands.into();
        self
    }

    /// Commands that take back what is done now.
    #[must_use]
    pub(crate) fn undo(mut self, commands: impl Into<String>) -> Self {
        self.undo = commands.into();
        self
    }

    /// Setting a tunable, taken back to what it is.
    pub(crate) fn tunable(
        cx: &Evidence<'_>,
        what: impl Into<String>,
        fact: Fact,
        value: impl Display,
    ) -> Self {
        let old = cx
            .number(fact)
            .map(|old| format!("sysctl -w {}={old}", fact.name));
        Self::say(what)
            .now(format!("sysctl -w {}={value}", fact.name))
            .keep(kept_tunable(fact.name, value))
            .undo(old.unwrap_or_default())
    }

    /// Writing a word to a file of the kernel, taken back to what it holds.
    pub(crate) fn file(
        what: impl Into<String>,
        path: &str,
        value: impl Display,
        old: Option<impl Display>,
    ) -> Self {
        let undo = old.map(|old| format!("echo {old} > {path}"));
        Self::say(what)
            .now(format!("echo {value} > {path}"))
            .keep(format!(
                "echo 'w {path} - - - - {value}' >> /etc/tmpfiles.d/memtide.conf"
            ))
            .undo(undo.unwrap_or_default())
    }

    /// Another swap file of a size, which `swapoff` takes back.
    pub(crate) fn swap_file(what: impl Into<String>, path: &str, size: Bytes) -> Self {
        let mib = whole_mib(size);
        Self::say(what)
            .now(format!(
                "fallocate -l {mib}M {path} && chmod 600 {path} && mkswap {path} && swapon {path}"
            ))
            .keep(format!("echo '{path} none swap sw 0 0' >> /etc/fstab"))
            .undo(format!("swapoff {path} && rm {path}"))
    }

    /// Slowing down the largest unit at a sample, where there is one that can be named; in words else.
    pub(crate) fn cap(cx: &Evidence<'_>, index: usize, what: &str) -> Self {
        let Some((unit, held)) = largest_unit(cx, index) else {
            return Self::say(format!(
                "{what} systemctl set-property takes MemoryHigh for a service."
            ));
        };
        let limit = held.share(CAPPED);
        let commands = groups::set_property(&unit, groups::Knob::High, limit, None);
        Self {
            what: format!(
                "{what} The largest unit is {unit} with {held}; this slows it down above {}.",
                Bytes::from_mib(whole_mib(limit))
            ),
            ..commands
        }
    }
}

/// What is written so that a tunable keeps its value.
pub(crate) fn kept_tunable(name: &str, value: impl Display) -> String {
    format!("echo '{name} = {value}' >> /etc/sysctl.d/99-zz-memtide.conf")
}

/// As systemd and the kernel take sizes, in MiB: rounded up.
pub(crate) fn whole_mib(size: Bytes) -> u64 {
    size.get().div_ceil(1 << 20)
}

/// A cap that gives the others a quarter of what the largest holds: an engineering choice that its sentence names, to be
/// corrected by who knows the program.
const CAPPED: Ratio = Ratio::from_percent(75.0);
/// Capping what holds less than this part of RAM would give the others nothing that counts.
const WORTH_CAPPING: Ratio = Ratio::from_percent(10.0);

/// The service or scope of this host's systemd that holds most, and what it holds.
fn largest_unit(cx: &Evidence<'_>, index: usize) -> Option<(String, Bytes)> {
    // memory.high exists on cgroup v2 only.
    if cx.facts.cgroup_mode == Some(CgroupMode::V1) {
        return None;
    }
    let least = cx.ram().ok()?.share(WORTH_CAPPING);
    let at = cx.rows_at(Entity::Cgroup, index)?;
    let held = cx.timeline.entities(Entity::Cgroup).filter_map(|group| {
        let unit = groups::unit_of(&group.key).filter(|unit| !unit.ends_with(".slice"))?;
        let held = cx.timeline.at_of(group, CGROUP_CURRENT, at)?;
        (held >= least).then(|| (unit.to_owned(), held))
    });
    held.max_by_key(|(_, held)| *held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::signals::MEM_TOTAL;

    /// What is said of a host of 1,000 MiB whose group holds so much.
    fn cap(group: &str, mib: u64) -> Fix {
        let case = Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(1000))
            .gauge_of(Entity::Cgroup, group, CGROUP_CURRENT, Bytes::from_mib(mib));
        case.with(|cx| Fix::cap(cx, 10, "Cap it."))
    }

    #[test]
    fn the_largest_unit_is_capped_by_its_name_and_at_a_size() {
        let fix = cap("/system.slice/web.service", 400);
        assert_eq!(
            fix.now,
            "systemctl set-property --runtime web.service MemoryHigh=300M"
        );
        assert!(fix.undo.ends_with("MemoryHigh=infinity"), "{}", fix.undo);
        assert!(
            fix.what.contains("web.service with 400 MiB"),
            "{}",
            fix.what
        );
    }

    #[test]
    fn without_a_unit_that_counts_there_are_words_only() {
        for (group, mib) in [
            ("/system.slice/web.service", 40),
            ("/docker/0123", 400),
            ("/system.slice", 400),
            ("/system.slice/a; reboot.service", 400),
        ] {
            let fix = cap(group, mib);
            assert_eq!(
                (fix.now.as_str(), fix.persistent.as_str()),
                ("", ""),
                "{group}"
            );
            assert!(fix.what.starts_with("Cap it."));
        }
    }
}
