use std::fmt::Write as _;

use timeline::signals::{
    COMMITTED_AS, DISK_IO_TIME, DISK_READ_BYTES, MEM_AVAILABLE, MEM_FREE, MEM_TOTAL, PGFAULT,
    PGMAJFAULT, PGPGIN, PSI_MEMORY_SOME, PSWPIN, SWAP_TOTAL,
};
use timeline::{BreakKind, Entity};
use units::{Bytes, Span};

use super::FORM;
use crate::testing::paste;
use timeline::Source;

fn rates(opened: &Source, signal: timeline::Signal<timeline::Counter<Bytes>>) -> Vec<f64> {
    let track = opened.timeline.rate(signal).unwrap();
    track.values().iter().flatten().copied().collect()
}

const PAGING: &str = "\
Linux 5.10.0-8-amd64 (db)  11/21/2026  _x86_64_  (8 CPU)

12:00:01     pgpgin/s pgpgout/s   fault/s  majflt/s
12:10:01       100.00    200.00   1000.00      0.50
12:20:01       300.00    200.00   2000.00      1.50
Average:       200.00    200.00   1500.00      1.00
";

#[test]
fn rates_are_as_printed_and_no_row_is_lost() {
    let opened = paste(PAGING);
    let timeline = &opened.timeline;
    assert_eq!(rates(&opened, PGPGIN), [102_400.0, 307_200.0]);
    assert_eq!((timeline.len(), timeline.duration()), (3, Span::from_mins(20)));
    let start = timeline.wall_at(Span::ZERO).unwrap();
    assert_eq!(start.unix_nanos() / 1_000_000_000, 1_795_262_401);
    assert_eq!(timeline.breaks().len(), 0);
    assert_eq!((opened.origin.inputs.len(), opened.origin.inputs[0].last_line), (1, 6));
    assert_eq!(opened.origin.inputs[0].what, "sar (paging), 2 samples, 10 min apart");
    assert_eq!(opened.facts.cpus, Some(8));
    assert_eq!(opened.facts.kernel_release(), Some("5.10.0-8-amd64"));
    assert_eq!(opened.origin.lines_skipped, 0);
}

#[test]
fn times_and_numbers_are_read_in_any_locale() {
    for (headings, first, second, average) in [
        ("12:00:01 AM", "12:10:01 AM 100.00", "12:20:01 AM 300.00", "Average: 200.00"),
        ("12:00:01AM", "12:10:01AM 100.00", "12:20:01AM 300.00", "Average: 200.00"),
        ("00:00:01", "00:10:01 100,00", "00:20:01 300,00", "Durchschnitt: 200,00"),
        ("00:00:01", "00:10:01 100,00", "00:20:01 300,00", "Moyenne : 200,00"),
        ("00時00分01秒", "00時10分01秒 100.00", "00時20分01秒 300.00", "平均値: 200.00"),
        (
            "上午12時00分01秒",
            "上午12時10分01秒 100.00",
            "上午12時20分01秒 300.00",
            "平均值: 200.00",
        ),
        ("23:55:01", "00:05:01 100.00", "00:15:01 300.00", "Average: 200.00"),
    ] {
        let text = format!(
            "{headings} pgpgin/s pgpgout/s fault/s\n{first} 1 1\n{second} 1 1\n{average} 1 1\n"
        );
        let opened = paste(&text);
        assert_eq!(rates(&opened, PGPGIN), [102_400.0, 307_200.0], "{text}");
        assert_eq!(opened.timeline.duration(), Span::from_mins(20), "{text}");
        assert_eq!(opened.origin.inputs[0].last_line, 4, "{text}");
    }
}

#[test]
fn headings_without_a_time_are_read() {
    let text = "       time pgpgin/s pgpgout/s fault/s majflt/s\n12:10:05AM   207.55   2522.76 5109.80     0.01\n12:20:07AM   303.83    274.64 4446.52     0.00\n12:30:05AM    53.85    251.81 4183.98     0.00\n";
    let opened = paste(text);
    // The first interval is taken as a median one.
    assert_eq!(opened.timeline.len(), 4);
    let found = rates(&opened, PGPGIN);
    for (found, printed) in found.iter().zip([207.55, 303.83, 53.85]) {
        assert!((found / 1024.0 - printed).abs() < 0.01, "{found}");
    }
    let faults = opened.timeline.rate(PGMAJFAULT).unwrap();
    assert_eq!(faults.values().iter().flatten().count(), 3);
    assert!(opened.timeline.wall_at(Span::ZERO).is_none(), "the day is unknown");
}

#[test]
fn tables_over_the_same_times_are_one_series() {
    let text = "\
$ sar -r -S -B
Linux 3.10.0 (db)  11/21/26  _x86_64_  (4 CPU)

12:00:01 kbmemfree kbmemused %memused kbbuffers kbcached kbcommit %commit
12:10:01 2000000 6000000 75.00 100000 3000000 9000000 112.5
12:20:01 1000000 7000000 87.50 100000 3500000 9500000 118.8
Average: 1500000 6500000 81.25 100000 3250000 9250000 115.6

12:00:01 kbswpfree kbswpused %swpused kbswpcad %swpcad
12:10:01 900 100 10.00 5 5.00
12:20:01 800 200 20.00 5 5.00

$ sar -B
Linux 3.10.0 (db)  11/21/26  _x86_64_  (4 CPU)

12:00:01 pgpgin/s pgpgout/s fault/s majflt/s
12:10:01 100.00 1 1000.00 0
12:20:01 300.00 1 2000.00 0
";
    let opened = paste(text);
    let timeline = &opened.timeline;
    assert_eq!((timeline.len(), opened.origin.inputs.len()), (3, 1));
    assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(1_000_000)));
    assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(8_000_000)));
    assert_eq!(timeline.last(COMMITTED_AS), Some(Bytes::from_kib(9_500_000)));
    assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_kib(1_000)));
    assert_eq!(rates(&opened, PGPGIN), [102_400.0, 307_200.0]);
    assert_eq!(opened.origin.inputs[0].not_understood, 0);
}

#[test]
fn old_tables_have_swap_next_to_memory() {
    let text = "12:00:01 AM kbmemfree kbmemused %memused kbmemshrd kbbuffers kbcached kbswpfree kbswpused %swpused\n12:10:01 AM 250000 750000 75.00 0 1 2 900 100 10.00\n";
    let timeline = paste(text).timeline;
    assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(1_000_000)));
    assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_kib(1_000)));
    assert_eq!(timeline.last(MEM_AVAILABLE), None);
}

#[test]
fn a_restart_resets_counters() {
    let text = "\
Linux 5.10.0 (db)  11/21/2026  _x86_64_  (8 CPU)

12:00:01 pswpin/s pswpout/s
12:10:01 100.00 1.00
12:20:01 200.00 1.00
Average: 150.00 1.00

12:30:00     LINUX RESTART      (8 CPU)

12:40:01 pswpin/s pswpout/s
12:50:01 300.00 1.00
Average: 300.00 1.00
";
    let timeline = paste(text).timeline;
    let swap_ins = timeline.rate(PSWPIN).unwrap();
    let expected = [None, Some(100.0), Some(200.0), None, Some(300.0)];
    assert_eq!(swap_ins.values(), expected);
    assert_eq!(timeline.breaks().len(), 1);
    assert_eq!(timeline.breaks()[0].kind, BreakKind::Reboot);
    assert_eq!(timeline.duration(), Span::from_mins(50));
}

#[test]
fn pressure_is_the_share_of_the_interval() {
    let text = "12:00:01 %smem-10 %smem-60 %smem-300 %smem %fmem-10 %fmem-60 %fmem-300 %fmem\n12:01:01 9.00 9.00 9.00 25.00 0 0 0 1.00\n";
    let timeline = paste(text).timeline;
    let stalled = timeline.rate(PSI_MEMORY_SOME).unwrap();
    assert_eq!(stalled.values(), [None, Some(250_000.0)]);
}

#[test]
fn disks_are_read_by_name_and_single_cpus_are_not() {
    let text = "\
12:00:01 CPU %user %nice %system %iowait %steal %idle
12:01:01 all 1 1 1 1 1 95
12:01:01 0 1 1 1 1 1 95

12:00:01 DEV tps rkB/s wkB/s areq-sz aqu-sz await %util
12:01:01 sda 1 100.00 1 1 1 1 50.00
12:01:01 sdb 1 7.00 1 1 1 1 0.00

12:00:01 IFACE rxpck/s txpck/s
12:01:01 eth0 1.00 1.00
";
    let opened = paste(text);
    let timeline = &opened.timeline;
    let disks: Vec<_> = timeline.entities(Entity::Disk).collect();
    assert_eq!(disks.len(), 2);
    let read = timeline.rate_of(disks[0], DISK_READ_BYTES).unwrap();
    assert_eq!(read.values(), [None, Some(102_400.0)]);
    let busy = timeline.rate_of(disks[0], DISK_IO_TIME).unwrap();
    assert_eq!(busy.values(), [None, Some(500.0)]);
    assert_eq!(opened.origin.inputs[0].not_understood, 0);
}

#[test]
fn prose_between_two_tables_is_skipped() {
    let text = format!(
        "{PAGING}\nand swap:\n\n12:00:01 pswpin/s pswpout/s\n12:10:01 5.00 0\n12:20:01 6.00 0\n"
    );
    let opened = paste(&text);
    assert_eq!((opened.timeline.len(), opened.origin.inputs.len()), (3, 1));
    assert!(opened.timeline.rate(PSWPIN).is_some());
}

#[test]
fn another_host_starts_a_block() {
    let other = PAGING.replace("(db)", "(web)");
    let opened = paste(&format!("{PAGING}{other}"));
    assert_eq!((opened.origin.inputs.len(), opened.timeline.segments().len()), (2, 2));
    let free =
        " total used free shared buff/cache available\nMem: 80429 58906 579 1028 20943 9662\n";
    let opened = paste(&format!("{PAGING}$ free -m\n{free}"));
    let forms: Vec<&str> = opened.origin.inputs.iter().map(|i| i.form).collect();
    assert_eq!(forms, ["sar", "free"]);
}

#[test]
fn pasted_sadf_is_read() {
    let fields = "\
# hostname;interval;timestamp;pgpgin/s;pgpgout/s;fault/s
db;600;2026-11-21 12:10:01 UTC;100.00;1.00;1.00
db;600;2026-11-21 12:20:01 UTC;300.00;1.00;1.00
# hostname;interval;timestamp;DEV;tps;rkB/s
db;600;2026-11-21 12:10:01 UTC;sda;1.00;1.00
";
    let words = "\
db\t600\t2026-11-21 12:10:01 UTC\t-\tpgpgin/s\t100.00
db\t600\t2026-11-21 12:20:01 UTC\t-\tpgpgin/s\t300.00
";
    for (text, lines) in [(fields, 5), (words, 2)] {
        let opened = paste(&format!("my numbers:\n{text}\nplease help\n"));
        assert_eq!(rates(&opened, PGPGIN), [102_400.0, 307_200.0], "{text}");
        assert_eq!(
            opened.origin.inputs[0].last_line - opened.origin.inputs[0].first_line + 1,
            lines
        );
        assert_eq!(opened.origin.lines_skipped, 2);
    }
}

#[test]
fn pidstat_and_prose_are_not_sar() {
    for text in [
        "Linux 5.10.0 (db) 11/21/2026 _x86_64_ (8 CPU)\n\navg-cpu: %user %nice %system %iowait %steal %idle\n 1 1 1 1 1 95\n",
        "I looked at pgpgin/s and pgpgout/s\nand nothing\n",
        "12:00:01 kbmemfree\n",
    ] {
        let inputs = paste(text).origin.inputs;
        assert!(inputs.iter().all(|input| input.form != FORM.name), "{text}");
    }
    let pidstat = "Linux 5.10.0 (db) 11/21/2026 _x86_64_ (8 CPU)\n\n12:00:01 UID PID minflt/s majflt/s VSZ RSS %MEM Command\n12:00:02 0 1 1.00 2.00 3 4 5 init\n";
    let inputs = paste(pidstat).origin.inputs;
    assert_eq!(inputs.iter().map(|input| input.form).collect::<Vec<_>>(), ["pidstat"]);
}

#[test]
fn hostile_lines_do_not_panic() {
    let mut texts = vec![PAGING.to_owned()];
    let lines: Vec<&str> = PAGING.lines().collect();
    for dropped in 0..lines.len() {
        texts.push([&lines[..dropped], &lines[dropped + 1..]].concat().join("\n"));
    }
    for end in 0..PAGING.len() {
        texts.push(PAGING[..end].to_owned());
    }
    for (from, to) in [
        ("100.00", "99999999999999999999"),
        ("100.00", "-100.00"),
        ("100.00", "nan"),
        ("11/21/2026", "99/99/9999"),
        ("11/21/2026", "01/01/0001"),
        ("12:10:01", "99:99:99"),
        ("8 CPU", "99999999999999999999 CPU"),
        ("(db)", "(\u{1b}[31m"),
    ] {
        texts.push(PAGING.replace(from, to));
    }
    for text in texts {
        let opened = paste(&text);
        let track = opened.timeline.rate(PGFAULT);
        for rate in track.iter().flat_map(|t| t.values().iter().flatten()) {
            assert!([1000.0, 2000.0, 1500.0].contains(rate), "{rate} in {text}");
        }
    }
}

#[test]
fn hours_of_seconds_are_read() {
    let mut text = "00:00:00 pgpgin/s pgpgout/s fault/s\n".to_owned();
    for second in 1..10_000 {
        let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
        let _ = writeln!(text, "{h:02}:{m:02}:{s:02} 1.00 2.00 3.00");
    }
    let opened = paste(&text);
    assert_eq!(opened.timeline.len(), 10_000);
}
