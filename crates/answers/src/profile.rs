//! A profile of the kernel as one more evidence of `check`: it confirms a finding, proves what no counter showed, or refutes.

use profile::ProfileReport;
use report::Report;
use report::model::{Evidence, HotReason, KernelProfile, Level};

/// Adds what a profile of the same time shows to the answer of `check`.
pub fn add_profile(report: &mut Report, profile: &ProfileReport) {
    for row in &profile.hot {
        let explained = report.findings.iter_mut().find(|one| Some(&one.id) == row.rule.as_ref());
        if let Some(finding) = explained {
            finding.evidence.push(evidence(&row.label, row.share, row.stalled_tasks));
        }
    }
    let sentence = format!("Profile: {}", profile.headline);
    let calm = matches!(report.verdict, Level::Ok | Level::Unknown);
    if calm && !profile.hot.is_empty() {
        // What costs the kernel so much is trouble, whatever the counters could not say.
        report.verdict = Level::Warning;
        let before = std::mem::replace(&mut report.headline, profile.headline.clone());
        report.remarks.insert(0, format!("The counters by themselves: {before}"));
    } else {
        report.remarks.push(sentence);
    }
    let hot = profile
        .hot
        .iter()
        .map(|row| HotReason { reason: row.reason.name().to_owned(), rule: row.rule.clone() });
    report.profile = Some(KernelProfile { headline: profile.headline.clone(), hot: hot.collect() });
}

fn evidence(label: &str, share: Option<f64>, stalled_tasks: Option<f64>) -> Evidence {
    let takes = share.map(|share| format!("takes {:.0} % of the busy CPU", share * 100.0));
    let stalled = stalled_tasks
        .filter(|tasks| *tasks >= 0.05)
        .map(|tasks| format!("keeps {tasks:.1} tasks waiting"));
    let all: Vec<String> = takes.into_iter().chain(stalled).collect();
    Evidence {
        signal: None,
        value: None,
        unit: None,
        value_text: None,
        threshold: None,
        threshold_side: None,
        threshold_text: None,
        at: None,
        at_s: None,
        text: format!("Profile: {label} {}.", all.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profiled(folded: &str) -> ProfileReport {
        let profile = profile::read_profile("pasted", folded.as_bytes()).expect("folded stacks");
        ProfileReport::of(&profile)
    }

    fn calm() -> Report {
        let pasted = b"MemTotal: 16000000 kB\nMemFree: 9000000 kB\nMemAvailable: 12000000 kB\n";
        let source = import::open_bytes("pasted.txt", pasted).expect("a meminfo");
        let mut report = crate::check(&source);
        report.verdict = Level::Ok;
        report
    }

    #[test]
    fn what_burns_the_kernel_is_a_warning_though_no_counter_shows_it() {
        let mut report = calm();
        let hot = "db;entry_SYSCALL_64_after_hwframe;ksys_read;filemap_read;node_reclaim;shrink_lruvec 400\ndb;[user] 600\n";
        add_profile(&mut report, &profiled(hot));
        assert_eq!(report.verdict, Level::Warning);
        assert!(
            report.headline.starts_with("Node reclaim in db takes 40 %"),
            "{}",
            report.headline
        );
        let profile = report.profile.expect("it was added");
        assert_eq!(profile.hot[0].reason, "node-reclaim");
        assert_eq!(profile.hot[0].rule.as_deref(), Some("node-reclaim-on"));
    }

    #[test]
    fn a_calm_kernel_changes_no_verdict_and_says_that_memory_is_not_why() {
        let mut report = calm();
        let headline = report.headline.clone();
        add_profile(&mut report, &profiled("db;[user] 1000\n"));
        assert_eq!((report.verdict, &report.headline), (Level::Ok, &headline));
        let last = report.remarks.last().expect("a remark");
        assert!(last.starts_with("Profile: "), "{last}");
    }
}
