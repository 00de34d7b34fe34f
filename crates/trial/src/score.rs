//! What a load generator prints: operations, their rate, and latency.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The program that makes the load, by which its output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScoreFormat {
    /// sysbench 1.0: its totals, and the histogram of `--histogram=on` or its one percentile.
    Sysbench,
    /// wrk: `Requests/sec`, and its latency distribution (`--latency`).
    Wrk,
    /// ApacheBench: requests, their rate, and its table of percentages.
    Ab,
    /// redis-benchmark with `--csv`.
    RedisBenchmark,
    /// Lines `memtide: ops N`, `memtide: ops_s N`, `memtide: p95_ms N`, as any script can print them.
    Memtide,
}

/// What a load was.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// Operations that were done.
    pub operations: Option<f64>,
    /// Operations for each second.
    pub per_second: Option<f64>,
    /// The median latency in milliseconds.
    pub p50_ms: Option<f64>,
    /// Nineteen of twenty operations took at most so many milliseconds.
    pub p95_ms: Option<f64>,
    /// 99 of 100.
    pub p99_ms: Option<f64>,
}

impl ScoreFormat {
    /// Its names on the command line.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("sysbench", Self::Sysbench),
        ("wrk", Self::Wrk),
        ("ab", Self::Ab),
        ("redis-benchmark", Self::RedisBenchmark),
        ("memtide", Self::Memtide),
    ];

    /// The program that a load's command begins with, if its output is known.
    pub fn of_command(load: &str) -> Option<Self> {
        let program = load.split_whitespace().find(|word| !word.contains('='))?;
        let name = program.rsplit('/').next()?;
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// Reads the output. What it lacks is absent.
    pub fn read(self, text: &str) -> Score {
        match self {
            Self::Sysbench => sysbench(text),
            Self::Wrk => wrk(text),
            Self::Ab => ab(text),
            Self::RedisBenchmark => redis_benchmark(text),
            Self::Memtide => memtide(text),
        }
    }
}

/// The first number behind a label.
fn after(text: &str, label: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(label))?;
    number(rest.trim_start())
}

/// The number that a text begins with; a unit may follow.
fn number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// A length of time with its unit, in milliseconds: `1.20ms`, `950.00us`, `2.1s`.
fn milliseconds(text: &str) -> Option<f64> {
    let value = number(text)?;
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match unit.trim() {
        "us" => value / 1000.0,
        "ms" => value,
        "s" => value * 1000.0,
        "m" => value * 60_000.0,
        _ => return None,
    })
}

fn sysbench(text: &str) -> Score {
    let rows: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| {
            let (latency, bar) = line.split_once('|')?;
            let count = bar.trim_start_matches('*').trim();
            Some((latency.trim().parse().ok()?, count.parse().ok()?))
        })
        .collect();
    let all: f64 = rows.iter().map(|(_, count)| count).sum();
    let quantile = |share: f64| {
        let mut seen = 0.0;
        let mut at = rows.iter();
        at.find(|(_, count)| {
            seen += count;
            seen >= share * all
        })
        .map(|(latency, _)| *latency)
    };
    let percentile = |name: &str| after(text, name);
    let events = after(text, "total number of events:");
    let seconds = after(text, "total time:");
    let per_second = after(text, "events per second:").or_else(|| Some(events? / seconds?));
    Score {
        operations: events,
        per_second,
        p50_ms: quantile(0.5).or_else(|| percentile("50th percentile:")),
        p95_ms: quantile(0.95).or_else(|| percentile("95th percentile:")),
        p99_ms: quantile(0.99).or_else(|| percentile("99th percentile:")),
    }
}

fn wrk(text: &str) -> Score {
    let latency = |name: &str| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
        milliseconds(line.trim())
    };
    let requests = text.lines().find(|line| line.contains(" requests in "));
    Score {
        operations: requests.and_then(|line| number(line.trim_start())),
        per_second: after(text, "Requests/sec:"),
        p50_ms: latency("50%"),
        // wrk prints 50, 75, 90 and 99 %.
        p95_ms: None,
        p99_ms: latency("99%"),
    }
}

fn ab(text: &str) -> Score {
    Score {
        operations: after(text, "Complete requests:"),
        per_second: after(text, "Requests per second:"),
        p50_ms: after(text, "50%"),
        p95_ms: after(text, "95%"),
        p99_ms: after(text, "99%"),
    }
}

/// A line for each test: `"SET","123456.78","0.115","0.032","0.111","0.183","0.247","1.183"` with the rate, then average,
/// minimum, p50, p95, p99 and maximum in milliseconds.
fn redis_benchmark(text: &str) -> Score {
    let rows: Vec<Vec<f64>> = text
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim().trim_matches('"').split("\",\"").collect();
            let numbers: Option<Vec<f64>> =
                cells.get(1..)?.iter().map(|cell| cell.parse().ok()).collect();
            numbers.filter(|numbers| !numbers.is_empty())
        })
        .collect();
    let largest = |at: usize| {
        let column = rows.iter().filter_map(|row| row.get(at).copied());
        column
            .fold(None, |most: Option<f64>, value| Some(most.map_or(value, |most| most.max(value))))
    };
    // Tests of the same number of operations, one after another: times add up.
    let slowness: f64 = rows.iter().filter_map(|row| row.first()).map(|rate| 1.0 / rate).sum();
    #[allow(clippy::cast_precision_loss)] // a few tests
    let per_second = (slowness > 0.0).then(|| rows.len() as f64 / slowness);
    Score {
        operations: None,
        per_second,
        p50_ms: largest(3),
        p95_ms: largest(4),
        p99_ms: largest(5),
    }
}

fn memtide(text: &str) -> Score {
    let of = |name: &str| after(text, &format!("memtide: {name} "));
    Score {
        operations: of("ops"),
        per_second: of("ops_s"),
        p50_ms: of("p50_ms"),
        p95_ms: of("p95_ms"),
        p99_ms: of("p99_ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_known_by_its_program() {
        for (load, format) in [
            ("sysbench oltp_read_write run", Some(ScoreFormat::Sysbench)),
            ("LC_ALL=C /usr/bin/wrk -t2 http://127.0.0.1:80/", Some(ScoreFormat::Wrk)),
            ("./replay.sh", None),
            ("", None),
        ] {
            assert_eq!(ScoreFormat::of_command(load), format, "{load}");
        }
    }

    /// Of sysbench 1.0.20 with `--histogram=on`.
    #[test]
    fn sysbench_has_a_histogram_or_a_percentile() {
        let text = "Latency histogram (values are in milliseconds)\n       value  ------------- \
            distribution ------------- count\n       0.100 |**** 50\n       0.200 |** 45\n       \
            9.900 | 5\n \nSQL statistics:\n    total number of events:              100\n    total \
            time:                          2.0012s\n    95th percentile:          0.20\n";
        let score = ScoreFormat::Sysbench.read(text);
        assert_eq!((score.operations, score.p50_ms), (Some(100.0), Some(0.1)));
        assert_eq!((score.p95_ms, score.p99_ms), (Some(0.2), Some(9.9)));
        assert!((score.per_second.unwrap() - 49.97).abs() < 0.01);
    }

    #[test]
    fn wrk_has_units_and_redis_benchmark_a_line_for_each_test() {
        let text = "  Latency Distribution\n     50%  950.00us\n     99%    1.20ms\n  12345 requests in \
            2.00s, 1.2MB read\nRequests/sec:   6172.50\n";
        let score = ScoreFormat::Wrk.read(text);
        assert_eq!(
            (score.operations, score.p50_ms, score.p99_ms),
            (Some(12345.0), Some(0.95), Some(1.2))
        );
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
            \"SET\",\"100.0\",\"0.2\",\"0.1\",\"0.3\",\"0.4\",\"0.5\",\"0.6\"\n\
            \"GET\",\"300.0\",\"0.2\",\"0.1\",\"0.1\",\"0.9\",\"1.5\",\"1.6\"\n";
        let score = ScoreFormat::RedisBenchmark.read(text);
        assert_eq!((score.p50_ms, score.p95_ms, score.p99_ms), (Some(0.3), Some(0.9), Some(1.5)));
        assert!((score.per_second.unwrap() - 150.0).abs() < 1e-9);
        assert_eq!(
            ScoreFormat::Memtide.read("memtide: ops 12\nx\nmemtide: p95_ms 3.5\n").p95_ms,
            Some(3.5)
        );
    }
}
