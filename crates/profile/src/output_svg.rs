//! Draws a flame graph as SVG: reasons at the bottom, then threads by name, then their functions; as wide as their share, coloured by what
//! the reason means. No script, no font, no link: it shows in any browser, and names in it can do nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::classify::classify;
use crate::collected::{Profile, ProfilePart};
use crate::model::ProfileReport;
use crate::reason::{Reason, ReasonGroup};
use crate::stack::StackTable;
use crate::words;

/// Units of the drawing, about pixels.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 74.0;
/// The width of a letter at 11 pixels.
const LETTER: f64 = 6.7;
/// Narrower boxes cannot be seen.
const BOX_MIN: f64 = 0.3;
/// Deeper functions are not drawn.
const DEPTH_MAX: usize = 100;

#[derive(Debug, Default)]
struct FlameBox {
    weight: f64,
    callees: BTreeMap<String, FlameBox>,
}

impl FlameBox {
    fn add<'a>(&mut self, mut path: impl Iterator<Item = &'a str>, weight: f64, depth: usize) {
        self.weight += weight;
        if depth < DEPTH_MAX
            && let Some(name) = path.next()
        {
            self.callees.entry(name.to_owned()).or_default().add(path, weight, depth + 1);
        }
    }

    fn depth(&self, least: f64) -> usize {
        let seen = self.callees.values().filter(|callee| callee.weight >= least);
        1 + seen.map(|callee| callee.depth(least)).max().unwrap_or(0)
    }
}

/// Returns the flame graph of a part: samples and seconds of waiting are never mixed. Empty where it was not measured.
pub fn flame_graph(profile: &Profile, report: &ProfileReport, part: ProfilePart) -> String {
    let Some((stacks, are_waits)) = profile.part(part) else {
        return String::new();
    };
    let of = if are_waits { "of the waiting" } else { "of the busy CPU" };
    let roots = boxes(stacks);
    let total: f64 = roots.iter().map(|(_, root)| root.weight).sum();
    let scale = (WIDTH - 2.0 * MARGIN) / total.max(f64::MIN_POSITIVE);
    let least = BOX_MIN / scale;
    let depth = roots.iter().map(|(_, root)| root.depth(least)).max().unwrap_or(0);
    #[allow(clippy::cast_precision_loss)] // a hundred
    let height = HEAD + ROW * depth as f64 + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    head(&mut out, report);
    let mut x = MARGIN;
    for (reason, root) in &roots {
        let place = FlamePlace { x, y: height - MARGIN - ROW, scale, total, of };
        draw(&mut out, reason.label(), root, *reason, place);
        x += root.weight * scale;
    }
    out.push_str("</svg>\n");
    out
}

/// The boxes of all reasons, in the order of groups and sizes; idle CPUs are left out.
fn boxes(stacks: &StackTable) -> Vec<(Reason, FlameBox)> {
    let mut by_reason: BTreeMap<Reason, FlameBox> = BTreeMap::new();
    for (stack, weight) in stacks.sorted() {
        let class = classify(stack);
        if class.is_idle {
            continue;
        }
        let names = std::iter::once(&*stack.comm).chain(stack.frames.iter().map(|one| &*one.name));
        by_reason.entry(class.reason).or_default().add(names, weight, 1);
    }
    let mut roots: Vec<(Reason, FlameBox)> = by_reason.into_iter().collect();
    roots.sort_by(|(one, first), (other, second)| {
        one.group().cmp(&other.group()).then(second.weight.total_cmp(&first.weight))
    });
    roots
}

/// Title, origin, and what the colours mean.
fn head(out: &mut String, report: &ProfileReport) {
    let room = ((WIDTH - 2.0 * MARGIN) / LETTER).floor();
    let mut line = |y: u32, fill: &str, weight: &str, text: &str| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 176
        let text = cut(text, room as usize);
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{fill}\" font-weight=\"{weight}\">{}</text>",
            escaped(&text)
        );
    };
    line(20, "#111111", "bold", &report.headline);
    line(38, "#555555", "normal", &words::origin(report));
    let mut x = MARGIN;
    // One reason of each colour.
    let legend = [
        (Reason::DirectReclaim, ReasonGroup::Trouble.label()),
        (Reason::ThpFault, ReasonGroup::PriceOfASetting.label()),
        (Reason::FileRead, ReasonGroup::Ordinary.label()),
        (Reason::OtherKernel, Reason::OtherKernel.label()),
        (Reason::User, Reason::User.label()),
    ];
    for (reason, name) in legend {
        #[allow(clippy::cast_precision_loss)] // tens
        let width = name.len() as f64 * LETTER;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"48\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.1}\" \
             y=\"58\" fill=\"#333333\">{name}</text>",
            colour(reason, ""),
            x + 16.0,
        );
        x += width + 36.0;
    }
}

/// Where a box is drawn, and what its share is of.
#[derive(Clone, Copy)]
struct FlamePlace<'a> {
    x: f64,
    y: f64,
    scale: f64,
    total: f64,
    of: &'a str,
}

fn draw(out: &mut String, name: &str, node: &FlameBox, reason: Reason, place: FlamePlace<'_>) {
    let width = node.weight * place.scale;
    if width < BOX_MIN {
        return;
    }
    let share = words::percent(node.weight / place.total);
    let _ = write!(
        out,
        "<g><title>{} · {share} {}</title><rect x=\"{:.1}\" y=\"{:.0}\" width=\"{:.1}\" height=\"{:.0}\" \
         fill=\"{}\" rx=\"1\"/>",
        escaped(name),
        place.of,
        place.x,
        place.y,
        (width - 0.4).max(0.2),
        ROW - 1.0,
        colour(reason, name)
    );
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 200
    let letters = ((width - 6.0) / LETTER).max(0.0) as usize;
    if letters >= 3 {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.0}\" fill=\"#111111\">{}</text>",
            place.x + 3.0,
            place.y + 12.0,
            escaped(&cut(name, letters))
        );
    }
    out.push_str("</g>\n");
    let mut x = place.x;
    for (name, callee) in &node.callees {
        draw(out, name, callee, reason, FlamePlace { x, y: place.y - ROW, ..place });
        x += callee.weight * place.scale;
    }
}

/// A colour of the group, lighter or darker by the name, so that neighbours differ.
fn colour(reason: Reason, name: &str) -> String {
    let (hue, saturation, lightness) = match (reason, reason.group()) {
        (Reason::User, _) => (210, 60, 76),
        (_, ReasonGroup::Trouble) => (6, 80, 66),
        (_, ReasonGroup::PriceOfASetting) => (38, 90, 64),
        (_, ReasonGroup::Ordinary) => (150, 28, 70),
        (_, ReasonGroup::NotMemory) => (215, 10, 80),
    };
    let sum = name.bytes().fold(0_u32, |sum, byte| (sum * 31 + u32::from(byte)) % 997);
    format!("hsl({hue} {saturation}% {}%)", lightness + sum % 11)
}

/// At most so many letters of a text.
fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

/// A text in XML: any user may choose the name of a thread.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for c in timeline::plain::escape(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuUnit, FramePlace};

    #[test]
    fn names_of_threads_are_text_and_shares_are_of_busy_cpus() {
        let mut stacks = StackTable::default();
        let evil = "<script>\"'&\u{1b}[2J";
        stacks.add(evil, [("node_reclaim", FramePlace::Kernel)], 30.0);
        stacks.add("swapper", [("do_idle", FramePlace::Kernel)], 500.0);
        stacks.add("calm", [("[user]", FramePlace::User)], 70.0);
        let profile = Profile { cpu: Some((CpuUnit::Samples, stacks)), ..Profile::default() };
        let svg = flame_graph(&profile, &ProfileReport::of(&profile), ProfilePart::Cpu);
        assert!(!svg.contains("<script"), "{svg}");
        assert!(!svg.contains('\u{1b}'));
        assert!(svg.contains("&lt;script&gt;"), "{svg}");
        assert!(svg.contains("<title>node_reclaim · 30 % of the busy CPU</title>"), "{svg}");
        assert!(!svg.contains("do_idle"));
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    }
}
