//! What people see. A changed snapshot is looked at before it is accepted.

use report::model::{RuleEntry, Severity, SignalEntry};
use report::text::{self, Detail};
use report::{ColourMode, Report, Screen};

use crate::fixtures;

fn check(report: &Report) -> String {
    text::check(report, &Screen::default())
}

#[test]
fn a_healthy_host() {
    insta::assert_snapshot!(check(&fixtures::healthy()));
}

#[test]
fn a_critical_finding_with_its_consequences() {
    insta::assert_snapshot!(check(&fixtures::thrashing()));
}

#[test]
fn everything_on_request() {
    let mut screen = Screen::default();
    screen.detail = Detail::All;
    insta::assert_snapshot!(text::check(&fixtures::thrashing(), &screen));
}

#[test]
fn two_nodes() {
    insta::assert_snapshot!(check(&fixtures::node_reclaim()));
}

#[test]
fn a_single_look() {
    insta::assert_snapshot!(check(&fixtures::single_look()));
}

#[test]
fn hostile_names() {
    insta::assert_snapshot!(check(&fixtures::hostile()));
}

#[test]
fn a_narrow_terminal() {
    insta::assert_snapshot!(text::check(&fixtures::thrashing(), &Screen::of_width(40)));
}

#[test]
fn a_wide_terminal() {
    insta::assert_snapshot!(text::check(&fixtures::thrashing(), &Screen::of_width(120)));
}

#[test]
fn in_colour() {
    let mut screen = Screen::default();
    screen.colour = ColourMode::Ansi;
    let text = text::check(&fixtures::thrashing(), &screen);
    insta::assert_snapshot!(text.replace('\u{1b}', "ESC"));
}

#[test]
fn where_memory_is() {
    let report = fixtures::whereabouts();
    insta::assert_snapshot!(text::where_tree(&report, &Screen::default()));
    insta::assert_snapshot!(text::where_tree(&report, &Screen::of_width(40)));
}

#[test]
fn local_clocks_of_a_live_host() {
    let mut report = fixtures::healthy();
    let mut finding = fixtures::thrashing().findings.remove(0);
    finding.from = "2026-11-21T04:42:10Z".parse().ok();
    finding.to = "2026-11-21T04:42:18Z".parse().ok();
    report.findings.push(finding);
    let mut screen = Screen::default();
    screen.zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(9));
    let text = text::check(&report, &screen);
    assert!(text.contains("until 13:42:18 +09:00"), "{text}");
    assert!(text.contains("13:42:10–13:42:18"), "{text}");
}

#[test]
fn one_signal() {
    let signal = SignalEntry::by_name("vm.pswpin").unwrap();
    insta::assert_snapshot!(text::signal(&signal, &Screen::default()));
}

#[test]
fn one_rule() {
    let mut rule = RuleEntry::by_id("swap-cold-harmless").unwrap();
    rule.docs = "Swap is used, but nobody asks for what lies in it: no shortage.\n\n## What it means\nPages that nobody \
                 had touched for long were written to swap at some time.\n## Not this\n- `swap-thrash`: pages come back \
                 as fast as they leave, and go out again before the task that asked has run.\n"
        .into();
    rule.since = "0.1.0";
    insta::assert_snapshot!(text::rule(&rule, &Screen::default()));
}

#[test]
fn every_rule_and_every_signal_is_listed() {
    let (rules, signals) = (RuleEntry::all(), SignalEntry::all());
    let screen = Screen::default();
    let (listed_rules, listed_signals) =
        (text::rules(&rules, &screen), text::signals(&signals, &screen));
    for rule in rules {
        assert!(listed_rules.contains(rule.id), "{}", rule.id);
    }
    for signal in signals {
        assert!(listed_signals.contains(signal.name), "{}", signal.name);
    }
}

#[test]
fn what_came_again_is_told_as_often_as_it_came() {
    let told = |nights: &[(f64, f64)]| {
        let mut finding = fixtures::finding("dirty-throttle", Severity::Warning, "Writers wait.");
        (finding.from_s, finding.to_s) = (Some(nights[0].0), Some(nights[0].1));
        finding.stretches = nights.iter().map(|(from, to)| fixtures::stretch(*from, *to)).collect();
        let mut report = fixtures::healthy();
        report.findings = vec![finding];
        text::check(&report, &Screen::default())
    };
    let once = told(&[(60.0, 660.0)]);
    assert!(once.contains("1:00–11:00"), "{once}");
    let alike = told(&[(60.0, 660.0), (1260.0, 1860.0)]);
    assert!(alike.contains("2 times, 10 min each, first 1:00, last 21:00"), "{alike}");
    let unlike = told(&[(60.0, 660.0), (1260.0, 1380.0)]);
    assert!(unlike.contains("2 times, 2 min to 10 min each"), "{unlike}");
}
