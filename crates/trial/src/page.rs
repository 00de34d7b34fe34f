//! The answer as a page: complete without a script.

use report::html::{Html, Tag, tag, unscripted};

use crate::analysis::TrialMetric;
use crate::model::TrialReport;
use crate::picture;
use crate::words::{self, Table};

/// Style that only these pages need, added to the report's.
const STYLE: &str = include_str!("../assets/trial.css");

/// Returns the page of a trial as one file.
pub fn trial_page(report: &TrialReport) -> String {
    let title = format!("{} · memtide trial", report.plan.command);
    unscripted(&title, STYLE, |html| {
        html.within(Tag::of("header", "host-line"), |html| {
            html.tagged(Tag::of("span", "brand"), "memtide trial");
            html.tagged(Tag::of("span", "host"), &report.plan.command.to_string());
            html.tagged(Tag::of("span", "meta"), &report.plan.host.name);
        });
        html.within(Tag::of("main", "trial"), |html| {
            html.tagged(tag("h1"), &words::headline(report));
            html.tagged(Tag::of("p", "run"), &words::what_was_run(report));
            picture::trade_off(html, report);
            let shown: Vec<TrialMetric> =
                TrialMetric::ALL.into_iter().filter(|metric| words::is_shown(*metric)).collect();
            table(html, &words::table(report, &shown));
            html.within(Tag::of("ul", "remarks"), |html| {
                for remark in words::remarks(report) {
                    html.tagged(tag("li"), &remark);
                }
            });
            html.tagged(tag("h2"), "Memory over time");
            picture::courses(html, report);
            let others: Vec<TrialMetric> =
                TrialMetric::ALL.into_iter().filter(|metric| !words::is_shown(*metric)).collect();
            html.tagged(tag("h2"), "Other figures");
            table(html, &words::table(report, &others));
            html.tagged(tag("h2"), "Runs");
            runs(html, report);
        });
    })
}

fn table(html: &mut Html, table: &Table) {
    html.within(Tag::of("div", "scrolled"), |html| {
        html.within(Tag::of("table", "variants"), |html| {
            html.within(tag("thead"), |html| {
                html.within(tag("tr"), |html| {
                    html.tagged(tag("th"), "variant");
                    for heading in &table.columns {
                        html.tagged(tag("th"), heading);
                    }
                    html.tagged(tag("th"), "");
                });
            });
            html.within(tag("tbody"), |html| {
                for row in &table.rows {
                    html.within(tag("tr"), |html| {
                        html.tagged(tag("th"), &row.name);
                        for cell in &row.cells {
                            let (class, word) = match cell.verdict {
                                Some(verdict) => (words::class(verdict), verdict.word()),
                                None => ("", ""),
                            };
                            html.tagged(Tag::of("td", class), &format!("{} {word}", cell.text));
                        }
                        html.tagged(Tag::of("td", "remark"), &row.remark);
                    });
                }
            });
        });
    });
}

fn runs(html: &mut Html, report: &TrialReport) {
    html.within(Tag::of("div", "scrolled"), |html| {
        html.within(Tag::of("table", "variants"), |html| {
            html.raw("<thead><tr><th>block</th><th>variant</th><th>memory</th><th>peak</th><th>CPU time</th><th>time</th><th>others' CPUs</th><th></th></tr></thead>");
            html.within(tag("tbody"), |html| {
                for run in &report.runs {
                    html.within(tag("tr"), |html| {
                        for cell in words::run_cells(report, run) {
                            html.tagged(tag("td"), &cell);
                        }
                    });
                }
            });
        });
    });
}
