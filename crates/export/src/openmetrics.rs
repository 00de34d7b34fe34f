//! Metrics as text, for Prometheus and compatible programs.
//!
//! The last readings are written without times: Prometheus' exposition text, accepted by `promtool check metrics`, for
//! a scrape or node_exporter's textfile collector, and ended as OpenMetrics. All readings are written with times:
//! OpenMetrics 1.0, accepted by `promtool tsdb create-blocks-from openmetrics`. The two differ in the declaration of
//! counters and in the unit of times, so one text cannot be both.

mod settings;

use std::io::{self, ErrorKind, Write};

use timeline::metric::{Metric, MetricNaming, MetricType};
use timeline::{Entity, Run, SignalId, Timeline};

use crate::columns::{self, EntityColumns};
use crate::metric;
use crate::{Exported, Exporter, Picks};
use timeline::Source;

/// Metrics of some tables.
#[derive(Debug, Clone)]
pub struct OpenMetrics {
    /// The tables.
    pub tables: Vec<Entity>,
    /// The naming convention.
    pub names: MetricNaming,
    /// Whether to write all readings with their times; else the last ones without.
    pub all: bool,
}

impl OpenMetrics {
    /// Returns the default tables: all but slab caches and processes, as each of thousands would be a series of its
    /// own.
    pub fn default_tables() -> Vec<Entity> {
        let is_small = |table: &Entity| !matches!(table, Entity::Slab | Entity::Process);
        Entity::ALL.into_iter().filter(is_small).collect()
    }
}

impl Exporter for OpenMetrics {
    fn unit(&self) -> &'static str {
        "metric"
    }

    fn export(
        &self,
        source: &Source,
        picks: &Picks,
        output: &mut dyn Write,
    ) -> io::Result<Exported> {
        let timeline = &source.timeline;
        let has_times = (0..timeline.len())
            .all(|index| timeline.stamp(index).is_some_and(|s| s.wall.is_some()));
        if self.all && !has_times {
            let why = "the source lacks the times of its samples, which all samples must have";
            return Err(io::Error::new(ErrorKind::Unsupported, why));
        }
        let mut exported = Exported::default();
        let mut without_pages = Vec::new();
        let mut backwards = 0;
        for entity in &self.tables {
            let table = columns::table(timeline, *entity, picks);
            for signal in entity.signals().filter_map(SignalId::from_index) {
                let its = of_signal(&table, signal);
                if its.is_empty() {
                    continue;
                }
                let Some(metric) = Metric::new(signal, self.names, &source.facts) else {
                    without_pages.push(signal.def().name);
                    continue;
                };
                let family = Family { metric, entity: *entity, timeline };
                if self.all {
                    exported.written += 1;
                    backwards += family.all(&its, output)?;
                } else {
                    exported.written += usize::from(family.last(&its, output)?);
                }
            }
        }
        if picks.are_all() {
            exported.written += settings::write(source, self.all, output)?;
        }
        if !without_pages.is_empty() {
            exported.left_out.push(format!(
                "{} signals are counts of pages, and the source lacks the page size: {}",
                without_pages.len(),
                without_pages.join(", ")
            ));
        }
        if backwards > 0 {
            exported.left_out.push(format!(
                "{backwards} readings from after the wall clock was moved back, until it was there \
                 again"
            ));
        }
        output.write_all(b"# EOF\n")?;
        Ok(exported)
    }
}

/// Returns the series of a signal: labels and readings, those with equal labels in order of time.
fn of_signal<'a>(table: &[EntityColumns<'a>], signal: SignalId) -> Vec<(String, &'a [Run])> {
    let its = |series: &EntityColumns<'a>| {
        let (_, runs) = series.columns.iter().find(|(found, _)| *found == signal)?;
        Some((metric::labels(series.entity), *runs))
    };
    let mut all: Vec<_> = table.iter().filter_map(its).collect();
    // A PID may be used again, with the same name.
    all.sort_by(|a, b| {
        let first = |runs: &[Run]| runs.first().map(|run| run.first());
        (&a.0, first(a.1)).cmp(&(&b.0, first(b.1)))
    });
    all
}

/// Returns the time of a sample in Prometheus' milliseconds since 1970.
fn millis(timeline: &Timeline, index: usize) -> Option<i64> {
    let wall = timeline.stamp(index)?.wall?;
    Some(wall.unix_nanos().div_euclid(1_000_000))
}

fn seconds(millis: i64) -> String {
    let (seconds, rest) = (millis.div_euclid(1000), millis.rem_euclid(1000));
    format!("{seconds}.{rest:03}")
}

/// All metrics of one name.
struct Family<'a> {
    metric: Metric,
    entity: Entity,
    timeline: &'a Timeline,
}

impl Family<'_> {
    /// Writes the readings of the last sample in which the table was read. Returns whether there were any.
    fn last(&self, its: &[(String, &[Run])], output: &mut dyn Write) -> io::Result<bool> {
        let indexes = (0..self.timeline.len()).rev();
        let mut read = indexes.filter(|index| self.timeline.was_read(self.entity, *index));
        let Some(last) = read.next() else {
            return Ok(false);
        };
        let reading = |runs: &[Run]| runs.iter().rev().find(|run| run.first() <= last).copied();
        let now: Vec<(&String, u64)> = its
            .iter()
            .filter_map(|(labels, runs)| {
                let run = reading(runs).filter(|run| run.last() >= last)?;
                Some((labels, run.value))
            })
            .collect();
        if now.is_empty() {
            return Ok(false);
        }
        let name = &self.metric.name;
        let kind = match self.metric.kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Untyped => "untyped",
        };
        self.head(name, kind, output)?;
        for (labels, raw) in now {
            writeln!(output, "{name}{labels} {}", self.metric.value(raw))?;
        }
        Ok(true)
    }

    /// Writes all readings with their times. Returns how many were left out because their time was not after the one
    /// before: the wall clock was set back, and a series must go forward.
    fn all(&self, its: &[(String, &[Run])], output: &mut dyn Write) -> io::Result<usize> {
        let name = &self.metric.name;
        let (family, kind) = match self.metric.kind {
            MetricType::Counter => (name.strip_suffix("_total").unwrap_or(name), "counter"),
            MetricType::Gauge => (name.as_str(), "gauge"),
            MetricType::Untyped => (name.as_str(), "unknown"),
        };
        self.head(family, kind, output)?;
        let mut backwards = 0;
        let mut before: Option<(&str, i64)> = None;
        for (labels, runs) in its {
            for run in *runs {
                let value = self.metric.value(run.value);
                for millis in (run.first()..=run.last()).filter_map(|index| self.time(index)) {
                    if before.is_some_and(|(its, last)| its == labels && millis <= last) {
                        backwards += 1;
                        continue;
                    }
                    before = Some((labels, millis));
                    writeln!(output, "{name}{labels} {value} {}", seconds(millis))?;
                }
            }
        }
        Ok(backwards)
    }

    fn head(&self, family: &str, kind: &str, output: &mut dyn Write) -> io::Result<()> {
        let help = metric::escaped(self.metric.help());
        writeln!(output, "# HELP {family} {help}\n# TYPE {family} {kind}")
    }

    /// Returns the time of a sample in which the table was read.
    fn time(&self, index: usize) -> Option<i64> {
        let was_read = self.timeline.was_read(self.entity, index);
        was_read.then(|| millis(self.timeline, index)).flatten()
    }
}

#[cfg(test)]
mod tests;
