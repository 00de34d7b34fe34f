//! The screen of `headroom`: whether it fits and by how much, what binds, and when the worst was, in the first lines; then
//! the terms, the cycle, what the demand would do, and what is not known.

use units::Bytes;

use super::Screen;
use super::check::host_line;
use super::page::{Page, Style, piece};
use super::when::Clock;
use crate::model::headroom::{FitAnswer, HeadroomReport, ReadCache, Terms};

/// Where the text of a labelled line begins.
const INDENT: usize = 13;

pub(super) fn draw(report: &HeadroomReport, screen: &Screen) -> String {
    let mut page = Page::new(screen);
    let clock = Clock::new(&report.source, screen);
    let (style, word) = verdict(report.answer);
    page.hanging(
        &[piece(style, word), piece(Style::Plain, "  ")],
        word.len() + 2,
        Style::Strong,
        &report.headline,
    );
    if !report.binds.is_empty() {
        labelled(&mut page, "binds", &report.binds);
    }
    worst(&mut page, report, &clock);
    for remark in &report.remarks {
        labelled(&mut page, "note", remark);
    }
    page.gap();
    host_line(&mut page, &report.host, &report.source, &clock, screen);
    if let Some(terms) = &report.terms {
        page.heading("What it was computed from, at the worst moment:");
        draw_terms(&mut page, terms);
    }
    page.gap();
    labelled(&mut page, "cycle", &report.cycle.text);
    added(&mut page, report);
    smallest_ram(&mut page, report);
    if let Some(article) = &report.article {
        let differs = if article.differs {
            ""
        } else {
            " (about the same)"
        };
        labelled(&mut page, "by hand", &format!("{}{differs}", article.text));
    }
    limits(&mut page, report);
    if !report.unknown.is_empty() {
        page.heading("Not known:");
        for unknown in &report.unknown {
            labelled(&mut page, unknown.what, &unknown.text);
        }
    }
    page.finish()
}

const fn verdict(answer: FitAnswer) -> (Style, &'static str) {
    match answer {
        FitAnswer::Fits => (Style::Fine, "FITS"),
        FitAnswer::Tight => (Style::Warning, "TIGHT"),
        FitAnswer::DoesNotFit => (Style::Critical, "DOES NOT FIT"),
        FitAnswer::Unknown => (Style::Unknown, "CANNOT TELL"),
    }
}

fn labelled(page: &mut Page, label: &str, text: &str) {
    let head = [piece(Style::Faint, format!("{label}:"))];
    page.hanging(&head, INDENT.max(label.len() + 2), Style::Plain, text);
}

/// When the worst was, and who ran then.
fn worst(page: &mut Page, report: &HeadroomReport, clock: &Clock<'_>) {
    let Some(room) = &report.room else {
        return;
    };
    let who = report
        .then
        .iter()
        .map(|one| format!("{} ({})", one.name, one.what))
        .collect::<Vec<_>>();
    let who = match who.is_empty() {
        true => "who ran is not told".to_owned(),
        false => who.join(", "),
    };
    let moment = clock.moment(room.worst_at_s, room.worst_at);
    let moment = moment.filter(|_| report.source.samples > 1);
    let text = moment.map_or_else(|| who.clone(), |at| format!("at {at}: {who}"));
    labelled(page, "worst", &text);
}

fn draw_terms(page: &mut Page, terms: &Terms) {
    let told = match terms.available_is_told {
        true => "the kernel's MemAvailable",
        false => "MemAvailable is not told: free memory and files",
    };
    term(
        page,
        "",
        Bytes::new(terms.available_bytes),
        "available",
        told,
    );
    let floor = format!(
        "{} to {}{}, left out of it already",
        Bytes::new(terms.floor_low_bytes),
        Bytes::new(terms.floor_high_bytes),
        match terms.floor_is_measured {
            true => "",
            false => " (predicted for a host of this size)",
        }
    );
    match terms.kept_bytes {
        Some(kept) => term(
            page,
            "− ",
            Bytes::new(kept),
            "kept free",
            &format!("beyond the floor of {floor}"),
        ),
        None => line(
            page,
            "−",
            "unknown",
            "kept free",
            &format!("beyond the floor of {floor}"),
        ),
    }
    let (least, most) = (terms.write_cache_lower_bytes, terms.write_cache_upper_bytes);
    match least == most {
        true => term(
            page,
            "− ",
            Bytes::new(most),
            "write cache",
            "what waited for disks for 99 % of the time, at most",
        ),
        false => {
            let (least, most) = (Bytes::new(least), Bytes::new(most));
            let text = format!("{least} to {most}: not measured, up to where writers run free");
            line(page, "−", "unknown", "write cache", &text);
        }
    }
    let cache = &terms.read_cache;
    let (size, bounds) = read_cache(cache);
    line(
        page,
        "−",
        &size,
        "read cache",
        &format!("{bounds}: {}", cache.text),
    );
    if let Some(left_out) = terms.left_out_bytes {
        let text = "of the cache, which available leaves out already";
        term(page, "+ ", Bytes::new(left_out), "left out", text);
    }
}

/// The estimate or `unknown`, and the bounds: `0 B to 340 MiB`.
fn read_cache(cache: &ReadCache) -> (String, String) {
    let lower = Bytes::new(cache.lower_bytes);
    let size = cache.likely_bytes.map(Bytes::new);
    let size = size.map_or_else(|| "unknown".to_owned(), |size| size.to_string());
    let bounds = match cache.upper_bytes.map(Bytes::new) {
        Some(upper) => format!("{lower} to {upper}"),
        None if lower > Bytes::ZERO => format!("more than {lower}"),
        None => "anything".to_owned(),
    };
    (size, bounds)
}

fn term(page: &mut Page, sign: &str, bytes: Bytes, label: &str, text: &str) {
    line(page, sign.trim(), &bytes.to_string(), label, text);
}

fn line(page: &mut Page, sign: &str, size: &str, label: &str, text: &str) {
    let head = [
        piece(Style::Faint, format!("  {sign:1} ")),
        piece(Style::Plain, format!("{label:12}")),
        piece(Style::Strong, format!("{size:>10}  ")),
    ];
    page.hanging(&head, 28, Style::Faint, text);
}

fn added(page: &mut Page, report: &HeadroomReport) {
    let Some(added) = &report.added else {
        return;
    };
    let left = added.left_bytes.map(|left| {
        let size = Bytes::new(left.unsigned_abs());
        match left < 0 {
            true => format!("At the worst moment {size} would be lacking. "),
            false => format!("At the worst moment {size} would be left. "),
        }
    });
    labelled(
        page,
        "added",
        &format!("{}{}", left.unwrap_or_default(), added.text.join(" ")),
    );
}

fn smallest_ram(page: &mut Page, report: &HeadroomReport) {
    let with = if report.asked.add_bytes.is_some() {
        ", with what is added"
    } else {
        ""
    };
    let text = match (report.smallest_ram_bytes, report.smallest_ram_bytes_safe) {
        (Some(likely), Some(safe)) if likely != safe => format!(
            "{} would be enough for the worst moment{with}; {} if all cache that may be needed is",
            Bytes::new(likely),
            Bytes::new(safe)
        ),
        (Some(needed), _) => format!(
            "{} would be enough for the worst moment{with}",
            Bytes::new(needed)
        ),
        (None, Some(safe)) => format!(
            "{} are surely enough for the worst moment{with}",
            Bytes::new(safe)
        ),
        (None, None) if !report.short.is_empty() => {
            "more than there is; how much more, a recording after adding some tells".to_owned()
        }
        (None, None) => return,
    };
    labelled(page, "RAM", &text);
}

fn limits(page: &mut Page, report: &HeadroomReport) {
    let not_binding = |text: &str| !report.binds.contains(text);
    let others: Vec<_> = report
        .limits
        .iter()
        .filter(|limit| not_binding(&limit.text))
        .collect();
    if others.is_empty() {
        return;
    }
    page.heading("Other limits:");
    for limit in others {
        labelled(page, limit.kind, &limit.text);
    }
}
