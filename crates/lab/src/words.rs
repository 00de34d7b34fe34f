//! Words of the lab's answers.

use report::text::Style;

use crate::model::{ClaimState, CureEffect, CureReport, ScoreCell, ScoreReport};

/// Printed where a value is unknown.
pub(crate) const ABSENT: &str = "–";

/// Whether a claim holds, in a cell of a table.
pub(crate) fn holds(state: ClaimState) -> &'static str {
    match state {
        ClaimState::Holds => "yes",
        ClaimState::Fails => "NO",
        ClaimState::NotMeasured | ClaimState::NoBounds => ABSENT,
    }
}

/// `4 of 6 first fixes cure, 1 makes it worse; 3 could not be tried.`
pub(crate) fn cure_headline(report: &CureReport) -> String {
    let rows = || report.rows.iter();
    let tried = rows().filter(|row| row.is_tried()).count();
    let cured = rows().filter(|row| row.is_cured()).count();
    let worse = match rows().filter(|row| row.is_worse()).count() {
        0 => "none makes it worse".to_owned(),
        1 => "1 makes it worse".to_owned(),
        worse => format!("{worse} make it worse"),
    };
    let open = match report.rows.len() - tried {
        0 => String::new(),
        open => format!("; {open} could not be tried"),
    };
    format!("{cured} of {tried} first fixes cure, {worse}{open}.")
}

/// What came of a fix, in a cell of the table.
pub(crate) fn cure_effect(effect: CureEffect) -> (Style, &'static str) {
    match effect {
        CureEffect::Cured => (Style::Fine, "cured"),
        CureEffect::Better => (Style::Warning, "better"),
        CureEffect::NoEffect => (Style::Critical, "NO EFFECT"),
        CureEffect::Worse => (Style::Critical, "WORSE"),
        CureEffect::IsWords => (Style::Faint, "words"),
        CureEffect::NotTried => (Style::Warning, "not tried"),
    }
}

/// `precision 0.987, recall 0.953 over 164 cases`.
pub(crate) fn score_headline(report: &ScoreReport) -> String {
    let share =
        |share: Option<f64>| share.map_or_else(|| ABSENT.to_owned(), |share| format!("{share:.3}"));
    format!(
        "precision {}, recall {} over {} cases",
        share(report.precision),
        share(report.recall),
        report.cases.len()
    )
}

/// What the shares are made of, a sentence each.
pub(crate) fn score_counts(report: &ScoreReport) -> Vec<String> {
    let mut all = vec![format!(
        "{} cases with every expected finding and no other; {} findings as expected, {} missed, {} \
         wrong",
        report.perfect, report.found, report.missed, report.wrong
    )];
    if report.unproven > 0 {
        all.push(format!(
            "{} cases in which the scenario did not turn out as intended; they count, too",
            report.unproven
        ));
    }
    if report.unlabelled > 0 {
        all.push(format!("{} cases have no labels and are not scored", report.unlabelled));
    }
    all
}

/// How to read a cell of the matrix.
pub(crate) const SCORE_CELL: &str =
    "found of expected; !n wrong; +n allowed; ~n notes that nobody expected, which do not count";

/// `3/3 !1 +2 ~1`: found of expected, wrong, allowed, notes.
pub(crate) fn score_cell(cell: &ScoreCell) -> String {
    let expected = cell.found + cell.missed;
    let mut parts = Vec::new();
    if expected > 0 {
        parts.push(format!("{}/{expected}", cell.found));
    }
    if cell.wrong > 0 {
        parts.push(format!("!{}", cell.wrong));
    }
    if cell.allowed > 0 {
        parts.push(format!("+{}", cell.allowed));
    }
    if cell.noted > 0 {
        parts.push(format!("~{}", cell.noted));
    }
    parts.join(" ")
}
