//! `/metrics`: the last readings under node_exporter's names, and memtide's judgement of them.

use std::collections::BTreeSet;

use axum::http::{HeaderMap, header::ACCEPT};
use diagnose::headroom::Question as HeadroomQuestion;
use export::{Exporter as _, MetricNaming, MetricsFormat, MetricsText, OwnMetric, Picks};
use report::Report;
use report::model::Level;
use report::model::headroom::HeadroomReport;
use sampler::RECENT;

use crate::answer::Body;
use crate::feed::SourceFeed;
use crate::own_cost;
use crate::refusal::Unanswered;

/// The last readings, in one of two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MetricsQuestion {
    format: MetricsFormat,
}

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl MetricsQuestion {
    /// The format that a client likes best, by the weights of its header; Prometheus' own where it says nothing.
    pub(crate) fn negotiated(headers: &HeaderMap) -> Self {
        let (mut open, mut plain) = (0.0_f32, 0.0_f32);
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in accepted.flat_map(|value| value.split(',')) {
            let mut words = range.split(';').map(str::trim);
            let kind = words.next().unwrap_or_default().to_ascii_lowercase();
            let weight =
                words.find_map(|word| word.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
            match kind.as_str() {
                "application/openmetrics-text" => open = open.max(weight),
                "text/plain" | "text/*" | "*/*" => plain = plain.max(weight),
                _ => {}
            }
        }
        let is_open = open > 0.0 && open >= plain;
        Self {
            format: if is_open { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus },
        }
    }

    /// The name of its answer.
    pub(crate) fn key(self) -> String {
        format!("metrics {:?}", self.format)
    }

    pub(crate) fn answer(self, feed: &SourceFeed, units_max: usize) -> Result<Body, Unanswered> {
        let source = feed.judged(feed.usual_range())?;
        let report = answers::check_now(&source, RECENT, None);
        let headroom = answers::headroom(&source, &HeadroomQuestion::default(), None);
        let mut own = judged(&report, &headroom);
        own.extend(of_the_server(feed));
        let text = MetricsText {
            tables: MetricsText::default_tables(),
            names: MetricNaming::NodeExporter,
            format: self.format,
            entities_max: Some(units_max),
            own,
        };
        let mut bytes = Vec::new();
        text.export(&source, &Picks::default(), &mut bytes)
            .map_err(|error| Unanswered::failed(error.to_string()))?;
        let kind =
            if self.format == MetricsFormat::OpenMetrics { OPEN_METRICS } else { PROMETHEUS };
        Ok(Body::new(kind, bytes))
    }
}

/// The judgement: what goes on, and what fits.
fn judged(report: &Report, headroom: &HeadroomReport) -> Vec<OwnMetric> {
    let verdict = f64::from(match report.now.unwrap_or(report.verdict) {
        Level::Ok => 0_u8,
        Level::Warning => 1,
        Level::Critical => 2,
        Level::Unknown => 3,
    });
    let mut finding = OwnMetric::gauge(
        "memtide_finding",
        "1 for each thing that is wrong now: its rule, how much it matters, and the cgroup or the host in which it is",
    );
    // Two processes of one cgroup may have the same.
    let series: BTreeSet<_> = answers::going_on(report)
        .map(|it| {
            (it.id.as_str(), it.severity.word(), it.scope.entity.name(), it.scope.key.as_str())
        })
        .collect();
    for (id, severity, entity, key) in series {
        let labels = [("id", id), ("severity", severity), ("scope", entity), ("subject", key)];
        finding = finding.with(&labels, 1.0);
    }
    let mut metrics = vec![
        OwnMetric::gauge(
            "memtide_verdict",
            "How memory stands now: 0 ok, 1 warning, 2 critical, 3 unknown",
        )
        .with(&[], verdict),
        finding,
    ];
    if let Some(room) = &headroom.room {
        let mut metric = OwnMetric::gauge(
            "memtide_headroom_bytes",
            "How much more fits now: at least, most likely, at most; below zero where memory is short",
        );
        let bounds = [
            ("lower", room.last.lower_bytes),
            ("likely", room.last.likely_bytes),
            ("upper", Some(room.last.upper_bytes)),
        ];
        for (name, bytes) in bounds {
            #[allow(clippy::cast_precision_loss)] // far below 2^53
            let value = bytes.map(|bytes| bytes.get() as f64);
            if let Some(bytes) = value {
                metric = metric.with(&[("bound", name)], bytes);
            }
        }
        metrics.push(metric);
    }
    metrics
}

/// The server itself, and how old its readings are.
#[allow(clippy::cast_precision_loss)] // sizes and times far below 2^53
fn of_the_server(feed: &SourceFeed) -> Vec<OwnMetric> {
    let cost = own_cost::measure();
    let mut metrics = vec![
        OwnMetric::gauge("memtide_build_info", "The version of memtide that serves this")
            .with(&[("version", env!("CARGO_PKG_VERSION"))], 1.0),
        OwnMetric::counter("memtide_serve_cpu_seconds_total", "CPU time of memtide serve")
            .with(&[], cost.cpu.as_secs_f64()),
    ];
    if let Some(resident) = cost.resident {
        metrics.push(
            OwnMetric::gauge(
                "memtide_serve_resident_memory_bytes",
                "Resident memory of memtide serve",
            )
            .with(&[], resident.get() as f64),
        );
    }
    if let Some(last) = feed.pulse().last_sample {
        let seconds = last.unix_nanos() as f64 / 1e9;
        metrics.push(
            OwnMetric::gauge(
                "memtide_last_sample_timestamp_seconds",
                "When the last sample was taken",
            )
            .with(&[], seconds),
        );
    }
    if let Some(age) = feed.age() {
        metrics.push(
            OwnMetric::gauge(
                "memtide_last_sample_age_seconds",
                "How old the last sample is: a recorder that hangs makes it rise",
            )
            .with(&[], age.as_secs_f64()),
        );
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_the_client_likes_best() {
        for (accept, format) in [
            ("", MetricsFormat::Prometheus),
            ("*/*", MetricsFormat::Prometheus),
            ("text/plain", MetricsFormat::Prometheus),
            ("application/openmetrics-text", MetricsFormat::OpenMetrics),
            // Prometheus 2 and 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                MetricsFormat::OpenMetrics,
            ),
            (
                "text/plain;version=0.0.4;q=0.9, application/openmetrics-text;q=0.3",
                MetricsFormat::Prometheus,
            ),
            ("application/openmetrics-text;q=0", MetricsFormat::Prometheus),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(MetricsQuestion::negotiated(&headers).format, format, "{accept}");
        }
    }
}
