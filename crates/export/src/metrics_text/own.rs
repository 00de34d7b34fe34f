//! Metrics that are no readings: a judgement, the cost of a server.

use std::io::{self, Write};

use super::MetricsFormat;
use crate::metric::escaped;

/// A metric with its values, each with labels of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnMetric {
    name: &'static str,
    help: &'static str,
    is_counter: bool,
    values: Vec<(String, f64)>,
}

impl OwnMetric {
    /// A level, which rises and falls.
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, help, is_counter: false, values: Vec::new() }
    }

    /// What only rises; its name ends in `_total`.
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, help, is_counter: true, values: Vec::new() }
    }

    /// Adds a value. Labels may have text from any origin; one without text is left out.
    #[must_use]
    pub fn with(mut self, labels: &[(&str, &str)], value: f64) -> Self {
        let labels = labels.iter().filter(|(_, text)| !text.is_empty());
        let labels: Vec<String> =
            labels.map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.values.push((labels, value));
        self
    }

    /// Writes it, also without a value: who reads it learns that it exists.
    pub(super) fn write(&self, format: MetricsFormat, output: &mut dyn Write) -> io::Result<()> {
        let (name, help) = (self.name, escaped(self.help));
        let family = match format {
            MetricsFormat::Prometheus => name,
            _ if self.is_counter => name.strip_suffix("_total").unwrap_or(name),
            _ => name,
        };
        let kind = if self.is_counter { "counter" } else { "gauge" };
        writeln!(output, "# HELP {family} {help}\n# TYPE {family} {kind}")?;
        for (labels, value) in &self.values {
            writeln!(output, "{name}{labels} {value}")?;
        }
        Ok(())
    }
}
