//! The screens of `lab run` and `lab score`: what the article has and what was measured, and what `check` found.

use report::Screen;
use report::model::Level;
use report::text::{Style, TextPage, piece, width};

use crate::claim::times;
use crate::model::{
    ClaimState, CureReport, LabArm, LabClaim, LabReport, ScoreCase, ScoreCell, ScoreReport,
};
use crate::words;

/// Cells of what is compared, of the article's figure and of that which was measured.
const CLAIM_CELLS: usize = 46;
const ARTICLE_CELLS: usize = 16;
const HERE_CELLS: usize = 11;
/// Column of text after an arm's name.
const ARM_CELLS: usize = 24;
/// Cells of the effect of a fix.
const CURE_CELLS: usize = 12;

/// Returns the screen of `lab run`.
pub fn run_screen(report: &LabReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    let mut head = vec![report.scenario.clone()];
    if !report.article.is_empty() {
        head.push(report.article.clone());
    }
    let ram = report.ram_bytes;
    head.push(format!("VM {ram}, Linux {}, {}", report.kernel, report.accelerator));
    page.hanging(&[], 0, Style::Faint, &head.join(" · "));
    page.hanging(&[], 0, Style::Strong, &report.shows);
    if !report.claims.is_empty() {
        page.gap();
        page.line(&[
            piece(Style::Faint, " ".repeat(CLAIM_CELLS)),
            piece(Style::Faint, right("article", ARTICLE_CELLS)),
            piece(Style::Faint, right("here", HERE_CELLS)),
            piece(Style::Faint, "  holds"),
        ]);
        for one in &report.claims {
            claim(&mut page, one);
        }
    }
    page.heading("What check found");
    for one in &report.arms {
        arm(&mut page, one);
    }
    page.gap();
    let is_open = |claim: &LabClaim| claim.state == ClaimState::NotMeasured;
    let (style, text) = match (report.holds, report.claims.iter().any(is_open)) {
        (true, false) if report.claims.is_empty() => (Style::Fine, "Check found what it should."),
        (true, false) => (Style::Fine, "Every claim holds, and check found what it should."),
        (true, true) => (
            Style::Fine,
            "What can be judged holds; the other claims need arms that were not played.",
        ),
        (false, _) => {
            (Style::Critical, "It does not hold: see NO, missed, wrong and cannot tell above.")
        }
    };
    page.hanging(&[], 0, style, text);
    page.finish()
}

/// A text of this many cells, flush right.
fn right(text: &str, cells: usize) -> String {
    format!("{}{text}", " ".repeat(cells.saturating_sub(width(text))))
}

/// A text of this many cells, flush left, followed by a blank at least.
fn left(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat(cells.saturating_sub(width(text)).max(1)))
}

fn claim(page: &mut TextPage, claim: &LabClaim) {
    let style = match claim.state {
        ClaimState::Holds => Style::Fine,
        ClaimState::Fails => Style::Critical,
        ClaimState::NotMeasured | ClaimState::NoBounds => Style::Faint,
    };
    let holds = words::holds(claim.state);
    let what = if width(&claim.what) >= CLAIM_CELLS {
        page.line(&[piece(Style::Plain, claim.what.clone())]);
        " ".repeat(CLAIM_CELLS)
    } else {
        left(&claim.what, CLAIM_CELLS)
    };
    page.line(&[
        piece(Style::Plain, what),
        piece(Style::Faint, right(&claim.article, ARTICLE_CELLS)),
        piece(Style::Strong, right(&claim.ours, HERE_CELLS)),
        piece(Style::Plain, "  "),
        piece(style, holds),
    ]);
}

fn arm(page: &mut TextPage, arm: &LabArm) {
    let found: Vec<&str> = arm.found.iter().map(|finding| finding.id.as_str()).collect();
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    let head = [piece(Style::Strong, left(&arm.name, ARM_CELLS))];
    page.hanging(&head, ARM_CELLS, Style::from(arm.verdict), &found);
    for (ids, what) in [(&arm.missed, "missed: "), (&arm.wrong, "wrong: ")] {
        if !ids.is_empty() {
            let text = format!("{what}{}", ids.join(", "));
            page.hanging(&[], ARM_CELLS, Style::Critical, &text);
        }
    }
    if let Some(profile) = &arm.profile {
        page.hanging(&[], ARM_CELLS, Style::Plain, &format!("profile: {}", profile.headline));
    }
    if arm.verdict == Level::Unknown {
        let text = format!("cannot tell: {}", arm.headline);
        page.hanging(&[], ARM_CELLS, Style::Critical, &text);
    }
}

/// Returns the screen of `lab score`.
pub fn score_screen(report: &ScoreReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    page.hanging(&[], 0, Style::Strong, &words::score_headline(report));
    for counts in words::score_counts(report) {
        page.hanging(&[], 0, Style::Plain, &counts);
    }
    matrix(&mut page, report);
    let faulty: Vec<&ScoreCase> = report.cases.iter().filter(|case| case.is_faulty()).collect();
    if !faulty.is_empty() {
        page.heading("Not as expected");
    }
    for case in faulty {
        let head = format!("{} {}", case.scenario, case.case);
        page.line(&[piece(Style::Strong, head)]);
        for (what, which) in case.faults() {
            let text = format!("{what}{}", which.join(", "));
            page.hanging(&[], 4, Style::Critical, &text);
        }
    }
    if !report.unscored.is_empty() {
        page.heading("Not scored");
    }
    for case in &report.unscored {
        let text = format!("{}: {}", case.case, case.why);
        page.hanging(&[], 4, Style::Critical, &text);
    }
    page.finish()
}

/// Returns the screen of `lab cure`.
pub fn cure_screen(report: &CureReport, screen: &Screen) -> String {
    let mut page = TextPage::new(screen);
    page.hanging(&[], 0, Style::Faint, &report.accelerator);
    page.hanging(&[], 0, Style::Strong, &words::cure_headline(report));
    for row in &report.rows {
        page.gap();
        let (style, effect) = words::cure_effect(row.effect);
        let place = format!("{} · {} {} · Linux {}", row.rule, row.scenario, row.arm, row.kernel);
        page.line(&[piece(style, left(effect, CURE_CELLS)), piece(Style::Strong, place)]);
        let work = row.work_ratio.map(|ratio| format!("work {}", times(ratio.get())));
        let undo = match row.is_taken_back {
            Some(false) => Some("the state before did not come back".to_owned()),
            Some(true) | None => None,
        };
        let because = Some(row.because.clone()).filter(|text| !text.is_empty());
        let from_start = row.from_start.map(|effect| {
            let (_, effect) = words::cure_effect(effect);
            match row.from_start_because.as_str() {
                "" => format!("from the start: {effect}"),
                why => format!("from the start: {effect} ({why})"),
            }
        });
        let notes: Vec<String> = [because, work, from_start, undo].into_iter().flatten().collect();
        let indent = [piece(Style::Plain, " ".repeat(CURE_CELLS))];
        for (style, text) in [
            (Style::Plain, &row.finding),
            (Style::Plain, &row.advice),
            (Style::Command, &row.applied.join("; ")),
            (Style::Faint, &notes.join(" · ")),
        ] {
            if !text.is_empty() {
                page.hanging(&indent, CURE_CELLS, style, text);
            }
        }
    }
    page.finish()
}

/// Writes each rule with the scenarios in which it was expected or found.
fn matrix(page: &mut TextPage, report: &ScoreReport) {
    page.heading("Rule × scenario");
    page.hanging(&[], 0, Style::Faint, words::SCORE_CELL);
    let mut rules: Vec<&str> = report.matrix.iter().map(|cell| cell.rule.as_str()).collect();
    rules.dedup();
    for rule in rules {
        let cells: Vec<String> =
            report.matrix.iter().filter(|cell| cell.rule == rule).map(in_scenario).collect();
        let head = [piece(Style::Strong, left(rule, ARM_CELLS))];
        page.hanging(&head, ARM_CELLS, Style::Plain, &cells.join(", "));
    }
}

/// `cgroup-oom 3/3 +1`.
fn in_scenario(cell: &ScoreCell) -> String {
    format!("{} {}", cell.scenario, words::score_cell(cell))
}
