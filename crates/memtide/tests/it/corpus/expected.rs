//! Every command on every case, compared with the files beside the case.
//!
//! `BLESS=1 cargo test -p memtide --test it corpus` writes them anew: read the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use answers::PageSource;
use diagnose::headroom::Question;
use diagnose::rules;
use export::{Capture, Csv, Exporter, MetricNaming, MetricsFormat, MetricsText, Picks};
use report::Report;
use report::text::{Detail, Screen};
use serde::Serialize;
use serde_json::Value;
use timeline::{Entity, TimeRange};

use crate::cases::{self, Case, Judged, on_each};
use crate::support::{blesses, root};

/// All that a command can say of a source, in lines of 100 columns.
fn screen() -> Screen {
    let mut screen = Screen::of_width(100);
    screen.detail = Detail::All;
    screen
}

/// What a folder may hold apart from its source and the expected files.
const OTHER_FILES: [&str; 2] = ["case.toml", "figures.txt"];

/// A case with the report that several commands share.
struct Run<'a> {
    case: &'a Case,
    judged: &'a Judged,
    report: Report,
}

impl<'a> Run<'a> {
    fn new(case: &'a Case) -> Self {
        let judged = case.judged();
        Self { report: answers::check(&judged.source), case, judged }
    }

    /// The expected files and their content.
    fn files(&self) -> BTreeMap<&'static str, String> {
        let mut files = BTreeMap::from([
            ("check.txt", self.check()),
            ("where.txt", self.where_memory()),
            ("headroom.txt", self.headroom()),
            ("events.txt", self.events()),
            ("compare.txt", self.compare()),
            ("written.txt", self.written()),
        ]);
        if self.case.is_paste() {
            let input = report::text::explain_input(&self.report, &screen());
            files.insert("input.txt", input);
        }
        files
    }

    fn check(&self) -> String {
        assert_valid(&self.report, "report", self.case);
        assert_adds_up(&self.report, self.case);
        let narrow = report::text::check(&self.report, &Screen::of_width(80));
        assert_narrow(&narrow, self.case);
        // What quiet rules answer stands in a file for each rule: a new rule changes no case.
        let loud = Report { clear: Vec::new(), not_evaluated: Vec::new(), ..self.report.clone() };
        report::text::check(&loud, &screen())
    }

    /// Every rule answers once: it found something, or says why not.
    fn assert_each_rule_answers(&self) {
        let report = &self.report;
        let found = [&report.findings, &report.notes, &report.earlier];
        let mut ids: BTreeSet<&str> = found.into_iter().flatten().map(|it| &*it.id).collect();
        ids.extend(report.bursts.iter().map(|bursts| &*bursts.id));
        let quiet = report.clear.iter().map(|rule| &*rule.id);
        let quiet = quiet.chain(report.not_evaluated.iter().map(|rule| &*rule.id));
        for id in quiet {
            assert!(ids.insert(id), "{}: {id} answers twice", self.case.id);
        }
        assert_eq!(ids.len(), rules::ALL.len(), "{}", self.case.id);
    }

    /// Why each rule that found nothing did so, by rule.
    fn quiet(&self) -> Vec<(String, String)> {
        self.assert_each_rule_answers();
        let clear = self.report.clear.iter().map(|rule| (&rule.id, rule.because.clone()));
        let needs = self.report.not_evaluated.iter().map(|rule| {
            let names = rule.missing.join(", ");
            (&rule.id, format!("needs {} ({names})", rule.needs))
        });
        let mut quiet = Vec::new();
        for (id, why) in clear.chain(needs) {
            quiet.push((id.clone(), format!("{}: {why}\n", self.case.id)));
        }
        quiet
    }

    fn where_memory(&self) -> String {
        let Some(report) = answers::where_memory(&self.judged.source, None) else {
            return "nothing: the source has no MemTotal\n".to_owned();
        };
        assert_valid(&report, "where", self.case);
        let narrow = report::text::where_tree(&report, &Screen::of_width(80));
        assert_narrow(&narrow, self.case);
        report::text::where_tree(&report, &screen())
    }

    fn headroom(&self) -> String {
        let report = answers::headroom(&self.judged.source, &Question::default(), None);
        assert_valid(&report, "headroom", self.case);
        report::text::headroom(&report, &screen())
    }

    fn events(&self) -> String {
        let report = answers::events(&self.judged.source, &[], None);
        assert_valid(&report, "events", self.case);
        report::text::events(&report, &screen())
    }

    /// The partner is the source before, this case the one after.
    fn compare(&self) -> String {
        let partner = cases::named(&self.case.file.partner).judged();
        let report = answers::compare(&partner.source, &self.judged.source);
        assert_valid(&report, "compare", self.case);
        report::text::compare(&report, &Screen::of_width(100))
    }

    /// What `report`, `export` and `convert` write: how much of what, as the numbers themselves are the source's.
    fn written(&self) -> String {
        let mut lines = vec![self.page()];
        lines.extend(self.tables());
        lines.push(self.metrics());
        lines.push(self.capture());
        lines.concat()
    }

    fn page(&self) -> String {
        let source = &self.judged.source;
        if source.timeline.is_empty() {
            return "page: none, there is no sample\n".to_owned();
        }
        let of = PageSource {
            source,
            path: &self.case.source,
            range: TimeRange::default(),
            group: None,
            at: None,
        };
        let (page, problems) = answers::page(of, &Question::default());
        assert_eq!(problems, Vec::<String>::new(), "{}", self.case.id);
        let html = report::html::report(&page, &screen());
        crate::report::tags(&html);
        let text = crate::report::read(&html);
        for finding in &self.report.findings {
            let title = crate::report::plain(&finding.title);
            assert!(text.contains(&title), "{}: the page lacks: {title}", self.case.id);
        }
        let meta = crate::report::meta(&html);
        let charts = meta["charts"].as_array().unwrap().iter();
        let charts: Vec<&str> = charts.filter_map(|chart| chart["id"].as_str()).collect();
        format!("page: charts: {}\n", charts.join(", "))
    }

    fn tables(&self) -> Vec<String> {
        let opened = &self.judged.source;
        let table = |table: Entity| {
            let mut csv = Vec::new();
            let written = Csv { table }.export(opened, &Picks::default(), &mut csv).unwrap();
            let csv = String::from_utf8(csv).unwrap();
            let columns = csv.lines().next().unwrap_or_default().split(',').count();
            assert_eq!(csv.lines().count(), written.written + 1, "{}: {table:?}", self.case.id);
            (written.written > 0).then(|| {
                format!("csv {}: {} rows, {columns} columns\n", table.name(), written.written)
            })
        };
        Entity::ALL.into_iter().filter_map(table).collect()
    }

    fn metrics(&self) -> String {
        let writer = MetricsText {
            tables: Entity::ALL.to_vec(),
            names: MetricNaming::Memtide,
            format: MetricsFormat::OpenMetrics,
            entities_max: None,
            own: Vec::new(),
        };
        let mut text = Vec::new();
        match writer.export(&self.judged.source, &Picks::default(), &mut text) {
            Ok(written) => {
                let text = String::from_utf8(text).unwrap();
                assert!(text.ends_with("# EOF\n"), "{}", self.case.id);
                format!("openmetrics: {} samples\n", written.written)
            }
            Err(error) => format!("openmetrics: {error}\n"),
        }
    }

    /// A capture of the source is judged as the source is.
    fn capture(&self) -> String {
        let mut bytes = Vec::new();
        let written = match Capture.export(&self.judged.source, &Picks::default(), &mut bytes) {
            Ok(written) => written,
            Err(error) => return format!("capture: {error}\n"),
        };
        if written.written == 0 {
            return "capture: no sample\n".to_owned();
        }
        let reread = Judged::new(import::open_bytes("capture", &bytes).unwrap());
        let ids = |judged: &Judged| -> Vec<String> {
            judged
                .reported()
                .map(|finding| format!("{} {:?}", finding.id, finding.severity))
                .collect()
        };
        let same =
            if ids(&reread) == ids(self.judged) { "the same findings" } else { "other findings" };
        let mut text = format!("capture: {} samples, {same}\n", written.written);
        for left_out in &written.left_out {
            text += &format!("capture: left out: {left_out}\n");
        }
        text
    }
}

static SCHEMAS: LazyLock<BTreeMap<&str, jsonschema::Validator>> = LazyLock::new(|| {
    let read = |name| {
        let path = root().join(format!("docs/{name}.schema.json"));
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        (name, jsonschema::validator_for(&schema).unwrap())
    };
    ["report", "headroom", "compare", "events"].map(read).into()
});

/// The JSON of an answer, where its schema is published.
fn assert_valid(answer: &impl Serialize, name: &str, case: &Case) {
    let value: Value = serde_json::from_str(&report::json(answer).unwrap()).unwrap();
    let Some(schema) = SCHEMAS.get(name) else {
        return;
    };
    let faults: Vec<String> = schema.iter_errors(&value).map(|fault| fault.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new(), "{}: {name}", case.id);
}

/// The terms of memory add up to what there is.
fn assert_adds_up(report: &Report, case: &Case) {
    let value = serde_json::to_value(report).unwrap();
    let accounting = &value["accounting"];
    if let (Some(terms), Some(total)) =
        (accounting["terms"].as_array(), accounting["total_bytes"].as_i64())
    {
        let sum: i64 = terms.iter().map(|term| term["bytes"].as_i64().unwrap()).sum();
        assert_eq!(sum + accounting["unaccounted_bytes"].as_i64().unwrap(), total, "{}", case.id);
    }
}

/// No line is wider than a terminal, but for commands: what is copied must be one line.
fn assert_narrow(text: &str, case: &Case) {
    for line in text.lines().filter(|_| case.is_capture()) {
        assert!(line.chars().count() <= 80 || line.contains(" >> /etc/"), "{}: {line}", case.id);
    }
}

/// The first line in which two texts differ.
fn difference(expected: &str, found: &str) -> String {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    for line in 1.. {
        let pair = (expected.next(), found.next());
        if pair.0 != pair.1 || pair == (None, None) {
            let [before, now] = [pair.0, pair.1].map(|text| text.unwrap_or("(nothing)"));
            return format!("line {line}\n  expected: {before}\n  found:    {now}");
        }
    }
    unreachable!("texts end")
}

/// Compares a folder with what the commands say, or writes it anew; returns what is wrong.
fn compare_folder<N: AsRef<Path>>(folder: &Path, files: &BTreeMap<N, String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, found) in files {
        let path = folder.join(name);
        let expected = std::fs::read_to_string(&path).ok();
        if expected.as_ref() == Some(found) {
            continue;
        }
        if blesses() {
            std::fs::write(&path, found).unwrap();
            continue;
        }
        let path = path.strip_prefix(root()).unwrap().display();
        match expected {
            None => wrong.push(format!("{path} is missing")),
            Some(expected) => wrong.push(format!("{path}: {}", difference(&expected, found))),
        }
    }
    wrong
}

/// Compares a file of quiet answers for each rule with those of this run, or writes it anew; returns what is wrong.
fn compare_rules(quiet: Vec<(String, String)>) -> Vec<String> {
    let file = |id: &str| format!("{id}.txt");
    let mut files: BTreeMap<String, String> =
        rules::ALL.iter().map(|rule| (file(rule.id), String::new())).collect();
    for (id, line) in quiet {
        files.get_mut(&file(&id)).unwrap().push_str(&line);
    }
    let folder = root().join("corpus/rules");
    std::fs::create_dir_all(&folder).unwrap();
    let mut wrong = compare_folder(&folder, &files);
    let there = std::fs::read_dir(&folder).unwrap();
    let there = there.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let orphans = there.filter(|name| !files.contains_key(name));
    wrong.extend(orphans.map(|name| format!("corpus/rules/{name} is of no rule")));
    wrong
}

#[test]
fn every_command_says_of_every_case_what_was_reviewed() {
    let runs = on_each(cases::all(), |case| {
        let run = Run::new(case);
        (compare_folder(&case.folder, &run.files()), run.quiet())
    });
    let (wrong, quiet): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    let mut wrong = wrong.concat();
    wrong.extend(compare_rules(quiet.concat()));
    assert!(
        wrong.is_empty(),
        "\n{}\nBLESS=1 cargo test -p memtide --test it corpus writes them anew: read the difference",
        wrong.join("\n")
    );
}

#[test]
fn a_folder_has_nothing_that_no_test_reads() {
    let wrong = on_each(cases::all(), |case| {
        let expected =
            ["check.txt", "where.txt", "headroom.txt", "events.txt", "compare.txt", "written.txt"];
        let known = |name: &str| {
            expected.contains(&name)
                || OTHER_FILES.contains(&name)
                || (name == "input.txt" && case.is_paste())
                || case.source.ends_with(name)
        };
        let entries = std::fs::read_dir(&case.folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let orphans = names.filter(|name| !known(name));
        orphans.map(|name| format!("{}/{name}", case.id)).collect::<Vec<_>>()
    });
    assert_eq!(wrong.concat(), Vec::<String>::new());
}

/// What a reader must never meet.
#[test]
fn no_answer_is_unfinished() {
    const NEVER: [&str; 7] = ["NaN", " inf ", " 0 times", "..", " ,", "TODO", "{}"];
    for case in cases::all() {
        let text = std::fs::read_to_string(case.folder.join("check.txt")).unwrap_or_default();
        // A path is quoted from the source, and may hold anything.
        let words = text.split(' ').filter(|word| !word.contains('/'));
        let own = words.collect::<Vec<_>>().join(" ");
        for never in NEVER {
            assert!(!own.contains(never), "{}: `{never}`", case.id);
        }
    }
}
