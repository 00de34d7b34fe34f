//! Removed cgroups that still hold memory pile up.

use timeline::facts::CgroupMode;
use timeline::signals::{CGROUPS, CGROUPS_DYING, MEM_PERCPU};

use crate::prelude::*;

declare_rule! {
    /// Removed cgroups pile up in the kernel, because memory is still charged to them.
    ///
    /// ## What it means
    /// A cgroup that was removed stays in the kernel (dying) until the last page charged to it is freed. Services,
    /// containers and cron jobs that come and go leave one each, if a file that they touched stays cached. Each takes
    /// per-CPU memory, more of it the more CPUs there are, and makes reclaim and reading memory.stat slower.
    /// ## How it is recognised
    /// For {LEVEL} the kernel counts {MANY} dying cgroups or more, and as many as there are living ones: in the root's
    /// cgroup.stat, on cgroup v1 as those of /proc/cgroups without a directory. It is informational, and a warning if
    /// per-CPU memory is {PERCPU_SHARE} of RAM or more at the same time.
    /// ## Not this
    /// - Many living cgroups: a host with many containers.
    /// - `percpu-large`: per-CPU memory of other users: network devices, BPF maps, counters.
    /// - Some hundreds after a deployment: they go with the next reclaim.
    /// ## What to do
    /// Now: find what makes and removes cgroups so often: a failing container, a short timer. Reclaim frees them; to
    /// force it, drop the caches once. For good: let such jobs share a slice, reclaim from a cgroup before it is
    /// removed (memory.reclaim), or update the kernel. Verify: their number stays level over a day.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, cgroup.stat
    /// - kernel mm/memcontrol.c, mem_cgroup_css_offline
    pub(crate) RULE = {
        id: "dying-cgroups", since: "0.1.0", class: Growth,
        numbers: [LEVEL, MANY, PERCPU_SHARE],
        trigger: trigger, story: story,
        cause: "Page cache, tmpfs files or kernel objects of removed cgroups are still in memory, \
                and each keeps its cgroup.",
        verify: "grep dying_descendants /sys/fs/cgroup/cgroup.stat (v1: grep memory \
                 /proc/cgroups): level over a day",
        brings_about: &["percpu-large"],
    }
}

/// An engineering choice: hosts with a usual number of services and timers have some hundreds.
const MANY: Count = Count::new(1000);
/// From this share of RAM on, per-CPU memory is a cost: the threshold at which it is called large.
const PERCPU_SHARE: Ratio = Ratio::from_percent(3.0);

fn trigger() -> Trigger {
    let least = Reading::constant(MANY).max(gauge(CGROUPS));
    Trigger::on_host(LEVEL, gauge(CGROUPS_DYING).at_least("dying cgroups", least))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let dying = cx.gauge(CGROUPS_DYING)?;
    let Some((most, index)) = dying.max_in(stretch) else {
        return clear!("dying cgroups were not counted");
    };
    let least = dying.min_in(stretch).map_or(most, |(least, _)| least);
    let living = cx.level(CGROUPS, index).unwrap_or_default();
    let percpu = cx.level(MEM_PERCPU, index);
    let is_costly =
        percpu.and_then(|percpu| cx.of_ram(percpu).ok()).is_some_and(|share| share >= PERCPU_SHARE);
    let grown = Count::new(most.get() - least.get());
    let costs = percpu.map_or_else(String::new, |percpu| format!("; per-CPU memory is {percpu}"));
    let title = format!(
        "{most} removed cgroups are still in the kernel, beside {living} living ones{costs}."
    );
    Ok(RULE
        .found(Severity::warning_if(is_costly), title)
        .graph("dying cgroups", &dying)
        .shows_from(
            CGROUPS_DYING,
            most,
            MANY.max(living),
            cx.time(index),
            format!("{most} dying cgroups"),
        )
        .counts_as("the kernel's count")
        .shows(CGROUPS, living, cx.time(index), format!("{living} cgroups exist"))
        .when(grown > Count::ZERO, |finding| {
            finding.shows(CGROUPS_DYING, grown, None, format!("they rose by {grown}"))
        })
        .with(percpu, |finding, percpu| {
            finding.shows(
                MEM_PERCPU,
                percpu,
                cx.time(index),
                format!("per-CPU memory {percpu}{}", cx.remark_of_ram(percpu)),
            )
        })
        .counts_if(is_costly, "per-CPU memory")
        .shows_available(cx, stretch)
        .fix(
            Fix::say(
                "Find what makes and removes cgroups so often: a container that fails and starts \
                 again, a short timer.",
            )
            .inspect(format!("systemctl list-timers --no-pager\n{}", count_command(cx))),
        )
        .fix(
            Fix::say(
                "To free them at once, write what is dirty and drop the caches; files are then \
                 read again, so do it at a quiet time.",
            )
            .run("sync && echo 3 > /proc/sys/vm/drop_caches"),
        )
        .sure_by_kinds(cx, "a recording over hours would show whether they pile up")
        .into())
}

/// The command that prints the kernel's count.
fn count_command(cx: &Evidence<'_>) -> &'static str {
    match cx.facts.cgroup_mode {
        Some(CgroupMode::V1) => "cat /proc/cgroups",
        _ => "cat /sys/fs/cgroup/cgroup.stat",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, amid_calm, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_AVAILABLE, MEM_TOTAL};

    fn host(dying: u64, living: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_gib(16))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(8))
            .gauge(CGROUPS, Count::new(living))
            .gauge(CGROUPS_DYING, Count::new(dying))
    }

    #[test]
    fn thousands_are_informational_and_a_warning_if_they_cost() {
        let finding = found(RULE, &host(20_000, 90));
        assert_eq!(finding.severity, Severity::Info);
        let costly = host(20_000, 90).gauge(MEM_PERCPU, Bytes::from_mib(900));
        let finding = found(RULE, &costly);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("900 MiB"), "{}", finding.title);
    }

    #[test]
    fn clear_with_some_hundreds_or_many_living_ones() {
        clear(RULE, &host(600, 90));
        clear(RULE, &host(1500, 4000));
        let other = host(10, 90).gauge(MEM_PERCPU, Bytes::from_gib(1));
        clear(RULE, &other);
    }

    #[test]
    fn finds_30_s_within_an_hour() {
        let hour = |most| {
            let steps = amid_calm(Count::new(most), Count::new(10));
            Case::over(3600).gauge(CGROUPS, Count::new(90)).gauge_steps(CGROUPS_DYING, &steps)
        };
        assert_eq!(times(&found(RULE, &hour(3000))), [(1799, 1829)]);
        clear(RULE, &hour(500));
    }

    #[test]
    fn not_evaluated_without_the_count() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["cgroups.dying"]);
    }
}
