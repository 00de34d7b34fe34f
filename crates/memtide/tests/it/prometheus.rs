//! A Prometheus that a test starts and asks.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::record::until;

/// Prometheus with a database, ended with the test.
pub(crate) struct Prometheus {
    child: Child,
    port: u16,
}

/// A series of an instant's answer: its labels, and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scraped {
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

impl Scraped {
    /// A series with these labels besides those of the target.
    pub(crate) fn of(labels: &[(&str, &str)], value: f64) -> Self {
        let labels = labels.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Self { labels: labels.collect(), value }
    }
}

impl Prometheus {
    /// One that has a database already, and says of a series only what lasts so long.
    pub(crate) fn serving(database: &Path, place: &Path, lasts: &str) -> Self {
        Self::start(
            "global: {}\n",
            place,
            database,
            &["--storage.tsdb.retention.time=100y", &format!("--query.lookback-delta={lasts}")],
        )
    }

    /// One that scrapes as this file says.
    pub(crate) fn scraping(config: &str, place: &Path) -> Self {
        Self::start(config, place, &place.join("database"), &[])
    }

    fn start(config: &str, place: &Path, database: &Path, options: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = place.join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", database.display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self { child, port };
        until("Prometheus", || started.ask("/-/ready", "").is_some());
        started
    }

    /// What a query gives now.
    pub(crate) fn now(&self, query: &str) -> Vec<Scraped> {
        let body = self.ask("/api/v1/query", &format!("query={}", in_percent(query))).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
        let series = answer["data"]["result"].as_array().unwrap().iter().map(|one| {
            let own = one["metric"].as_object().unwrap().iter();
            let own =
                own.filter(|(name, _)| !matches!(name.as_str(), "__name__" | "instance" | "job"));
            let labels = own.map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned()));
            Scraped {
                labels: labels.collect(),
                value: one["value"][1].as_str().unwrap().parse().unwrap(),
            }
        });
        series.collect()
    }

    /// Posts a form and returns the answer's body, if it is one of success.
    pub(crate) fn ask(&self, path: &str, form: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let method = if form.is_empty() { "GET" } else { "POST" };
        let head = format!(
            "{method} {path} HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
            form.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(form.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        assert!(form.is_empty() || head.contains(" 200 "), "{answer}");
        head.contains(" 200 ").then(|| body.to_owned())
    }
}

/// Each byte as in an address.
pub(crate) fn in_percent(text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        // Writing to a string cannot fail.
        let _ = write!(written, "%{byte:02x}");
    }
    written
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
