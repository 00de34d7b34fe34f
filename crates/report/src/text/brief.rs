//! One line of `check --brief`: status text and performance data by the Monitoring Plugins' development guidelines.
//!
//! `MEMORY CRITICAL - HEADLINE | 'label'=value[UOM];[warn];[crit];[min];[max] …`. What follows the first `|` is data for the
//! monitoring system, so no text may contain one.

use units::{Bytes, Count, Ratio};

use crate::clock::ReportClock;
use crate::model::{Finding, GroupSection, Level, Report, Severity};
use crate::phrases::verdict as verdict_phrases;
use crate::plain::harmless;
use crate::screen::Screen;

/// A measurement for the monitoring system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerformanceDatum {
    /// What it is: a word without blanks, so that it needs no quotes.
    pub label: &'static str,
    /// The measurement.
    pub value: PerformanceValue,
}

/// The measurement with what it is compared with.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PerformanceValue {
    Size {
        bytes: Bytes,
        /// A smaller size is a warning by itself; `None` where no size is.
        least: Option<Bytes>,
        /// The largest size that is possible; `None` where nothing limits it.
        most: Option<Bytes>,
    },
    /// A share of time.
    Time(Ratio),
    /// A counter that only rises.
    Counter(Count),
}

impl PerformanceDatum {
    fn text(self) -> String {
        let optional =
            |bytes: Option<Bytes>| bytes.map_or_else(String::new, |bytes| bytes.get().to_string());
        let value = match self.value {
            PerformanceValue::Size { bytes, least, most } => {
                let warn = least.map_or_else(String::new, |least| format!("{}:", least.get()));
                format!("{}B;{warn};;0;{}", bytes.get(), optional(most))
            }
            PerformanceValue::Time(share) => format!("{:.2}%;;;0;100", share.get() * 100.0),
            PerformanceValue::Counter(count) => format!("{}c;;;0", count.get()),
        };
        format!("{}={value}", self.label)
    }
}

/// Draws the verdict with the data.
pub(super) fn draw(report: &Report, data: &[PerformanceDatum], screen: &Screen) -> String {
    let clock = ReportClock::new(&report.source, screen);
    let place = report.group.as_ref().map_or_else(String::new, place);
    let headline = verdict_phrases::headline(report, &clock);
    let mut text = format!("{place}{}", headline.trim_end());
    text.extend(others(report));
    text.extend(available(report));
    line(report.verdict, &text, data)
}

/// Draws the answer where there is none.
pub(super) fn unknown(why: &str) -> String {
    line(Level::Unknown, why, &[])
}

fn line(verdict: Level, text: &str, data: &[PerformanceDatum]) -> String {
    let mut line =
        format!("MEMORY {} - {}", verdict_phrases::word(verdict), harmless(text).replace('|', "¦"));
    for (place, datum) in data.iter().enumerate() {
        line.push_str(if place == 0 { " | " } else { " " });
        line.push_str(&datum.text());
    }
    line.push('\n');
    line
}

/// `web.service (cgroup /system.slice/web.service): `; the headline names a cgroup without a name.
fn place(group: &GroupSection) -> String {
    let name = group.name.as_ref();
    name.map_or_else(String::new, |name| format!("{name} (cgroup {}): ", group.path))
}

/// A line of a plugin is read on a pager.
const OTHERS_MAX: usize = 4;

/// Names the other diseases; the headline is about the worst.
fn others(report: &Report) -> Option<String> {
    let roots = report.roots().map(|(_, finding)| finding);
    let others: Vec<String> = roots
        .filter(|finding| !finding.is_headline && finding.severity > Severity::Info)
        .map(|Finding { id, scope, .. }| match scope.key.as_str() {
            "" => id.clone(),
            of => format!("{id} of {of}"),
        })
        .collect();
    let shown = others.iter().take(OTHERS_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = match others.len().saturating_sub(OTHERS_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!others.is_empty()).then(|| format!(" Also: {shown}{more}."))
}

/// How much is left, where the host is well.
fn available(report: &Report) -> Option<String> {
    let accounting = report.accounting.as_ref()?;
    let is_calm = report.verdict == Level::Ok && report.group.is_none();
    let available = accounting.available_bytes.filter(|_| is_calm)?;
    Some(format!(" {available} of {} available.", accounting.total_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_have_the_plugin_syntax_and_only_known_thresholds() {
        let size = |least, most| PerformanceValue::Size { bytes: Bytes::new(7), least, most };
        for (label, value, text) in [
            ("a", size(Some(Bytes::new(3)), Some(Bytes::new(9))), "a=7B;3:;;0;9"),
            ("b", size(None, None), "b=7B;;;0;"),
            ("c", PerformanceValue::Time(Ratio::from_percent(12.345)), "c=12.35%;;;0;100"),
            ("d", PerformanceValue::Counter(Count::new(5)), "d=5c;;;0"),
        ] {
            assert_eq!(PerformanceDatum { label, value }.text(), text);
        }
    }

    #[test]
    fn no_text_ends_the_line_or_begins_the_data() {
        let line = unknown("cannot read a|b\nc\x1b[2J");
        assert_eq!(line, "MEMORY UNKNOWN - cannot read a¦b\\nc\\x1b[2J\n");
    }
}
