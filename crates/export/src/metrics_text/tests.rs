use super::*;
use crate::tests::{hostile_source, source};

fn text(source: &Source, tables: &[Entity], format: MetricsFormat) -> String {
    let mut text = Vec::new();
    let (names, tables) = (MetricNaming::Memtide, tables.to_vec());
    let writer = MetricsText { tables, names, format, entities_max: None, own: Vec::new() };
    writer.export(source, &Picks::default(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn the_last_readings_are_plain_and_of_the_last_time_their_table_was_read() {
    let text = text(&source(), &[Entity::Host, Entity::Cgroup], MetricsFormat::Prometheus);
    let values: Vec<&str> = text.lines().filter(|line| !line.starts_with("# H")).collect();
    assert_eq!(
        values,
        [
            "# TYPE memtide_mem_free_bytes gauge",
            "memtide_mem_free_bytes 3000",
            "# TYPE memtide_vm_pswpin_bytes_total counter",
            "memtide_vm_pswpin_bytes_total 36864",
            "# TYPE memtide_psi_memory_some_seconds_total counter",
            "memtide_psi_memory_some_seconds_total 0.000005",
            "# TYPE memtide_cgroup_current_bytes gauge",
            "memtide_cgroup_current_bytes{cgroup=\"/db\"} 4096",
            "memtide_cgroup_current_bytes{cgroup=\"/web\"} 8192",
        ]
    );
}

#[test]
fn openmetrics_declares_counters_by_their_family_and_ends() {
    let text = text(&source(), &[Entity::Host], MetricsFormat::OpenMetrics);
    let counter = "# TYPE memtide_vm_pswpin_bytes counter\nmemtide_vm_pswpin_bytes_total 36864\n";
    assert!(text.contains(counter), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn all_readings_carry_their_times_and_counters_the_name_of_their_family() {
    let text = text(&source(), &[Entity::Host], MetricsFormat::OpenMetricsOverTime);
    assert!(text.contains("# TYPE memtide_vm_pswpin_bytes counter\n"), "{text}");
    assert!(
        text.contains(
            "memtide_vm_pswpin_bytes_total 28672 1795318201.250\n\
             memtide_vm_pswpin_bytes_total 36864 1795318202.250\n"
        ),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn a_hostile_name_stays_in_its_label() {
    let text = text(&hostile_source(), &[Entity::Process], MetricsFormat::Prometheus);
    let label = r#"{pid="42",comm="=a\"b,c\\nd\\\\x1b[2J\\u{202e}"} "#;
    assert!(text.contains(label), "{text}");
    assert!(text.lines().all(|line| line.starts_with("# ") || line.starts_with("memtide_")));
}

#[test]
fn without_times_there_is_no_history_and_that_is_said() {
    let mut source = source();
    let mut timeline = timeline::Timeline::default();
    let mut sample = timeline::Sample::default();
    sample.host.set_raw(timeline::signals::MEM_FREE.id(), 1);
    timeline.push(&sample).unwrap();
    source.timeline = timeline;
    let writer = MetricsText {
        tables: vec![Entity::Host],
        names: MetricNaming::Memtide,
        format: MetricsFormat::OpenMetricsOverTime,
        entities_max: None,
        own: Vec::new(),
    };
    let error = writer.export(&source, &Picks::default(), &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
