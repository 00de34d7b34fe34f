//! Fixes of findings: words, and commands that can be pasted into a shell unchanged.
//!
//! Commands have no placeholders: values that are unknown on that host are described in words.

mod cgroup_limit;

use std::fmt::Display;

use timeline::facts::{
    CgroupMode, DIRTY_BACKGROUND_BYTES, DIRTY_BACKGROUND_RATIO, DIRTY_BYTES, DIRTY_RATIO,
    KernelVersion,
};
use timeline::signals::CGROUP_CURRENT;
use timeline::{EntitySeries, Fact};
use units::{Bytes, Ratio};

use crate::evidence::Evidence;
use crate::finding::Fix;
use crate::measures::cgroups;

pub(crate) use cgroup_limit::{Knob, more, set_elsewhere, set_limit, set_limit_of};

impl Fix {
    /// Sets a tunable; undo restores its present value.
    pub(crate) fn tunable(
        cx: &Evidence<'_>,
        what: impl Into<String>,
        fact: Fact,
        value: impl Display,
    ) -> Self {
        let old = cx.number(fact).map(|old| format!("sysctl -w {}={old}", fact.name));
        Self::of_host(cx, what)
            .now(format!("sysctl -w {}={value}", fact.name))
            .keep(kept_tunable(fact.name, value))
            .undo(old.unwrap_or_default())
    }

    /// Describes what is set for the whole host, which a container may not.
    fn of_host(cx: &Evidence<'_>, what: impl Into<String>) -> Self {
        let where_ = cx
            .facts
            .container
            .as_ref()
            .map_or("", |_| " This is set on the host, not in a container.");
        Self::say(what.into() + where_)
    }

    /// Writes a word to a file of the kernel; undo restores its present content. That content is untrusted text: only a
    /// plain word gets into a command.
    pub(crate) fn file(
        what: impl Into<String>,
        path: &str,
        value: impl Display,
        old: Option<impl Display>,
    ) -> Self {
        let is_plain = |old: &String| {
            !old.is_empty()
                && old.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'+')
        };
        let old = old.map(|old| old.to_string()).filter(is_plain);
        let undo = old.map(|old| format!("echo {old} > {path}"));
        Self::say(what)
            .now(format!("echo {value} > {path}"))
            .keep(format!("echo 'w {path} - - - - {value}' >> /etc/tmpfiles.d/memtide.conf"))
            .undo(undo.unwrap_or_default())
    }

    /// Sets limits of dirty data in bytes; undo restores the present ones, in bytes or as a ratio, whichever is in
    /// effect. The kernel shows the other one as 0.
    pub(crate) fn dirty_limits(
        cx: &Evidence<'_>,
        what: impl Into<String>,
        background: Bytes,
        most: Option<Bytes>,
    ) -> Self {
        let background = (DIRTY_BACKGROUND_BYTES, DIRTY_BACKGROUND_RATIO, background.get());
        let most = most.map(|most| (DIRTY_BYTES, DIRTY_RATIO, most.get()));
        let limits: Vec<_> = std::iter::once(background).chain(most).collect();
        let held = |(bytes, ratio, _): &(Fact, Fact, u64)| {
            [*bytes, *ratio].into_iter().find_map(|fact| {
                let value = cx.number(fact).ok().filter(|value| *value > 0)?;
                Some(format!("sysctl -w {}={value}", fact.name))
            })
        };
        let undo: Option<Vec<String>> = limits.iter().map(held).collect();
        let each = |line: fn(&str, u64) -> String| {
            let lines = limits.iter().map(|(bytes, _, value)| line(bytes.name, *value));
            lines.collect::<Vec<_>>().join("\n")
        };
        Self::of_host(cx, what)
            .now(each(|name, value| format!("sysctl -w {name}={value}")))
            .keep(each(kept_tunable))
            .undo(undo.map_or_else(String::new, |lines| lines.join("\n")))
    }

    /// Adds a swap file of a size. Undo also removes its line from fstab, which would delay a boot.
    pub(crate) fn swap_file(what: impl Into<String>, path: &str, size: Bytes) -> Self {
        let mib = whole_mib(size);
        Self::say(what)
            .now(format!(
                "fallocate -l {mib}M {path} && chmod 600 {path} && mkswap {path} && swapon {path}"
            ))
            .keep(format!("echo '{path} none swap sw 0 0' >> /etc/fstab"))
            .undo(format!("swapoff {path} && rm {path} && sed -i '\\|^{path} |d' /etc/fstab"))
    }

    /// Slows down the largest unit at a sample, if there is one that can be named; otherwise in words.
    pub(crate) fn cap(cx: &Evidence<'_>, index: usize, what: &str) -> Self {
        let Some((group, unit, held)) = largest_unit(cx, index) else {
            let how = if has_memory_high(cx) {
                "systemctl set-property takes MemoryHigh for a service."
            } else {
                "MemoryLimit= in its unit does that for a service, memory.limit_in_bytes for any \
                 cgroup."
            };
            return Self::say(format!("{what} {how}"));
        };
        let limit = held.share(CAPPED);
        set_limit(cx, group, Knob::High, limit).described(format!(
            "{what} The largest unit is {unit} with up to {held}; this slows it down above {}.",
            Bytes::from_mib(whole_mib(limit))
        ))
    }
}

/// Whether this host's cgroups may have `memory.high`: the file came with cgroup v2 in kernel 4.5, and v1 has none.
fn has_memory_high(cx: &Evidence<'_>) -> bool {
    const SINCE: KernelVersion = KernelVersion { major: 4, minor: 5 };
    let is_old = cx.facts.kernel().is_some_and(|kernel| kernel < SINCE);
    cx.facts.cgroup_mode != Some(CgroupMode::V1) && !is_old
}

/// Returns the command that makes a tunable permanent.
pub(crate) fn kept_tunable(name: &str, value: impl Display) -> String {
    format!("echo '{name} = {value}' >> /etc/sysctl.d/99-zz-memtide.conf")
}

/// Returns a size in MiB, rounded up, as systemd and the kernel take it.
pub(crate) fn whole_mib(size: Bytes) -> u64 {
    size.get().div_ceil(1 << 20)
}

/// A cap that leaves a quarter of the largest unit's memory to the others: an engineering choice, named in the fix so
/// that a reader who knows the program can correct it.
const CAPPED: Ratio = Ratio::from_percent(75.0);
/// A unit with less than this part of RAM is not capped: the others would gain too little.
const WORTH_CAPPING: Ratio = Ratio::from_percent(10.0);

/// Returns the largest service or scope of this host's systemd, its name, and its peak size: every finding about it
/// gives the same.
fn largest_unit<'a>(cx: &Evidence<'a>, index: usize) -> Option<(&'a EntitySeries, &'a str, Bytes)> {
    // memory.high exists on cgroup v2 only.
    if cx.facts.cgroup_mode == Some(CgroupMode::V1) {
        return None;
    }
    let least = cx.ram().ok()?.share(WORTH_CAPPING);
    let units = cgroups::units(cx, index).filter(|(_, _, held)| *held >= least);
    let (group, unit, held) = units.max_by_key(|(_, _, held)| *held)?;
    let peak = cx.gauge_of(group, CGROUP_CURRENT).ok()?.max();
    Some((group, unit, peak.map_or(held, |(peak, _)| peak)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::Entity;
    use timeline::facts::KERNEL_VERSION;
    use timeline::signals::{CGROUP_HIGH, MEM_TOTAL};
    use units::Limit;

    /// The fix on a host of 1,000 MiB with a cgroup of `mib`.
    fn cap(group: &str, mib: u64) -> Fix {
        let case = Case::over(20).gauge(MEM_TOTAL, Bytes::from_mib(1000)).gauge_of(
            Entity::Cgroup,
            group,
            CGROUP_CURRENT,
            Bytes::from_mib(mib),
        );
        case.with(|cx| Fix::cap(cx, 10, "Cap it."))
    }

    #[test]
    fn the_largest_unit_is_capped_by_its_name_and_at_a_size() {
        let fix = cap("/system.slice/web.service", 400);
        assert_eq!(fix.now, "systemctl set-property --runtime web.service MemoryHigh=300M");
        // Its memory.high was not read.
        assert_eq!(fix.undo, "");
        assert!(fix.what.contains("web.service with up to 400 MiB"), "{}", fix.what);
    }

    #[test]
    fn dirty_limits_come_back_as_the_bytes_or_the_ratio_that_held() {
        let undo = |facts: &[(Fact, &str)]| {
            let mut case = Case::over(20);
            for (fact, value) in facts {
                case = case.fact(*fact, value);
            }
            let fix = |cx: &Evidence<'_>| Fix::dirty_limits(cx, "", Bytes::from_mib(64), None);
            case.with(fix).undo
        };
        let (bytes, ratio) = (DIRTY_BACKGROUND_BYTES, DIRTY_BACKGROUND_RATIO);
        assert_eq!(undo(&[(bytes, "0"), (ratio, "10")]), "sysctl -w vm.dirty_background_ratio=10");
        assert_eq!(
            undo(&[(bytes, "4096"), (ratio, "0")]),
            "sysctl -w vm.dirty_background_bytes=4096"
        );
        assert_eq!(undo(&[(ratio, "0")]), "");
        assert_eq!(undo(&[]), "");
    }

    #[test]
    fn what_a_file_is_said_to_hold_is_taken_back_only_as_a_plain_word() {
        let undo = |old| Fix::file("", "/sys/x", "never", old).undo;
        assert_eq!(undo(Some("defer+madvise")), "echo defer+madvise > /sys/x");
        for old in [Some("$(reboot)"), Some("a; reboot"), Some("a\nb"), Some(""), None] {
            assert_eq!(undo(old), "", "{old:?}");
        }
    }

    #[test]
    fn what_the_largest_unit_had_is_what_comes_back() {
        let group = "/system.slice/web.service";
        for (had, high) in
            [(Limit::Bytes(Bytes::from_mib(900)), "943718400"), (Limit::Unlimited, "infinity")]
        {
            let case = Case::over(20)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge_of(Entity::Cgroup, group, CGROUP_HIGH, had)
                .gauge_of(Entity::Cgroup, group, CGROUP_CURRENT, Bytes::from_mib(400));
            assert_eq!(
                case.with(|cx| Fix::cap(cx, 10, "Cap it.")).undo,
                format!("systemctl set-property --runtime web.service MemoryHigh={high}")
            );
        }
    }

    #[test]
    fn kernels_without_memory_high_are_given_what_they_have() {
        let words = |version| {
            let case = Case::over(20).fact(KERNEL_VERSION, version);
            case.with(|cx| Fix::cap(cx, 10, "Cap it.")).what
        };
        assert!(words("3.10.0-862.el7.x86_64").contains("memory.limit_in_bytes"));
        assert!(words("6.1.0-56-cloud-amd64").contains("MemoryHigh"));
    }

    #[test]
    fn without_a_unit_that_counts_there_are_words_only() {
        for (group, mib) in [
            ("/system.slice/web.service", 40),
            ("/docker/0123", 400),
            ("/docker/0123/system.slice/web.service", 400),
            ("/system.slice/-Hroot@host.service", 400),
            ("/init.scope", 400),
            ("/system.slice", 400),
            ("/system.slice/a; reboot.service", 400),
        ] {
            let fix = cap(group, mib);
            assert_eq!((fix.now.as_str(), fix.persistent.as_str()), ("", ""), "{group}");
            assert!(fix.what.starts_with("Cap it."));
        }
    }
}
