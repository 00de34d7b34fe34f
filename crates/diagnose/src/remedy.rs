//! Fixes that several rules give: settings, limits of cgroups, swap.
//!
//! Nothing has placeholders: values that are unknown on that host are described in words.

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
use crate::finding::{Fix, LimitFile, SettingChange, SettingValue, ShellCommand};
use crate::measures::cgroups;

pub(crate) use cgroup_limit::{
    NO_ROOM, high_below, kills_at, larger_limit, larger_limit_of, lasts, lasts_words,
    let_kernel_kill, limit_to_measure, more, raise_limit, raise_limit_of, raise_limit_to,
    raise_words, room_for, set_elsewhere, set_limit, set_limit_of, write_otherwise,
};

impl Fix {
    /// Sets a tunable; undo restores its present value.
    pub(crate) fn tunable(
        cx: &Evidence<'_>,
        what: impl Into<String>,
        fact: Fact,
        value: impl Display,
    ) -> Self {
        let change = SettingChange::new(fact, value).instead_of(cx.number(fact).ok());
        Self::setting(cx, what, change)
    }

    /// Changes a setting of the whole host.
    pub(crate) fn setting(
        cx: &Evidence<'_>,
        what: impl Into<String>,
        change: SettingChange,
    ) -> Self {
        Self::of_host(cx, what).set(change)
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

    /// Sets a setting that is a file below /sys; undo restores its present content. That content is untrusted text: only a
    /// plain word gets into a command.
    pub(crate) fn file(
        what: impl Into<String>,
        fact: Fact,
        value: impl Display,
        old: Option<impl Display>,
    ) -> Self {
        let is_plain = |old: &String| {
            !old.is_empty()
                && old.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'+')
        };
        let old = old.map(|old| old.to_string()).filter(is_plain);
        Self::say(what).set(SettingChange::new(fact, value).instead_of(old))
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
        let held = |facts: [Fact; 2]| {
            facts.into_iter().find_map(|fact| {
                let value = cx.number(fact).ok().filter(|value| *value > 0)?.to_string();
                Some(SettingValue { fact, value })
            })
        };
        let limits = std::iter::once(background).chain(most);
        limits.fold(Self::of_host(cx, what), |fix, (bytes, ratio, value)| {
            let from = held([bytes, ratio]);
            fix.set(SettingChange { from, ..SettingChange::new(bytes, value) })
        })
    }

    /// Adds a swap file of a size. Undo also removes its line from fstab, which would delay a boot.
    pub(crate) fn swap_file(what: impl Into<String>, path: &str, size: Bytes) -> Self {
        let mib = whole_mib(size);
        Self::say(what).command(ShellCommand {
            now: format!(
                "fallocate -l {mib}M {path} && chmod 600 {path} && mkswap {path} && swapon {path}"
            ),
            keep: format!("echo '{path} none swap sw 0 0' >> /etc/fstab"),
            undo: format!("swapoff {path} && rm {path} && sed -i '\\|^{path} |d' /etc/fstab"),
        })
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
        set_limit(cx, group, LimitFile::High, limit).described(format!(
            "{what} The largest unit is {unit} with up to {held}; this slows it down above {}.",
            in_whole_mib(limit)
        ))
    }
}

/// Whether this host's cgroups may have `memory.high`: the file came with cgroup v2 in kernel 4.5, and v1 has none.
fn has_memory_high(cx: &Evidence<'_>) -> bool {
    const SINCE: KernelVersion = KernelVersion { major: 4, minor: 5 };
    let is_old = cx.facts.kernel().is_some_and(|kernel| kernel < SINCE);
    cx.facts.cgroup_mode != Some(CgroupMode::V1) && !is_old
}

/// The size that zram-generator's manual proposes: half of RAM, at most 4 GiB.
const ZRAM_SIZE_SHARE: Ratio = Ratio::from_percent(50.0);
pub(crate) const ZRAM_SIZE_MAX: Bytes = Bytes::from_gib(4);

/// Adds compressed swap in RAM that is filled before other areas. `more`: further lines of its settings, as printf takes
/// them.
pub(crate) fn zram_swap(ram: Bytes, more: &str) -> ShellCommand {
    let mib = whole_mib(ram.share(ZRAM_SIZE_SHARE).min(ZRAM_SIZE_MAX));
    ShellCommand {
        now: format!(
            "zramctl --find --size {mib}M --algorithm zstd && mkswap /dev/zram0 && swapon -p 100 \
             /dev/zram0"
        ),
        keep: format!(
            "printf '[zram0]\\nzram-size = min(ram / 2, 4096)\\n{more}' >> \
             /etc/systemd/zram-generator.conf"
        ),
        undo: "swapoff /dev/zram0 && zramctl --reset /dev/zram0".to_owned(),
    }
}

/// Returns a size in MiB, rounded up, as systemd and the kernel take it.
pub(crate) fn whole_mib(size: Bytes) -> u64 {
    size.get().div_ceil(1 << 20)
}

/// Returns a size rounded up to whole MiB.
pub(crate) fn in_whole_mib(size: Bytes) -> Bytes {
    Bytes::from_mib(whole_mib(size))
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
    use crate::finding::{FixChange, LimitChange};
    use crate::rules::testing::{Case, setting};
    use timeline::Entity;
    use timeline::facts::{KERNEL_VERSION, THP_DEFRAG};
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
        let expected = LimitChange {
            cgroup: "/system.slice/web.service".to_owned(),
            unit: Some("web.service".to_owned()),
            file: LimitFile::High,
            // Its memory.high was not read.
            from: None,
            to: Bytes::from_mib(300),
        };
        assert_eq!(fix.changes, [FixChange::Limit(expected)]);
        assert!(fix.what.contains("web.service with up to 400 MiB"), "{}", fix.what);
    }

    #[test]
    fn dirty_limits_come_back_as_the_bytes_or_the_ratio_that_held() {
        let old = |facts: &[(Fact, &str)]| {
            let mut case = Case::over(20);
            for (fact, value) in facts {
                case = case.fact(*fact, value);
            }
            let fix = |cx: &Evidence<'_>| Fix::dirty_limits(cx, "", Bytes::from_mib(64), None);
            setting(&case.with(fix)).from.map(|old| (old.fact, old.value))
        };
        let (bytes, ratio) = (DIRTY_BACKGROUND_BYTES, DIRTY_BACKGROUND_RATIO);
        assert_eq!(old(&[(bytes, "0"), (ratio, "10")]), Some((ratio, "10".to_owned())));
        assert_eq!(old(&[(bytes, "4096"), (ratio, "0")]), Some((bytes, "4096".to_owned())));
        assert_eq!(old(&[(ratio, "0")]), None);
        assert_eq!(old(&[]), None);
    }

    #[test]
    fn what_a_file_is_said_to_hold_is_taken_back_only_as_a_plain_word() {
        let old = |old| setting(&Fix::file("", THP_DEFRAG, "never", old)).from;
        assert_eq!(old(Some("defer+madvise")).unwrap().value, "defer+madvise");
        for text in [Some("$(reboot)"), Some("a; reboot"), Some("a\nb"), Some(""), None] {
            assert_eq!(old(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_the_largest_unit_had_is_what_comes_back() {
        let group = "/system.slice/web.service";
        for had in [Limit::Bytes(Bytes::from_mib(900)), Limit::Unlimited] {
            let case = Case::over(20)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge_of(Entity::Cgroup, group, CGROUP_HIGH, had)
                .gauge_of(Entity::Cgroup, group, CGROUP_CURRENT, Bytes::from_mib(400));
            let fix = case.with(|cx| Fix::cap(cx, 10, "Cap it."));
            let [FixChange::Limit(limit)] = &fix.changes[..] else { panic!("{fix:?}") };
            assert_eq!(limit.from, Some(had));
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
            assert_eq!(fix.changes, [], "{group}");
            assert!(fix.what.starts_with("Cap it."));
        }
    }
}
