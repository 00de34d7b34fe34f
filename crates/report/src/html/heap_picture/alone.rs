//! The picture as a file of its own: an SVG without a script that any viewer shows, light or dark as the reader has it.

use units::Count;

use super::live_share::{BAR_HEIGHT, BAR_STEP, bar, bars, most};
use super::{BOUNDS, cells, legend, sample, swatch};
use crate::html::escape::{Html, Tag, tag};
use crate::model::explain::{ExplainReport, HeapCell, HeapReport};
use crate::phrases::explain as phrases;
use crate::phrases::heap_cells::{CellFill, LIVE_CLASSES};
use crate::phrases::heap_lines::{self, HeapLines};
use crate::plain::{char_width, harmless};

/// The style, without variables: viewers that are no browsers know none.
const STYLE: &str = include_str!("../../../assets/heap_picture.css");

const WIDTH: usize = 1200;
const LEFT: usize = 24;
/// Where lines begin, and right edges of the three columns of figures.
const MAP_LEFT: usize = 172;
const FIGURES: [usize; 3] = [1016, 1096, 1176];
/// Characters of text in a line of the headline.
const HEADLINE_CHARS: usize = 130;
/// At most this many lines of the headline.
const HEADLINE_LINES_MAX: usize = 5;
/// Gap between parts.
const PART_GAP: usize = 8;

/// Returns the picture as a file.
pub(crate) fn draw(report: &ExplainReport) -> String {
    let mut body = Html::default();
    let mut y = heading(&mut body, report);
    match (&report.heap, phrases::no_picture(report)) {
        (Some(heap), None) => {
            y = draw_legend(&mut body, y);
            y = rows(&mut body, heap, y);
            y = live_shares(&mut body, heap, y);
        }
        (_, why) => y = text(&mut body, "ink", y + 24, &why.unwrap_or_default()),
    }
    let height = y + 24;
    let mut html = Html::default();
    let svg = tag("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .showing("viewBox", format!("0 0 {WIDTH} {height}"))
        .showing("width", WIDTH)
        .showing("height", height)
        .with("role", "img")
        .with("aria-label", &format!("Malloc heap of {}", phrases::process(report)));
    html.within(svg, |html| {
        html.raw("<style>").raw(STYLE).raw("</style>");
        cells::patterns(html);
        html.raw("<rect class=\"paper\" width=\"100%\" height=\"100%\"></rect>");
        html.append(body);
    });
    html.finish()
}

/// Writes text at the left margin; returns its baseline.
fn text(html: &mut Html, class: &'static str, y: usize, text: &str) -> usize {
    text_at(html, class, (LEFT, y), text);
    y
}

fn text_at(html: &mut Html, class: &'static str, (x, y): (usize, usize), text: &str) {
    let place = Tag::of("text", class).showing("x", x).showing("y", y);
    html.tagged(place, text);
}

/// Draws something elsewhere.
fn moved(html: &mut Html, (x, y): (usize, usize), inside: impl FnOnce(&mut Html)) {
    let place = tag("g").showing("transform", format!("translate({x} {y})"));
    html.within(place, inside);
}

/// Draws process, verdict and headline; returns the last baseline.
fn heading(html: &mut Html, report: &ExplainReport) -> usize {
    let mut y = text(html, "title", 40, &phrases::process(report));
    let mut items = vec![report.verdict_text.clone()];
    items.extend(phrases::process_items(report));
    items.push(phrases::rss(report));
    y = text(html, "meta", y + 20, &items.join(" · "));
    y += 6;
    let lines = broken(&harmless(&report.headline.join(" ")), HEADLINE_CHARS);
    for (index, line) in lines.iter().take(HEADLINE_LINES_MAX).enumerate() {
        let is_cut = index + 1 == HEADLINE_LINES_MAX && lines.len() > HEADLINE_LINES_MAX;
        let line = format!("{line}{}", if is_cut { " …" } else { "" });
        y = text(html, "headline", y + 21, &line);
    }
    y
}

/// Breaks text at blanks into lines of at most `most` cells; a longer word is split.
fn broken(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let cells: usize = word.chars().map(char_width).sum();
        if used > 0 && used + 1 + cells > most {
            lines.push(String::new());
            used = 0;
        }
        let blank = if used > 0 { " " } else { "" };
        for c in blank.chars().chain(word.chars()) {
            if used + char_width(c) > most {
                lines.push(String::new());
                used = 0;
            }
            used += char_width(c);
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
        }
    }
    lines
}

/// Draws the legend in two lines; returns the lower edge.
fn draw_legend(html: &mut Html, y: usize) -> usize {
    let y = y + 34;
    let mut x = LEFT;
    x += 232;
    text_at(html, "label end", (x - 6, y), "live share of resident memory: none");
    for class in 0..LIVE_CLASSES {
        moved(html, (x, y - 10), |html| swatch(html, CellFill::Live(class)));
        x += 19;
    }
    text_at(html, "label", (x + 6, y), "all");
    x += 40;
    let mut line = y;
    for (fill, words) in legend() {
        let wide = 26 + words.chars().count() * 62 / 10 + 18;
        if x + wide > WIDTH - LEFT {
            x = LEFT;
            line += 20;
        }
        moved(html, (x, line - 10), |html| sample(html, fill));
        text_at(html, "label", (x + 24, line), words);
        x += wide;
    }
    line
}

/// Draws a row for each part; returns the lower edge.
fn rows(html: &mut Html, heap: &HeapReport, y: usize) -> usize {
    let lines = HeapLines::new(heap, BOUNDS);
    let mut y = y + 34;
    let scale = format!(
        "address →  a line is {}, a column {}; higher is more of it in RAM",
        lines.line_bytes(),
        lines.column_bytes
    );
    text_at(html, "label", (MAP_LEFT, y), &scale);
    for (x, words) in FIGURES.into_iter().zip(["live", "free, in RAM", "returnable"]) {
        text_at(html, "label end", (x, y), words);
    }
    y += 8;
    for part in &lines.parts {
        text_at(html, "name", (LEFT, y + 12), &heap_lines::name(part));
        moved(html, (MAP_LEFT, y), |html| cells::part(html, &lines, part));
        for (line, (first, _)) in lines.lines_of(part).enumerate().skip(1) {
            let offset = format!("+{}", lines.offset(first));
            let at = (MAP_LEFT - 8, y + line * cells::LINE_STEP + 12);
            text_at(html, "label end", at, &offset);
        }
        figures(html, y + 12, &part.sum, "figure end");
        y += lines.lines_of(part).count() * cells::LINE_STEP + PART_GAP;
    }
    if lines.left_out > 0 {
        let count = Count::new(lines.left_out as u64);
        let words = format!("{} not drawn", count.named("smaller part", "smaller parts"));
        text_at(html, "label", (LEFT, y + 12), &words);
        figures(html, y + 12, &lines.left_out_sum, "figure end");
        y += cells::LINE_STEP;
    }
    let mut total = lines.left_out_sum;
    for part in &lines.parts {
        crate::phrases::heap_cells::add(&mut total, &part.sum);
    }
    let all = Count::new((lines.parts.len() + lines.left_out) as u64);
    let rule = Tag::of("path", "rule");
    let right = FIGURES[2];
    html.open(&rule.with_own("d", &format!("M{MAP_LEFT} {}H{right}", y + 3))).raw("</path>");
    text_at(html, "strong", (LEFT, y + 20), &all.named("part", "parts"));
    text_at(html, "label", (MAP_LEFT, y + 20), &phrases::heap_summary(heap));
    figures(html, y + 20, &total, "strong end");
    y + 26
}

fn figures(html: &mut Html, y: usize, sum: &HeapCell, class: &'static str) {
    let sizes = [sum.live_bytes, sum.free_bytes, sum.returnable_bytes];
    for (x, bytes) in FIGURES.into_iter().zip(sizes) {
        text_at(html, class, (x, y), &bytes.to_string());
    }
}

/// Draws the bars by live share; returns the lower edge.
fn live_shares(html: &mut Html, heap: &HeapReport, y: usize) -> usize {
    let bars = bars(heap);
    let most = most(&bars);
    let mut y = y + 34;
    let heading = "Resident pages by how much of each is live or cached";
    text_at(html, "strong", (LEFT, y), heading);
    y += 12;
    for one in &bars {
        text_at(html, "name", (LEFT, y + 12), &one.name);
        moved(html, (MAP_LEFT, y), |html| bar(html, one, most));
        text_at(html, "figure end", (FIGURES[1], y + 12), &one.size);
        text_at(html, "figure end", (FIGURES[2], y + 12), &one.share);
        y += BAR_STEP;
    }
    y - (BAR_STEP - BAR_HEIGHT)
}
