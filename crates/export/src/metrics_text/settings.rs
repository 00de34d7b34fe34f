//! Settings as metrics: numbers as gauges, and the chosen word of a list as the label of an info metric.

use std::io::{self, Write};

use timeline::metric::{choice_name, setting_name};
use timeline::{Fact, Facts, Source, Timeline, facts};

use super::{millis, seconds};
use crate::metric::escaped;

/// Writes the settings of a source; with `all`, numbers with the value of each time. Returns how many.
pub(super) fn write(source: &Source, all: bool, output: &mut dyn Write) -> io::Result<usize> {
    let (timeline, known) = (&source.timeline, &source.facts);
    let Some(last) = timeline.len().checked_sub(1) else {
        return Ok(0);
    };
    let mut written = 0;
    for fact in facts::ALL {
        let help = escaped(fact.meaning);
        if let Some(choice) = known.choice(*fact) {
            let time = if all { at(timeline, last) } else { String::new() };
            let (name, value) = (choice_name(*fact), escaped(choice));
            writeln!(output, "# HELP {name} {help}\n# TYPE {name} gauge")?;
            writeln!(output, "{name}{{value=\"{value}\"}} 1{time}")?;
        } else if let Some(number) = known.number(*fact) {
            let name = setting_name(*fact);
            writeln!(output, "# HELP {name} {help}\n# TYPE {name} gauge")?;
            if all {
                history((&name, *fact), known, timeline, output)?;
            } else {
                writeln!(output, "{name} {number}")?;
            }
        } else {
            continue;
        }
        written += 1;
    }
    Ok(written)
}

/// Writes the number that a setting had at each sample. A series goes forward where the wall clock does not.
fn history(
    (name, fact): (&str, Fact),
    known: &Facts,
    timeline: &Timeline,
    output: &mut dyn Write,
) -> io::Result<()> {
    let mut before = None;
    let times = timeline.times().iter().copied();
    for (index, number) in known.numbers_at(fact, times).enumerate() {
        let (Some(number), Some(at)) = (number, millis(timeline, index)) else {
            continue;
        };
        if before.is_none_or(|before| before < at) {
            before = Some(at);
            writeln!(output, "{name} {number} {}", seconds(at))?;
        }
    }
    Ok(())
}

/// The time of a sample at the end of a line.
fn at(timeline: &Timeline, index: usize) -> String {
    millis(timeline, index).map_or_else(String::new, |at| format!(" {}", seconds(at)))
}
