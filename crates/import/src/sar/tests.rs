use timeline::signals::{DISK_READ_BYTES, MEM_ANON, MEM_FREE, MEM_TOTAL, PGPGIN, PSI_MEMORY_SOME};
use timeline::{BreakKind, Entity, Source};
use units::{Bytes, Span};

use super::{Bounded, SarFormat};
use crate::open_bytes;

const JSON: &str = r#"{"sysstat": {
  "hosts": [{
    "nodename": "db", "release": "5.10.0-8-amd64", "machine": "x86_64", "number-of-cpus": 8,
    "statistics": [
      {"timestamp": {"date": "2026-11-21", "time": "12:10:01", "utc": 1, "interval": 600},
       "cpu-load": [{"cpu": "all", "user": 1.0, "idle": 99.0}, {"cpu": "0", "user": 9.0, "idle": 91.0}],
       "paging": {"pgpgin": 100.00, "pgpgout": 1.00},
       "memory": {"memfree": 2000000, "memused": 6000000, "memused-percent": 75.00, "anonpg": 0},
       "disk": [{"disk-device": "sda", "rkB": 100.00}, {"disk-device": "sdb", "rkB": 7.00}],
       "network": {"net-dev": [{"iface": "lo", "rxpck": 1.0}]},
       "psi": {"psi-cpu": {"some_avg": 1.0}, "psi-mem": {"some_avg10": 9.0, "some_avg": 25.00, "full_avg": 1.0}}},
      {"timestamp": {"date": "2026-11-21", "time": "12:20:01", "utc": 1, "interval": 600},
       "paging": {"pgpgin": 300.00, "pgpgout": 1.00},
       "memory": {"memfree": 1000000, "memused": 7000000, "memused-percent": 87.50, "anonpg": 0},
       "psi": {"psi-mem": {"some_avg": 50.00}}},
      {"timestamp": {"date": "2026-11-21", "time": "12:50:01", "utc": 1, "interval": 600},
       "paging": {"pgpgin": 500.00, "pgpgout": 1.00}}
    ],
    "restarts": [{"boot": {"date": "2026-11-21", "time": "12:35:00", "utc": 1, "cpu_count": 8}}]
  }]
}}
"#;

const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE sysstat [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<sysstat xmlns="https://sysstat.github.io">
  <host nodename="db">
    <release>5.10.0-8-amd64</release><machine>x86_64</machine><number-of-cpus>8</number-of-cpus>
    <statistics>
      <timestamp date="2026-11-21" time="12:10:01" utc="1" interval="600">
        <cpu-load><cpu number="all" user="1.0" idle="99.0"/><cpu number="0" user="9.0" idle="91.0"/></cpu-load>
        <paging per="second" pgpgin="100.00" pgpgout="1.00"/>
        <memory unit="kB"><memfree>2000000</memfree><memused>6000000</memused>
          <memused-percent>75.00</memused-percent><anonpg>0</anonpg></memory>
        <disk per="second"><disk-device dev="sda" rkB="100.00"/><disk-device dev="sdb" rkB="7.00"/></disk>
        <psi per="second"><psi-cpu some_avg="1.0"/><psi-mem some_avg10="9.0" some_avg="25.00" full_avg="1.0"/></psi>
      </timestamp>
      <timestamp date="2026-11-21" time="12:20:01" utc="1" interval="600">
        <paging per="second" pgpgin="300.00" pgpgout="1.00"/>
        <memory unit="kB"><memfree>1000000</memfree><memused>7000000</memused>
          <memused-percent>87.50</memused-percent><anonpg>0</anonpg></memory>
        <psi per="second"><psi-mem some_avg="50.00"/></psi>
      </timestamp>
      <timestamp date="2026-11-21" time="12:50:01" utc="1" interval="600">
        <paging per="second" pgpgin="500.00" pgpgout="1.00"/>
      </timestamp>
    </statistics>
    <restarts><boot date="2026-11-21" time="12:35:00" utc="1" cpu_count="8"/></restarts>
  </host>
</sysstat>
"#;

fn open(text: &str) -> Source {
    open_bytes("sa", text.as_bytes()).unwrap()
}

#[test]
fn both_documents_have_the_same_data() {
    for (form, text) in [("sadf -j", JSON), ("sadf -x", XML)] {
        let opened = open(text);
        let timeline = &opened.timeline;
        assert_eq!(opened.problems, Vec::<String>::new(), "{form}");
        assert_eq!(opened.origin.inputs[0].form, form);
        let paged = timeline.rate(PGPGIN).unwrap();
        let expected = [None, Some(102_400.0), Some(307_200.0), None, Some(512_000.0)];
        assert_eq!(paged.values(), expected, "{form}");
        let stalled = timeline.rate(PSI_MEMORY_SOME).unwrap();
        assert_eq!(stalled.values()[..3], [None, Some(250_000.0), Some(500_000.0)]);
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(8_000_000)));
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(1_000_000)));
        assert_eq!(timeline.last(MEM_ANON), None, "0 in all rows means unknown");
        let disks: Vec<_> = timeline.entities(Entity::Disk).collect();
        assert_eq!(disks.iter().map(|d| &d.key).collect::<Vec<_>>(), ["sda", "sdb"]);
        let read = timeline.rate_of(disks[0], DISK_READ_BYTES).unwrap();
        assert_eq!(read.values()[1], Some(102_400.0));
        assert_eq!(timeline.breaks().len(), 1);
        assert_eq!(timeline.breaks()[0].kind, BreakKind::Reboot);
        assert_eq!(timeline.duration(), Span::from_mins(50));
        assert_eq!(opened.facts.cpus, Some(8));
    }
}

/// A document with one sample per day, each after a gap.
fn days(days: usize) -> String {
    let day = |day: usize| {
        format!(
            r#"{{"timestamp": {{"date": "{}-{:02}-{:02}", "time": "12:00:00", "utc": 1, "interval": 60}},
                "memory": {{"memfree": 2000000, "memused": 6000000, "memused-percent": 75.00}}}}"#,
            1980 + day / 336,
            1 + day / 28 % 12,
            1 + day % 28
        )
    };
    let days: Vec<String> = (0..days).map(day).collect();
    format!(r#"{{"sysstat": {{"hosts": [{{"statistics": [{}]}}]}}}}"#, days.join(","))
}

#[test]
fn samples_that_do_not_fit_are_reported() {
    let opened = open(&days(900));
    assert_eq!(opened.problems, Vec::<String>::new());
    let opened = open(&days(1_100));
    let problem = opened.problems.first().map_or("", String::as_str);
    assert!(problem.contains("left out"), "{problem:?}");
}

#[test]
fn a_document_is_named_after_its_tables() {
    let opened = open(JSON);
    assert_eq!(
        opened.origin.inputs[0].what,
        "sar (cpu-load + disk + memory + paging + psi-cpu + psi-mem), 3 samples, 30 min apart"
    );
    assert_eq!(opened.origin.inputs[0].unit, "KiB");
}

#[test]
fn a_document_that_ends_early_is_read_up_to_its_end() {
    for text in [JSON, XML] {
        for end in (0..text.len()).step_by(7) {
            let Some(SarFormat::Json | SarFormat::Xml) =
                SarFormat::recognise(&text.as_bytes()[..end])
            else {
                continue;
            };
            if let Ok(opened) = open_bytes("sa", &text.as_bytes()[..end]) {
                assert!(
                    opened.problems.iter().any(|p| p.contains("ends early"))
                        || end + 10 > text.len()
                );
            }
        }
    }
}

#[test]
fn hostile_figures_are_ignored() {
    for (from, to) in [
        ("100.00", "99999999999999999999"),
        ("100.00", "-1"),
        ("100.00", "1e999"),
        ("\"date\": \"2026-11-21\"", "\"date\": \"99999-99-99\""),
        ("\"interval\": 600", "\"interval\": 1e18"),
        ("\"paging\": {", "\"paging\": {\"\\u0000\": [[[[]]]], "),
        ("75.00", "\"nan\""),
        ("\"number-of-cpus\": 8", "\"number-of-cpus\": 1e30"),
    ] {
        let text = JSON.replace(from, to);
        assert_ne!(text, JSON, "{from}");
        let _ = open_bytes("sa", text.as_bytes());
    }
    let deep = format!("{{\"sysstat\": {}", "[".repeat(100_000));
    assert!(open_bytes("sa", deep.as_bytes()).is_err());
    let deep = format!("<sysstat>{}", "<a>".repeat(100_000));
    assert!(open_bytes("sa", deep.as_bytes()).is_err());
}

#[test]
fn an_endless_name_is_not_kept_in_memory() {
    let endless = format!("{{\"sysstat\": \"{}", "a".repeat(3 << 20));
    let mut input = endless.as_bytes();
    let mut bounded = Bounded::new(&mut input, b'"');
    let copied = std::io::copy(&mut bounded, &mut std::io::sink());
    assert!(copied.is_err());
}

#[test]
fn a_format_is_recognised_by_its_start() {
    for (start, stored) in [
        (&b"\x96\xd5\x75\x21\x0c"[..], Some(SarFormat::Binary)),
        (b"\xd5\x96\x21\x75\x0b", Some(SarFormat::Binary)),
        (JSON.as_bytes(), Some(SarFormat::Json)),
        (XML.as_bytes(), Some(SarFormat::Xml)),
        (b"# hostname;interval;timestamp;pgpgin/s\n", Some(SarFormat::Lines)),
        (b"db;-1;2026-11-21 12:00:00 UTC;LINUX-RESTART\t(8 CPU)\n", Some(SarFormat::Lines)),
        (b"db\t600\t1795305527\tall\t%user\t1.00\n", Some(SarFormat::Lines)),
        (b"{\"hosts\": []}", None),
        (b"\x96\xd5\x00\x00", None),
        (b"a 1 2 3\n", None),
        (b"", None),
    ] {
        assert_eq!(SarFormat::recognise(start), stored);
    }
}
