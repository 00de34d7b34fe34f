//! The commit limit: the kernel refuses allocations although memory is free.

use timeline::facts::{ADMIN_RESERVE, OVERCOMMIT_KBYTES, OVERCOMMIT_MEMORY, OVERCOMMIT_RATIO};
use timeline::settings::ADMIN_RESERVE_MAX;
use timeline::signals::{COMMIT_LIMIT, COMMITTED_AS, MEM_AVAILABLE, MEM_HUGETLB, SWAP_TOTAL};

use crate::prelude::*;

declare_rule! {
    /// The kernel refuses allocations because committed memory has reached the commit limit, whatever is free.
    ///
    /// ## What it means
    /// With `vm.overcommit_memory=2` the kernel commits to no more memory than `CommitLimit`: a share of RAM plus swap.
    /// Programs reserve far more than they touch, so malloc and fork fail ("Cannot allocate memory") while memory is
    /// free.
    /// ## How it is recognised
    /// For {LEVEL}, the mode is 2 and `Committed_AS` is at {COMMITTED_SHARE} of `CommitLimit` or more, or so close that
    /// only the reserve for root is left. From {NEAR_LIMIT} on it is informational: larger requests are refused
    /// already, and refused requests leave no trace in any counter.
    /// ## Not this
    /// - Mode 0 or 1: `Committed_AS` may exceed `CommitLimit` by far and means nothing.
    /// - `RLIMIT_AS`, `RLIMIT_DATA`, `vm.max_map_count` or cgroup limits refuse as well; they do not bring
    ///   `Committed_AS` to the limit.
    /// - `available-exhaustion`: memory is really used up.
    /// ## What to do
    /// Now: `sysctl -w vm.overcommit_memory=0`, or a larger share with `vm.overcommit_ratio`. For good: the same in a
    /// file under `/etc/sysctl.d/`. More swap raises the limit as well. Verify: Committed_AS stays below {NEAR_LIMIT}
    /// of the limit, and fork works.
    /// ## References
    /// - kernel Documentation/mm/overcommit-accounting.rst
    /// - kernel mm/util.c, __vm_enough_memory
    pub(crate) RULE = {
        id: "overcommit-limit", since: "0.1.0", class: Limit,
        numbers: [LEVEL, COMMITTED_SHARE, NEAR_LIMIT],
        trigger: trigger, story: story,
        cause: "Programs reserve more address space than they touch, and in mode 2 every \
                reservation counts.",
        verify: "memtide check: Committed_AS below {NEAR_LIMIT} of CommitLimit, or mode 0; fork \
                 and malloc succeed",
        explained_by: &[
            Explains::Surely(OVERCOMMIT_MEMORY), Explains::Surely(OVERCOMMIT_RATIO),
            Explains::Surely(OVERCOMMIT_KBYTES),
        ],
    }
}

/// An engineering choice: the next large request exceeds the limit.
const COMMITTED_SHARE: Ratio = Ratio::from_percent(95.0);
/// Programs grow in steps (thread stacks and heaps of 64 MiB, a fork's copy of all): requests of a tenth of the limit
/// were refused on a host at 88 % (a test VM, November 2026).
const NEAR_LIMIT: Ratio = Ratio::from_percent(85.0);
/// The advised limit, as a multiple of committed memory.
const LIMIT_FACTOR: f64 = 1.25;
/// A higher ratio leaves nothing for the kernel itself; an engineering choice.
const RATIO_MAX: f64 = 95.0;
/// The mode that enforces the limit; there is none above it.
const STRICT: Count = Count::new(2);

fn trigger() -> Trigger {
    let committed = || gauge(COMMITTED_AS);
    let left = gauge(COMMIT_LIMIT).minus(committed());
    Trigger::on_host(
        LEVEL,
        all![
            fact(OVERCOMMIT_MEMORY).at_least("vm.overcommit_memory", STRICT),
            any![
                committed().at_least("committed memory", gauge(COMMIT_LIMIT).share(NEAR_LIMIT)),
                left.at_most("memory left to commit", reserve()),
            ],
        ],
    )
}

/// The reserve for root.
fn reserve() -> Reading<Bytes> {
    let set = fact(ADMIN_RESERVE).of_size(Reading::constant(Bytes::from_kib(1)));
    set.or(Reading::constant(ADMIN_RESERVE_MAX))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let (committed, limit) = (cx.gauge(COMMITTED_AS)?, cx.gauge(COMMIT_LIMIT)?);
    let parts = committed.ratio_of(&limit);
    let Some((part, index)) = parts.max_in(stretch) else {
        return clear!("CommitLimit is 0");
    };
    let most = committed.at(index).unwrap_or_default();
    let allowed = limit.at(index).unwrap_or_default();
    let reserve: Bytes = reserve().track(cx)?.at(index).unwrap_or_default();
    let available = cx.lowest_in(MEM_AVAILABLE, stretch).map(|(least, _)| least);
    let although =
        available.map_or_else(String::new, |left| format!(" although {left} is available"));
    let remaining = allowed.saturating_sub(most);
    let is_full = part >= COMMITTED_SHARE || remaining <= reserve;
    let refused = if is_full {
        "The kernel refuses allocations".to_owned()
    } else {
        format!("The kernel refuses any request above {remaining}")
    };
    let title = format!(
        "{refused}{although}: {most} is committed, {part} of the commit limit of {allowed}, and \
         vm.overcommit_memory is 2."
    );
    let mode = "vm.overcommit_memory = 2: the kernel refuses what exceeds the limit";
    let text = format!("Committed_AS is {most}, {part} of CommitLimit {allowed}");
    let at = cx.time(index);
    let finding = RULE
        .found(Severity::warning_if(is_full), title)
        .graph("committed", &committed)
        .shows_fact(OVERCOMMIT_MEMORY, STRICT.get(), mode)
        .counts_as("the setting")
        .shows_from(COMMITTED_AS, most, allowed.share(NEAR_LIMIT), at, text)
        .counts_as("committed memory at the limit")
        .with(available, |finding, left| {
            let text = format!("at least {left} available throughout");
            finding
                .shows(MEM_AVAILABLE, left, None, text)
                .counts_as("available memory")
                .not("available-exhaustion", format!("{left} is available"))
        });
    let limits = [(OVERCOMMIT_RATIO, " %"), (OVERCOMMIT_KBYTES, " kB")];
    let finding = limits.into_iter().fold(finding, |finding, (fact, unit)| {
        let value = cx.number(fact).ok().filter(|value| *value > 0);
        finding.with(value, |finding, value| {
            finding.shows_fact(fact, value, format!("{} = {value}{unit}", fact.name))
        })
    });
    let what = "Switch to the heuristic mode, which refuses only obvious overcommits.";
    let finding = finding.fix(Fix::tunable(cx, what, OVERCOMMIT_MEMORY, 0));
    Ok(raise_the_limit(cx, finding, most)
        .affects(processes::largest(cx, index, 3))
        .sure_by_kinds(cx, "")
        .into())
}

/// Raises the limit above committed memory, by the setting in use; advises swap where RAM is too small for that.
fn raise_the_limit(cx: &Evidence<'_>, finding: Finding, committed: Bytes) -> Finding {
    let (Ok(ram), Ok(swap)) = (cx.ram(), cx.last(SWAP_TOTAL)) else {
        return finding;
    };
    // Kernels without huge pages lack the field.
    let countable = match cx.last(MEM_HUGETLB) {
        Ok(hugetlb) => ram.saturating_sub(hugetlb),
        Err(_) => ram,
    };
    let wanted = Bytes::from_f64(committed.as_f64() * LIMIT_FACTOR).saturating_sub(swap);
    let Some(share) = wanted.ratio_of(countable) else {
        return finding;
    };
    let percent = (share.get() * 100.0).ceil();
    if percent > RATIO_MAX {
        let allowed = cx.last(COMMIT_LIMIT).unwrap_or_default();
        let missing = Bytes::from_f64(committed.as_f64() * LIMIT_FACTOR).saturating_sub(allowed);
        let what = "Or add swap: all of it counts towards the limit, even if it is never used.";
        return finding.fix(Fix::swap_file(what, "/swapfile", missing));
    }
    let what = "Or keep the limit and raise it.";
    match (cx.number(OVERCOMMIT_KBYTES), cx.number(OVERCOMMIT_RATIO)) {
        (Ok(kbytes), _) if kbytes > 0 => {
            finding.fix(Fix::tunable(cx, what, OVERCOMMIT_KBYTES, wanted.get() / 1024))
        }
        (_, Ok(_)) => {
            finding.fix(Fix::tunable(cx, what, OVERCOMMIT_RATIO, format!("{percent:.0}")))
        }
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, changed, clear, found, not_evaluated};
    use timeline::signals::MEM_TOTAL;
    use units::Span;

    fn committed(mode: &str, mib: u64, limit: u64) -> Case {
        Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_mib(720))
            .gauge(MEM_AVAILABLE, Bytes::from_mib(540))
            .gauge(SWAP_TOTAL, Bytes::from_mib(128))
            .gauge(COMMITTED_AS, Bytes::from_mib(mib))
            .gauge(COMMIT_LIMIT, Bytes::from_mib(limit))
            .fact(OVERCOMMIT_MEMORY, mode)
            .fact(OVERCOMMIT_RATIO, "50")
    }

    #[test]
    fn committed_memory_at_an_enforced_limit_is_found() {
        let finding = found(RULE, &committed("2", 480, 488));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.confidence.word(), "confirmed");
        // 1.25 × 480 MiB − 128 MiB of swap is 66 % of 720 MiB.
        let raised = &changed(&finding.fixes[1])[0];
        assert!(raised.ends_with("vm.overcommit_ratio=66"), "{raised}");
    }

    #[test]
    fn clear_when_the_limit_is_not_enforced() {
        clear(RULE, &committed("0", 615, 360));
        clear(RULE, &committed("1", 615, 360));
    }

    #[test]
    fn clear_below_the_limit_but_not_within_the_reserve_for_root() {
        clear(RULE, &committed("2", 400, 488));
        found(RULE, &committed("2", 94, 100));
    }

    #[test]
    fn near_the_limit_it_is_informational() {
        let finding = found(RULE, &committed("2", 430, 488));
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            finding.title.starts_with("The kernel refuses any request above 58 MiB"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn found_in_a_single_sample() {
        let case = Case::once()
            .gauge(COMMITTED_AS, Bytes::from_mib(480))
            .gauge(COMMIT_LIMIT, Bytes::from_mib(488))
            .fact(OVERCOMMIT_MEMORY, "2");
        assert_eq!(found(RULE, &case).confidence.word(), "probable");
    }

    #[test]
    fn swap_is_advised_when_ram_is_too_small_for_the_limit() {
        let finding = found(RULE, &committed("2", 800, 810));
        assert!(changed(&finding.fixes[1])[0].contains("swapon"));
    }

    #[test]
    fn finds_30_s_within_an_hour_while_the_mode_is_2() {
        let near = [vec![200; 1800], vec![480; 30], vec![200]].concat();
        let near: Vec<Bytes> = near.into_iter().map(Bytes::from_mib).collect();
        let hour = |promised: &[Bytes]| {
            Case::over(3600)
                .gauge(COMMIT_LIMIT, Bytes::from_mib(488))
                .gauge_steps(COMMITTED_AS, promised)
        };
        let finding = found(RULE, &hour(&near).fact(OVERCOMMIT_MEMORY, "2"));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.when.unwrap().duration(), Span::from_secs(30));
        clear(RULE, &hour(&near).fact(OVERCOMMIT_MEMORY, "0"));
        let mut case = hour(&near[1800..1801]).fact(OVERCOMMIT_MEMORY, "0");
        for (second, mode) in [(1000, "2"), (1060, "0")] {
            let at = Span::from_secs(second);
            case.facts.record(at, OVERCOMMIT_MEMORY, mode);
        }
        let when = found(RULE, &case).when.unwrap();
        assert_eq!((when.first, when.last), (999, 1059));
    }

    #[test]
    fn not_evaluated_without_mode_and_figures() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["vm.overcommit_memory"]);
        let no_figures = Case::once().fact(OVERCOMMIT_MEMORY, "2");
        assert_eq!(not_evaluated(RULE, &no_figures).names, ["mem.committed_as"]);
    }
}
