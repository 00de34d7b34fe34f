//! The pages of `lab run` and `lab score`: complete without a script.

use report::html::{Html, Tag, tag, unscripted};
use report::model::Level;

use crate::figure;
use crate::model::{ClaimState, LabArm, LabClaim, LabReport, ScoreCase, ScoreCell, ScoreReport};
use crate::words;

/// Style that only these pages need, added to the report's.
const STYLE: &str = include_str!("../assets/lab.css");

/// Returns the page of a scenario as one file.
pub fn run_page(report: &LabReport) -> String {
    let title = format!("{} · memtide lab", report.scenario);
    unscripted(&title, STYLE, |html| {
        let ram = report.ram_bytes;
        let meta = [
            report.article.clone(),
            format!("VM {ram}"),
            format!("Linux {}", report.kernel),
            report.accelerator.clone(),
        ];
        host_line(html, &report.scenario, &meta);
        html.within(Tag::of("main", "lab"), |html| {
            html.tagged(tag("h1"), &report.shows);
            claims(html, &report.claims);
            arms(html, &report.arms);
            for one in &report.figures {
                figure::draw(html, one);
            }
        });
    })
}

fn host_line(html: &mut Html, name: &str, meta: &[String]) {
    html.within(Tag::of("header", "host-line"), |html| {
        html.tagged(Tag::of("span", "brand"), "memtide lab");
        html.tagged(Tag::of("span", "host"), name);
        for item in meta.iter().filter(|item| !item.is_empty()) {
            html.tagged(Tag::of("span", "meta"), item);
        }
    });
}

fn claims(html: &mut Html, claims: &[LabClaim]) {
    if claims.is_empty() {
        return;
    }
    html.within(Tag::of("table", "claims"), |html| {
        html.raw("<thead><tr><th></th><th>article</th><th>here</th><th>holds</th></tr></thead>");
        html.within(tag("tbody"), |html| {
            for claim in claims {
                let class = match claim.state {
                    ClaimState::Holds => "is-ok",
                    ClaimState::Fails => "is-critical",
                    ClaimState::NotMeasured | ClaimState::NoBounds => "is-unknown",
                };
                let holds = words::holds(claim.state);
                html.within(tag("tr"), |html| {
                    html.tagged(tag("th"), &claim.what);
                    html.tagged(tag("td"), &claim.article);
                    html.tagged(tag("td"), &claim.ours);
                    html.tagged(Tag::of("td", class), holds);
                });
            }
        });
    });
}

fn arms(html: &mut Html, arms: &[LabArm]) {
    html.within(Tag::of("div", "arms"), |html| {
        for arm in arms {
            html.within(Tag::standing("section", "arm", standing(arm.verdict)), |html| {
                html.within(tag("h2"), |html| {
                    match &arm.page {
                        Some(page) => html.tagged(tag("a").with("href", page), &arm.name),
                        None => html.text(&arm.name),
                    };
                });
                if arm.found.is_empty() {
                    html.tagged(tag("p"), &arm.headline);
                }
                html.within(tag("ul"), |html| {
                    for finding in &arm.found {
                        html.within(tag("li"), |html| {
                            html.tagged(tag("b"), &finding.id).raw(" ").text(&finding.title);
                        });
                    }
                });
                for (ids, what) in [(&arm.missed, "missed: "), (&arm.wrong, "wrong: ")] {
                    if !ids.is_empty() {
                        let text = format!("{what}{}", ids.join(", "));
                        html.tagged(Tag::of("p", "is-critical"), &text);
                    }
                }
            });
        }
    });
}

fn standing(level: Level) -> &'static str {
    match level {
        Level::Ok => "is-ok",
        Level::Warning => "is-warning",
        Level::Critical => "is-critical",
        Level::Unknown => "is-unknown",
    }
}

/// Returns the page of a score: the matrix of rules and scenarios.
pub fn score_page(report: &ScoreReport) -> String {
    unscripted("score · memtide lab", STYLE, |html| {
        let meta = [format!("{} cases", report.cases.len())];
        host_line(html, "score", &meta);
        html.within(Tag::of("main", "lab"), |html| {
            html.tagged(tag("h1"), &words::score_headline(report));
            for counts in words::score_counts(report) {
                html.tagged(tag("p"), &counts);
            }
            html.tagged(Tag::of("p", "help"), words::SCORE_CELL);
            html.within(Tag::of("div", "wide"), |html| matrix(html, &report.matrix));
            faults(html, report);
        });
    })
}

/// Writes the cases that are not as expected, and those that could not be scored.
fn faults(html: &mut Html, report: &ScoreReport) {
    let faulty: Vec<&ScoreCase> = report.cases.iter().filter(|case| case.is_faulty()).collect();
    if !faulty.is_empty() || !report.unscored.is_empty() {
        html.tagged(tag("h2"), "Not as expected");
    }
    html.within(tag("ul"), |html| {
        for case in faulty {
            let faults = case.faults().map(|(what, ids)| format!("{what}{}", ids.join(", ")));
            let faults = faults.collect::<Vec<_>>().join("; ");
            let text = format!("{} {}: {faults}", case.scenario, case.case);
            html.tagged(tag("li"), &text);
        }
        for case in &report.unscored {
            let text = format!("{}: not scored: {}", case.case, case.why);
            html.tagged(tag("li"), &text);
        }
    });
}

fn matrix(html: &mut Html, cells: &[ScoreCell]) {
    let mut scenarios: Vec<&str> = cells.iter().map(|cell| cell.scenario.as_str()).collect();
    scenarios.sort_unstable();
    scenarios.dedup();
    let mut rules: Vec<&str> = cells.iter().map(|cell| cell.rule.as_str()).collect();
    rules.dedup();
    html.within(Tag::of("table", "matrix"), |html| {
        html.raw("<thead><tr><th></th>");
        for scenario in &scenarios {
            html.within(tag("th"), |html| {
                html.tagged(tag("span"), scenario);
            });
        }
        html.raw("</tr></thead><tbody>");
        for rule in rules {
            html.within(tag("tr"), |html| {
                html.tagged(tag("th"), rule);
                for scenario in &scenarios {
                    let is_it = |cell: &&ScoreCell| cell.rule == rule && cell.scenario == *scenario;
                    cell(html, cells.iter().find(is_it));
                }
            });
        }
        html.raw("</tbody>");
    });
}

fn cell(html: &mut Html, cell: Option<&ScoreCell>) {
    let Some(cell) = cell else {
        html.raw("<td></td>");
        return;
    };
    let class = match (cell.missed + cell.wrong, cell.found) {
        (0, 0) => "is-unknown",
        (0, _) => "is-ok",
        _ => "is-critical",
    };
    html.tagged(Tag::of("td", class), &words::score_cell(cell));
}
