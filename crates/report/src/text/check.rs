//! The screen of `check`: host, verdict, one bar of memory, findings, notes, and how many rules found nothing.

use super::ansi::Style;
use super::page::{NARROW, TextPage, piece};
use super::wrap::{cut, width, wrap_items};
use super::{Detail, Screen, finding, group, input, memory, not_evaluated};
use crate::clock::ReportClock;
use crate::model::{
    Bursts, Changed, Finding, Host, Report, Severity, Source, SourceKind, Step, Sureness,
};
use crate::phrases::{
    incidents, occurrences, source as source_phrases, verdict as verdict_phrases,
};

/// Column of the verdict's sentences, after the longest word for a verdict.
const VERDICT_INDENT: usize = 10;
/// Column of the sentence after a rule's id, after the longest id.
const ID_INDENT: usize = 30;
/// At most 5 problems of a source are named; the rest is counted.
const PROBLEMS_MAX: usize = 5;
/// At most 5 changed settings are shown, the latest.
const CHANGES_MAX: usize = 5;

pub(super) fn draw(report: &Report, screen: &Screen) -> String {
    page(report, screen).finish()
}

fn page(report: &Report, screen: &Screen) -> TextPage {
    let mut page = TextPage::new(screen);
    let clock = ReportClock::new(&report.source, screen);
    host_line(&mut page, &report.host, &report.source, &clock, screen);
    input::brief(&mut page, &report.source);
    page.gap();
    below_host(&mut page, report, &clock, screen);
    page
}

/// Draws all of the answer but the host and the source.
pub(super) fn below_host(
    page: &mut TextPage,
    report: &Report,
    clock: &ReportClock<'_>,
    screen: &Screen,
) {
    verdict(page, report, clock);
    if let Some(group) = &report.group {
        page.gap();
        group::draw(page, group, clock);
    } else if let Some(accounting) = &report.accounting {
        page.gap();
        memory::draw(page, accounting, report, clock, screen);
    }
    incidents(page, report, clock);
    findings(page, report, clock, screen);
    bursts(page, &report.bursts, clock, screen);
    earlier(page, &report.earlier, clock, screen);
    changed(page, &report.changed, clock, screen);
    let (of_source, of_host): (Vec<_>, Vec<_>) =
        report.notes.iter().partition(|note| source_phrases::is_about_the_source(note));
    notes(page, "Looks bad, is harmless:", &of_host, screen);
    notes(page, "About this source:", &of_source, screen);
    problems(page, &report.source, screen);
    not_evaluated::draw(page, report, screen);
    if let Some(group) = &report.group {
        group::draw_host(page, group);
    }
    next(page, report);
    unknown_fields(page, &report.source, screen);
}

/// Draws the first finding or note with this id, in full.
pub(super) fn answer(report: &Report, id: &str, screen: &Screen) -> Option<String> {
    let all = report.findings.iter().chain(&report.notes);
    let index = all.into_iter().position(|finding| finding.id == id)?;
    Some(answer_page(report, index, screen).finish())
}

/// Draws a finding by its index, or a note by its index after those of the findings; nothing where there is none.
pub(super) fn answer_page(report: &Report, index: usize, screen: &Screen) -> TextPage {
    let mut page = TextPage::new(screen);
    let Some(finding) = report.findings.iter().chain(&report.notes).nth(index) else {
        return page;
    };
    let is_root = report.roots().any(|(root, _)| root == index);
    let consequences: Vec<&Finding> =
        if is_root { report.consequences(index).map(|(_, it)| it).collect() } else { Vec::new() };
    let listed =
        finding::Numbered { number: 1, finding, consequences: &consequences, is_named: false };
    finding::draw(&mut page, &listed, &ReportClock::new(&report.source, screen), screen);
    page
}

/// The host and the source: `Linux 6.1.0 · 470 MiB RAM, 512 MiB swap · capture of 39 s, 40 samples`.
pub(super) fn host_line(
    page: &mut TextPage,
    host: &Host,
    source: &Source,
    clock: &ReportClock<'_>,
    screen: &Screen,
) {
    for line in wrap_items(&source_phrases::host_items(host, source, clock), " · ", screen.width())
    {
        page.line(&[piece(Style::Faint, line)]);
    }
}

fn verdict(page: &mut TextPage, report: &Report, clock: &ReportClock<'_>) {
    let head = [piece(report.verdict.into(), verdict_phrases::word(report.verdict))];
    let headline = verdict_phrases::headline(report, clock);
    page.hanging(&head, VERDICT_INDENT, Style::Strong, &headline);
    for remark in &report.remarks {
        page.hanging(&[], VERDICT_INDENT, Style::Plain, remark);
    }
}

/// Draws a line for each incident, in order of time.
fn incidents(page: &mut TextPage, report: &Report, clock: &ReportClock<'_>) {
    /// Blanks between the columns.
    const GAP: usize = 2;
    let rows = incidents::rows(report, clock);
    if rows.is_empty() {
        return;
    }
    page.heading(&format!("Incidents ({}):", rows.len()));
    let time = rows.iter().map(|row| width(&row.when)).max().unwrap_or_default();
    let level = width(Severity::Critical.word()) + GAP;
    for row in rows {
        let head = [
            piece(Style::Plain, format!("   {:<1$}", row.when, time + GAP)),
            piece(row.finding.severity.into(), format!("{:<level$}", row.finding.severity.word())),
        ];
        page.hanging(&head, 3 + time + GAP + level, Style::Plain, &row.what);
    }
}

/// A finding with its index in the report.
type NumberedFinding<'a> = (usize, &'a Finding);

/// Splits off all but the first three findings of each rule: sixty cgroups that hit their limit are one problem.
fn without_more_of_the_same<'a>(
    roots: Vec<NumberedFinding<'a>>,
    screen: &Screen,
) -> (Vec<NumberedFinding<'a>>, Vec<NumberedFinding<'a>>) {
    const ALIKE: usize = 3;
    let mut seen: Vec<&str> = Vec::new();
    roots.into_iter().partition(|(_, root)| {
        seen.push(&root.id);
        let alike = seen.iter().filter(|id| **id == root.id).count();
        alike <= ALIKE || screen.detail == Detail::All
    })
}

/// Draws the roots, numbered, each with its consequences; those of severity info in short, unless all are requested.
fn findings(page: &mut TextPage, report: &Report, clock: &ReportClock<'_>, screen: &Screen) {
    let (in_short, in_full): (Vec<_>, Vec<_>) = report
        .roots()
        .partition(|(_, f)| f.severity == Severity::Info && screen.detail == Detail::Brief);
    let (in_full, alike) = without_more_of_the_same(in_full, screen);
    for (i, (at, root)) in in_full.into_iter().enumerate() {
        let consequences = report.consequences(at);
        let consequences: Vec<&Finding> = consequences.map(|(_, finding)| finding).collect();
        page.gap();
        finding::draw(
            page,
            &finding::Numbered {
                number: i + 1,
                finding: root,
                consequences: &consequences,
                is_named: root.is_headline,
            },
            clock,
            screen,
        );
    }
    if !alike.is_empty() {
        page.heading("More of the same (evidence and advice: --all):");
        for (_, finding) in alike {
            let when = occurrences::when(clock, finding)
                .map_or_else(String::new, |when| format!("{when}: "));
            let text = format!("{when}{}", finding.whole_title());
            entry(page, &finding.id, &text, screen);
        }
    }
    if !in_short.is_empty() {
        page.heading("Worth knowing (evidence and advice: --all):");
        for (_, finding) in in_short {
            let sure = match finding.confidence_word {
                Sureness::Confirmed => String::new(),
                less => format!(" ({})", less.word()),
            };
            let text = format!("{}{sure}", finding.whole_title());
            entry(page, &finding.id, &text, screen);
        }
    }
}

/// Draws bursts, each too short and harmless to be listed: a line for each rule.
fn bursts(page: &mut TextPage, bursts: &[Bursts], clock: &ReportClock<'_>, screen: &Screen) {
    if bursts.is_empty() {
        return;
    }
    page.heading("In brief (too short to matter one by one):");
    for one in bursts {
        entry(page, &one.id, &occurrences::bursts(clock, one), screen);
    }
}

/// Draws findings of a recording that are over: when, and the title's first sentence.
fn earlier(page: &mut TextPage, earlier: &[Finding], clock: &ReportClock<'_>, screen: &Screen) {
    if earlier.is_empty() {
        return;
    }
    page.heading("Earlier, and over:");
    for finding in earlier {
        let when = occurrences::when(clock, finding);
        let when = when.map_or_else(String::new, |when| format!("{when}: "));
        let title = finding::title_for(screen, finding);
        entry(page, &finding.id, &format!("{when}{title}"), screen);
    }
}

/// Draws changed settings, the latest ones unless all are requested: a change often causes what begins with it.
fn changed(page: &mut TextPage, changed: &[Changed], clock: &ReportClock<'_>, screen: &Screen) {
    if changed.is_empty() {
        return;
    }
    page.heading(&format!("Settings changed ({}):", changed.len()));
    let most = match screen.detail {
        Detail::Brief => CHANGES_MAX,
        Detail::All => usize::MAX,
    };
    for change in &changed[changed.len().saturating_sub(most)..] {
        page.hanging(&[], 3, Style::Plain, &clock.changed(change));
    }
}

fn notes(page: &mut TextPage, heading: &str, notes: &[&Finding], screen: &Screen) {
    if notes.is_empty() {
        return;
    }
    page.heading(heading);
    for note in notes {
        entry(page, &note.id, &note.whole_title(), screen);
    }
}

/// Draws a rule's id and a sentence, below the id if the screen is narrow.
pub(super) fn entry(page: &mut TextPage, id: &str, text: &str, screen: &Screen) {
    let head = [piece(Style::Plain, format!("   {}", cut(id, ID_INDENT - 5)))];
    if screen.width() < NARROW {
        page.line(&head);
        page.hanging(&[], 5, Style::Plain, text);
    } else {
        page.hanging(&head, ID_INDENT, Style::Plain, text);
    }
}

fn problems(page: &mut TextPage, source: &Source, screen: &Screen) {
    if !source.problems.is_empty() {
        page.heading(&format!("Problems with this source ({}):", source.problems.len()));
        let most = match screen.detail {
            Detail::Brief => PROBLEMS_MAX,
            Detail::All => usize::MAX,
        };
        for problem in source.problems.iter().take(most) {
            page.hanging(&[], 3, Style::Plain, problem);
        }
        if let Some(more) = source.problems.len().checked_sub(most).filter(|n| *n > 0) {
            let more = format!("and {more} more: memtide check --all");
            page.hanging(&[], 3, Style::Faint, &more);
        }
    }
}

/// Draws unknown kernel fields last: only developers who add support for a kernel need them.
fn unknown_fields(page: &mut TextPage, source: &Source, screen: &Screen) {
    if source.unknown_fields.is_empty() || screen.detail != Detail::All {
        return;
    }
    page.heading("Kernel fields that memtide has no name for:");
    let text = source_phrases::unknown_fields(&source.unknown_fields);
    page.hanging(&[], 3, Style::Faint, &text);
}

/// Draws the commands to run next: on the watched host, or here for a recording, which is at hand.
fn next(page: &mut TextPage, report: &Report) {
    let steps: &[Step] = &report.next;
    if steps.is_empty() {
        return;
    }
    page.heading(match report.source.kind {
        SourceKind::Recording => "Next:",
        _ => "Next, on that host:",
    });
    for step in steps {
        page.line(&[piece(Style::Command, format!("   {}", step.command))]);
        page.hanging(&[], 6, Style::Faint, &step.shows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_fits_its_column() {
        for rule in diagnose::rules::ALL {
            assert!(rule.id.len() <= ID_INDENT - 5, "{}", rule.id);
        }
    }
}
