//! RAM that the kernel took out of use after memory errors.

use timeline::signals::MEM_HW_CORRUPTED;
use timeline::{KillNotice, ModuleErrors, NoticeKind};

use crate::finding::Confidence;
use crate::oom::notices;
use crate::prelude::*;

declare_rule! {
    /// Memory modules fail: the kernel took pages out of use after memory errors.
    ///
    /// ## What it means
    /// The hardware reported an error that it could not correct in a page, or so many corrected ones that a daemon
    /// asked for the page to be retired. The kernel never uses such a page again before a reboot. A process that had
    /// data in it was killed by SIGBUS, or the data was read again from its file. One page costs nothing; it announces
    /// that the module fails.
    /// ## How it is recognised
    /// HardwareCorrupted in /proc/meminfo is not 0. That is a warning at any size: each page is an error. Or the kernel
    /// log has messages of EDAC or of pages that failed: a warning from the first error that was not corrected, or from
    /// ten corrected ones, else informational.
    /// ## Not this
    /// - `unaccounted-memory`, `boot-reserved`: memory that a driver or the firmware holds is not defective.
    /// - Errors that were injected to test a host (`hwpoison`, MADV_HWPOISON) are counted in the same way.
    /// ## What to do
    /// Now: find the module in the log (`ras-mc-ctl --errors`, `mcelog`, `journalctl -k`) or in the management
    /// controller's event log, and move the load away. For good: replace it. Verify: HardwareCorrupted stays 0 after
    /// the reboot.
    /// ## References
    /// - kernel Documentation/mm/hwpoison.rst
    /// - kernel Documentation/admin-guide/RAS/main.rst: EDAC and its counters
    pub(crate) RULE = {
        id: "memory-errors", since: "0.1.0", class: Hardware,
        trigger: trigger, story: story,
        cause: "The hardware reported memory errors in these pages, or they were retired before it \
                did.",
        verify: "grep HardwareCorrupted /proc/meminfo: it stays 0 after the reboot",
    }
}

/// One page is an error of the hardware.
const CORRUPTED_MIN: Bytes = Bytes::from_kib(1);
/// As many in a day make mcelog retire the page (memory-ce-threshold in mcelog.conf).
const CORRECTED_MANY: u64 = 10;
/// The kernel's own count is no estimate; a test that injects errors is all that it cannot exclude.
const CONFIDENCE: f64 = 0.96;

fn trigger() -> Trigger {
    Trigger::on_host(
        LEVEL,
        gauge(MEM_HW_CORRUPTED).at_least("RAM out of use after errors", CORRUPTED_MIN),
    )
    .or_noticed(NoticeKind::Module)
}

/// The finding where only messages of the kernel show the errors.
fn noticed(all: &[&KillNotice]) -> Finding {
    let sum = |count: fn(ModuleErrors) -> u64| {
        let counts = all.iter().map(|notice| count(notice.errors));
        counts.fold(0, u64::saturating_add)
    };
    let corrected = sum(|errors| errors.corrected);
    let others = sum(|errors| errors.uncorrected);
    let of = all.iter().rev().find(|notice| !notice.target.is_empty());
    let module = of.map_or_else(|| "memory".to_owned(), |notice| notice.target.clone());
    let what = match (others, corrected) {
        (0, corrected) => format!("{} corrected errors", Count::new(corrected)),
        (others, 0) => format!("{} errors that were not corrected", Count::new(others)),
        (others, corrected) => format!(
            "{} errors that were not corrected and {} corrected ones",
            Count::new(others),
            Count::new(corrected)
        ),
    };
    let fails = others > 0 || corrected >= CORRECTED_MANY;
    let severity = if fails { Severity::Warning } else { Severity::Info };
    let end = if fails { ": a memory module fails" } else { "" };
    RULE.found(severity, format!("The kernel reports {what} of {module}{end}."))
        .and(|finding| notices::shown(finding, all))
        .not("unaccounted-memory", "a defective module does not take memory away")
        .fix(find_the_module())
        .fix(replace_it())
        .sure(notices::sure(
            "HardwareCorrupted in /proc/meminfo would show whether pages were taken out of use",
        ))
}

fn find_the_module() -> Fix {
    Fix::say(
        "Find the module: the log has the address of each error, and EDAC or the management \
         controller has the slot.",
    )
    .inspect(
        "journalctl -k -g 'memory failure|edac|mce:|hardware error' --no-pager\n\
         grep -H . /sys/devices/system/edac/mc/mc*/*_count",
    )
}

fn replace_it() -> Fix {
    Fix::say(
        "Replace the module. Until then move what matters to another host: the next error may hit \
         the kernel itself.",
    )
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let stretch = &incident.stretch;
    let messages: Vec<_> = notices::of_kind(cx, NoticeKind::Module).collect();
    let retired = cx.timeline.last(MEM_HW_CORRUPTED).unwrap_or_default();
    if retired < CORRUPTED_MIN && !messages.is_empty() {
        return Ok(noticed(&messages).into());
    }
    let track = cx.gauge(MEM_HW_CORRUPTED)?;
    let Some((most, index)) = track.max_in(stretch) else {
        return clear!("RAM out of use was not measured");
    };
    // It only rises; what is not 0 at the first sample happened before.
    let before = track.first().unwrap_or_default();
    let new = most.saturating_sub(before);
    let since = if new > Bytes::ZERO {
        format!(", {new} of it while this was recorded")
    } else {
        String::new()
    };
    let confidence = Confidence {
        value: CONFIDENCE,
        why: "rests on the kernel's own count of pages that it took out of use".to_owned(),
    };
    Ok(RULE
        .found(
            Severity::Warning,
            format!(
                "The kernel took {most} of RAM out of use after memory errors{since}: a memory \
                 module fails."
            ),
        )
        .graph("RAM out of use", &track)
        .shows_from(
            MEM_HW_CORRUPTED,
            most,
            CORRUPTED_MIN,
            cx.time(index),
            format!("HardwareCorrupted is {most}"),
        )
        .not("unaccounted-memory", "the kernel counts these pages in a line of their own")
        .fix(find_the_module())
        .fix(replace_it())
        .sure(confidence)
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, clear, found, not_evaluated, times};
    use timeline::signals::{MEM_TOTAL, MEM_UNACCOUNTED};

    const KIB: fn(u64) -> Bytes = Bytes::from_kib;

    #[test]
    fn one_page_is_a_warning() {
        let finding = found(RULE, &Case::once().gauge(MEM_HW_CORRUPTED, KIB(4)));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("took 4 KiB"), "{}", finding.title);
        assert!(!finding.title.contains("recorded"), "{}", finding.title);
    }

    #[test]
    fn messages_of_the_kernel_are_enough() {
        let notice = |corrected, uncorrected| {
            let mut notice = KillNotice::new(timeline::Messenger::Kernel, NoticeKind::Module);
            notice.target = "DIMM_A1".to_owned();
            notice.errors = ModuleErrors { corrected, uncorrected };
            notice
        };
        for (corrected, uncorrected, severity) in
            [(1, 0, Severity::Info), (17, 0, Severity::Warning), (0, 1, Severity::Warning)]
        {
            let finding = found(RULE, &Case::once().noticing(notice(corrected, uncorrected)));
            assert_eq!(finding.severity, severity, "{corrected} {uncorrected}");
            assert!(finding.title.contains("DIMM_A1"), "{}", finding.title);
        }
    }

    #[test]
    fn an_error_within_an_hour_is_found_from_then_on() {
        let steps = [vec![Bytes::ZERO; 1800], vec![KIB(64)]].concat();
        let case = Case::over(3600).gauge_steps(MEM_HW_CORRUPTED, &steps);
        let finding = found(RULE, &case);
        assert_eq!(times(&finding), [(1799, 3600)]);
        assert!(
            finding.title.contains("64 KiB of it while this was recorded"),
            "{}",
            finding.title
        );
    }

    #[test]
    fn clear_without_errors_however_much_is_unaccounted() {
        let case = Case::over(20)
            .gauge(MEM_TOTAL, Bytes::from_gib(32))
            .gauge(MEM_UNACCOUNTED, Bytes::from_gib(4))
            .gauge(MEM_HW_CORRUPTED, Bytes::ZERO);
        clear(RULE, &case);
    }

    #[test]
    fn not_evaluated_without_the_count() {
        assert_eq!(not_evaluated(RULE, &Case::once()).names, ["mem.hw_corrupted"]);
    }
}
