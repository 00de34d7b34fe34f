//! Findings: each root with its evidence, cause and fixes, and its consequences inside its card.

use std::borrow::Cow;

use units::Quantity as _;

use super::block::{command, section};
use super::escape::{Html, Tag, tag, unbroken};
use super::figures::of_evidence;
use super::{Scene, icon, spark};
use crate::model::{Evidence, Finding, Fix};
use crate::phrases::incidents::named_subject;
use crate::phrases::{capital, occurrences, proven_on};

/// A smaller share of the range would print as nothing.
const SHARE_SEEN: f64 = 0.0005;

pub(super) fn draw_all(html: &mut Html, scene: &Scene<'_>) {
    let report = scene.report;
    if report.findings.is_empty() && report.earlier.is_empty() {
        return;
    }
    section(html, ("findings", "findings-heading"), "Findings", |html| {
        for (index, root) in report.roots() {
            draw(html, scene, index, root);
        }
        earlier(html, scene);
    });
}

/// Draws a root as a card.
pub(super) fn draw(html: &mut Html, scene: &Scene<'_>, index: usize, finding: &Finding) {
    let article = Tag::standing("article", "finding", icon::class_of_severity(finding.severity));
    html.raw("\n").within(numbered(article, scene, index), |html| {
        icon::of_severity(html, finding.severity);
        // The page already shows the leading finding's title above.
        let is_above = finding.is_headline;
        let title = if is_above { Cow::Owned(named(finding)) } else { finding.whole_title() };
        html.tagged(Tag::of("h3", "title"), &unbroken(&title));
        inside(html, scene, (index, finding), is_above);
        for (index, consequence) in scene.report.consequences(index) {
            folded(html, scene, index, consequence, "leads to");
        }
    });
}

/// Returns a finding's rule and what it is about: `oom-cgroup · /shop`.
fn named(finding: &Finding) -> String {
    match named_subject(finding) {
        Some(subject) => format!("{} · {subject}", finding.id),
        None => finding.id.clone(),
    }
}

/// Draws a finding that unfolds, with its relation to the others: a consequence goes when its root does.
pub(super) fn folded(
    html: &mut Html,
    scene: &Scene<'_>,
    index: usize,
    finding: &Finding,
    word: &'static str,
) {
    let details =
        Tag::standing("details", "consequence", icon::class_of_severity(finding.severity));
    html.raw("\n").within(numbered(details, scene, index), |html| {
        html.within(tag("summary"), |html| {
            icon::of_severity(html, finding.severity);
            html.tagged(Tag::of("span", "leads"), word).raw(" ");
            let title = Tag::of("span", "title").with("role", "heading");
            html.tagged(title.with("aria-level", "4"), &unbroken(&finding.whole_title()));
        });
        inside(html, scene, (index, finding), false);
    });
}

fn numbered(tag: Tag, scene: &Scene<'_>, index: usize) -> Tag {
    scene.sided(tag.with("id", &scene.id("finding", index))).showing("data-finding", index)
}

/// Draws a finding's contents. `is_named`: the heading is already the rule's id.
fn inside(html: &mut Html, scene: &Scene<'_>, (index, finding): (usize, &Finding), is_named: bool) {
    meta(html, scene, (index, finding), is_named);
    html.within(Tag::of("div", "columns"), |html| {
        html.within(Tag::of("div", "left"), |html| {
            evidence(html, scene, finding);
            affected(html, finding);
            ruled_out(html, finding);
        });
        html.within(Tag::of("div", "right"), |html| advice(html, finding));
    });
}

fn meta(html: &mut Html, scene: &Scene<'_>, (index, finding): (usize, &Finding), is_named: bool) {
    html.within(Tag::of("p", "meta"), |html| {
        html.tagged(Tag::of("span", "chip severity"), finding.severity.word()).raw(" ");
        if !is_named {
            html.tagged(Tag::of("code", "id"), &finding.id).raw(" ");
        }
        if let Some(when) = when(scene, finding) {
            html.tagged(Tag::of("span", "when"), &when).raw(" ");
        }
        // A kill takes no time.
        if let Some(share) = finding.share.filter(|share| share.as_f64() >= SHARE_SEEN) {
            let share = format!("{} of the range", share);
            html.tagged(Tag::of("span", "share"), &share).raw(" ");
        }
        html.tagged(Tag::of("span", "confidence"), finding.confidence_word.word());
        if scene.has_charts() {
            let button = Tag::of("button", "show js-only").with("type", "button");
            html.tagged(button.showing("data-finding", index), "Show on charts");
        }
    });
}

/// Returns when a finding occurred and how long it lasted in all: `0:11–0:34 · 23 s`.
pub(super) fn when(scene: &Scene<'_>, finding: &Finding) -> Option<String> {
    let when = occurrences::when(&scene.clock, finding)?;
    Some(match occurrences::duration(finding) {
        None => when,
        Some(lasts) if finding.stretches.len() > 1 => format!("{when} · {lasts} in all"),
        Some(lasts) => format!("{when} · {lasts}"),
    })
}

fn evidence(html: &mut Html, scene: &Scene<'_>, finding: &Finding) {
    if finding.evidence.is_empty() {
        return;
    }
    html.within(Tag::of("table", "evidence"), |html| {
        html.raw("<caption>Evidence</caption>");
        // Evidence from a kernel report is sentences, so it needs no columns.
        if finding.evidence.iter().any(|line| line.signal.is_some()) {
            html.raw("<thead><tr><th scope=\"col\">signal</th><th scope=\"col\">value</th>");
            html.raw("<th scope=\"col\">threshold</th><th scope=\"col\">over the range</th></tr></thead>");
        }
        html.within(tag("tbody"), |html| {
            for line in &finding.evidence {
                html.within(tag("tr"), |html| row(html, scene, finding, line));
            }
        });
    });
}

fn row(html: &mut Html, scene: &Scene<'_>, finding: &Finding, line: &Evidence) {
    let at = line.at_s.and_then(|at_s| scene.clock.moment(at_s, line.at));
    let sentence = match at {
        Some(at) => format!("{} ({at})", line.text),
        None => line.text.clone(),
    };
    let Some(signal) = &line.signal else {
        let whole = tag("th").with("scope", "row").with("colspan", "4");
        html.within(whole, |html| {
            html.tagged(Tag::of("span", "says"), &sentence);
        });
        return;
    };
    html.within(tag("th").with("scope", "row"), |html| {
        html.tagged(Tag::of("span", "says"), &sentence).raw(" ");
        html.tagged(Tag::of("code", "signal"), signal);
    });
    html.tagged(Tag::of("td", "value"), line.value_text.as_deref().unwrap_or("–"));
    let threshold = line.threshold_shown().unwrap_or_default();
    html.tagged(Tag::of("td", "threshold"), &threshold);
    let shown = scene.picture.proof(finding, signal);
    let graph = shown.map(|at| of_evidence(scene, finding, line, at));
    spark::cell(html, graph.as_ref());
}

fn affected(html: &mut Html, finding: &Finding) {
    if finding.affected.is_empty() {
        return;
    }
    html.tagged(tag("h4"), "Affected");
    html.within(Tag::of("dl", "affected"), |html| {
        for one in &finding.affected {
            let name = match one.kind {
                "process" => one.name.clone(),
                kind => format!("{kind} {}", one.name),
            };
            html.tagged(tag("dt"), &name).tagged(tag("dd"), &one.what);
        }
    });
}

fn ruled_out(html: &mut Html, finding: &Finding) {
    if finding.ruled_out.is_empty() {
        return;
    }
    html.tagged(tag("h4"), "Ruled out");
    html.within(Tag::of("ul", "ruled-out"), |html| {
        for other in &finding.ruled_out {
            html.within(tag("li"), |html| {
                html.tagged(tag("code"), other.id).raw(": ").text(&other.because);
            });
        }
    });
}

fn advice(html: &mut Html, finding: &Finding) {
    paragraph(html, "Cause", &finding.cause);
    if !finding.fix.is_empty() {
        html.tagged(tag("h4"), "Fix");
        html.within(Tag::of("ol", "fix"), |html| {
            for fix in &finding.fix {
                html.within(tag("li"), |html| self::fix(html, fix));
            }
        });
    }
    paragraph(html, "Verify", &finding.verify);
    if !finding.confidence_why.is_empty() {
        html.tagged(Tag::of("p", "confidence-why"), &finding.confidence_why);
    }
    references(html, finding);
}

fn paragraph(html: &mut Html, heading: &str, text: &str) {
    if !text.is_empty() {
        html.tagged(tag("h4"), heading).tagged(tag("p"), text);
    }
}

fn fix(html: &mut Html, fix: &Fix) {
    if !fix.what.is_empty() {
        html.tagged(tag("p"), &fix.what);
    }
    command(html, if fix.is_read_only { "look" } else { "try" }, &fix.now);
    command(html, "keep", &fix.persistent);
    command(html, "undo", &fix.undo);
    if let Some(proof) = proven_on(&fix.proven_on) {
        html.tagged(Tag::of("p", "confidence-why"), &format!("{}.", capital(&proof)));
    }
}

fn references(html: &mut Html, finding: &Finding) {
    if !finding.aliases.is_empty() {
        let aliases = format!("Also called {}.", finding.aliases.join(", "));
        html.tagged(Tag::of("p", "aliases"), &aliases);
    }
    if finding.references.is_empty() {
        return;
    }
    html.within(Tag::of("ul", "references"), |html| {
        for reference in &finding.references {
            html.tagged(tag("li"), reference);
        }
    });
}

/// Draws findings of a recording that are over.
fn earlier(html: &mut Html, scene: &Scene<'_>) {
    if scene.report.earlier.is_empty() {
        return;
    }
    html.tagged(tag("h3"), "Earlier, and over");
    html.within(Tag::of("ul", "earlier"), |html| {
        for finding in &scene.report.earlier {
            html.within(tag("li"), |html| {
                if let Some(when) = when(scene, finding) {
                    html.tagged(Tag::of("span", "when"), &when).raw(" ");
                }
                html.tagged(Tag::of("code", "id"), &finding.id)
                    .raw(" ")
                    .text(&finding.whole_title());
            });
        }
    });
}
