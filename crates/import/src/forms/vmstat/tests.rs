use crate::testing::{paste, survives};
use timeline::signals::{
    MEM_ACTIVE, MEM_CACHED, MEM_FREE, MEM_TOTAL, PGPGIN, PSWPIN, PSWPOUT, SWAP_USED, TASKS_BLOCKED,
};
use timeline::{Counter, Signal, Timeline};
use units::{Bytes, Count, Pages, Span, Unit};

const HEAD: &str =
    "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
";

fn rates<U: Unit>(timeline: &Timeline, signal: Signal<Counter<U>>) -> Vec<f64> {
    let track = timeline.rate(signal);
    track.map_or_else(Vec::new, |track| track.values().iter().flatten().copied().collect())
}

#[test]
fn levels_are_current_and_rates_begin_with_the_second_row() {
    let text = format!(
        "$ vmstat 5\n{HEAD} 1  0   4528 349408 123456 654321  999 999 141  6   42   68  0  0 99  1  0
 0  3   4528 349404 123456 654321    8    4   400     0   30   41  1  2 97  0  0\n"
    );
    let opened = paste(&text);
    let timeline = &opened.timeline;
    assert_eq!((timeline.len(), timeline.duration()), (2, Span::from_secs(5)));
    assert_eq!(timeline.at(MEM_FREE, 0), Some(Bytes::from_kib(349_408)));
    assert_eq!(timeline.last(SWAP_USED), Some(Bytes::from_kib(4_528)));
    assert_eq!(timeline.last(TASKS_BLOCKED), Some(Count::new(3)));
    assert_eq!(rates(timeline, PSWPIN), [2.0]);
    assert_eq!(rates(timeline, PSWPOUT), [1.0]);
    assert_eq!(rates(timeline, PGPGIN), [409_600.0]);
    assert_eq!(opened.origin.inputs[0].last_line, 5);
    assert!(opened.problems.is_empty(), "{:?}", opened.problems);
}

#[test]
fn a_single_row_has_levels_only() {
    let timeline = paste(&format!(
        "{HEAD} 1  0      0 349408 123456 654321    9    9   141     6   42   68  0  0 99  1  0\n"
    ))
    .timeline;
    assert_eq!(timeline.last(SWAP_USED), Some(Bytes::ZERO));
    assert_eq!(timeline.last(PSWPIN), None::<Pages>);
}

#[test]
fn an_unknown_interval_is_reported() {
    let row = " 1  0      0 349408 123456 654321    4    0   141     6   42   68  0  0 99  1  0\n";
    let opened = paste(&format!("{HEAD}{row}{row}{row}"));
    assert_eq!(rates(&opened.timeline, PSWPIN), [1.0, 1.0]);
    assert!(opened.problems[0].contains("interval unknown"), "{:?}", opened.problems);
}

#[test]
fn units_are_those_of_the_option() {
    let row = " 1  0      0  23195   100   547    0    0 64652 10940 1711 3708 77 10  9  4  0\n";
    for (unit, bytes) in [("k", 1_000), ("K", 1_024), ("m", 1_000_000), ("M", 1 << 20)] {
        let opened = paste(&format!("$ vmstat -S {unit} 1\n{HEAD}{row}{row}"));
        let free = opened.timeline.last(MEM_FREE);
        assert_eq!(free, Some(Bytes::new(23_195 * bytes)), "{unit}");
        assert_eq!(rates(&opened.timeline, PGPGIN), [64_652.0 * 1024.0], "{unit}");
        // Small swap traffic does not show in MiB/s.
        assert_eq!(rates(&opened.timeline, PSWPIN).is_empty(), bytes > 1_024, "{unit}");
    }
}

#[test]
fn a_stamp_before_or_after_a_row_is_its_time() {
    let row = "1  0      0 349408 123456 654321    4    0   141     6   42   68  0  0 99  1  0";
    let behind = format!("{HEAD} {row} 2026-11-22 00:29:24\n {row} 2026-11-22 00:29:34\n");
    let before = format!(
        "Nov 22 00:29:24 {}Nov 22 00:29:24 {row}\nNov 22 00:29:34 {row}\n",
        HEAD.replace("\n ", "\nNov 22 00:29:24  ")
    );
    let clock = format!("{HEAD}23:59:55 {row}\n00:00:05 {row}\n");
    let seconds = format!("{HEAD}1795305527 {row}\n1795305537 {row}\n");
    for text in [behind, before, clock, seconds] {
        let timeline = paste(&text).timeline;
        assert_eq!((timeline.len(), timeline.duration()), (2, Span::from_secs(10)), "{text}");
        assert_eq!(rates(&timeline, PSWPIN), [1.0], "{text}");
    }
}

#[test]
fn repeated_headings_continue_a_run() {
    let row = " 1  0      0 349408 123456 654321    4    0   141     6   42   68  0  0 99  1  0\n";
    let paged = format!("$ vmstat 1\n{HEAD}{}{HEAD}{}", row.repeat(21), row.repeat(3));
    let opened = paste(&paged);
    assert_eq!((opened.timeline.len(), opened.timeline.segments().len()), (24, 1));
    let runs = format!("$ vmstat 1 3\n{HEAD}{}{HEAD}{}", row.repeat(3), row.repeat(3));
    assert_eq!(paste(&runs).timeline.segments().len(), 2);
}

#[test]
fn rows_are_known_without_their_heading() {
    let row = " 1  0      0 349408 123456 654321    4    0   141     6   42   68  0  0 99  1  0\n";
    let timeline = paste(&format!("$ vmstat 2\n{row}")).timeline;
    assert_eq!(timeline.last(MEM_CACHED), Some(Bytes::from_kib(654_321)));
    let timeline = paste(&format!("{row}{row}")).timeline;
    assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(349_408)));
    assert_eq!(timeline.last(MEM_CACHED), None, "with -a it would be active memory");
    assert!(paste(row).origin.inputs.is_empty());
}

#[test]
fn headings_of_old_versions_are_known() {
    let band = "   procs                      memory    swap          io     system         cpu\n";
    let old = " r  b  w   swpd   free   buff  cache  si  so    bi    bo   in    cs  us  sy  id\n";
    let row = " 1  3  2   4528  19408   1232  25432   0   4   141     6  142    68   7   3  90\n";
    for text in [
        format!("{band}{old}{row}{row}"),
        format!("$ vmstat 1\n{old}{row}{row}"),
        format!("{}{}{}", band, old.replace("id", "wa id"), row.repeat(2).replace("90", "0 90")),
    ] {
        let timeline = paste(&text).timeline;
        assert_eq!(timeline.len(), 2, "{text}");
        assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(19_408)));
        assert_eq!(timeline.last(TASKS_BLOCKED), Some(Count::new(3)));
        assert_eq!(rates(&timeline, PSWPOUT), [1.0], "{text}");
    }
}

#[test]
fn active_memory_has_its_own_columns() {
    let head = HEAD.replace("  buff  cache", " inact active");
    let text = format!(
        "$ vmstat -a\n{head} 4  0      0  23195   1008    547    0    0  2187  4190  345  657 50  6 44  0  0\n"
    );
    let timeline = paste(&text).timeline;
    assert_eq!(timeline.last(MEM_ACTIVE), Some(Bytes::from_kib(547)));
    assert_eq!(timeline.last(MEM_CACHED), None);
}

#[test]
fn shifted_and_truncated_rows_are_rejected() {
    let shifted =
        " 1  0      0 349408 123456 654321    4    0   141     6   42   68  12 0  0 99  1\n";
    let opened = paste(&format!("{HEAD}{}", shifted.replace("12 0", "300 0")));
    assert!(opened.timeline.is_empty());
    let cut = paste(&format!("{HEAD} 1  0   4528 349408 1234\n")).timeline;
    assert_eq!(cut.last(MEM_FREE), Some(Bytes::from_kib(349_408)));
    assert_eq!(cut.last(MEM_CACHED), None);
}

#[test]
fn totals_and_the_series_after_them_are_merged() {
    let text = format!(
        "$ vmstat -s\n      4020152 K total memory\n       452268 K used memory\n      2448760 K free memory\n            7 pages swapped in\n\
         $ vmstat 1\n{HEAD} 1  0      0 2448924 384428 734696    0    0   141     6   42   68  0  0 99  1  0\n \
         0  0      0 2448940 384428 734696    4    0     0     0   40   53  0  0 100  0  0\n"
    );
    let timeline = paste(&text).timeline;
    assert_eq!((timeline.len(), timeline.segments().len()), (2, 1));
    assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(4_020_152)));
    assert_eq!(timeline.last(PSWPIN), Some(Pages::new(8)));
    assert_eq!(rates(&timeline, PSWPIN), [1.0]);
    let pairs = paste("total_memory 4020152\nused_memory 452268\nfree_memory 2448760\n").timeline;
    assert_eq!(pairs.last(MEM_FREE), Some(Bytes::from_kib(2_448_760)));
    assert!(paste("used_memory 452268\n").origin.inputs.is_empty());
}

#[test]
fn tables_of_disks_are_skipped() {
    let text = "disk- ------------reads------------ ------------writes----------- -----IO------
       total merged sectors      ms  total merged sectors      ms    cur    sec
loop0      0      0       0       0      0      0       0       0      0      0\n";
    let opened = paste(text);
    assert_eq!(opened.origin.inputs[0].last_line, 3);
    assert!(opened.timeline.is_empty());
}

#[test]
fn damaged_text_does_not_panic() {
    let rows = " 1  0   4528 349408 123456 654321  999 999 141  6   42   68  0  0 99  1  0 2026-11-22 00:29:24\n".repeat(2);
    survives(&format!("$ vmstat -t -S M 5\n{HEAD}{rows}"));
    survives(
        "$ vmstat -s\n 4020152 K total memory\n 452268 K used memory\n 7 pages swapped in\n 9 boot time\n",
    );
    survives("disk- ------------reads------------\n       total merged\nloop0      0      0\n");
}

#[test]
fn a_different_cache_does_not_start_a_sample() {
    let text = format!(
        "$ free -m\n total used free shared buff/cache available\nMem: 16022 804 14000 0 1218 14500\n\
         $ grep -E . /proc/meminfo\nMemTotal: 16406528 kB\nMemFree: 14336000 kB\nCached: 204800 kB\n\
         $ vmstat\n{HEAD} 1  0      0 14336000 384428 734696    0    0   141     6   42   68  0  0 99  1  0\n"
    );
    let timeline = paste(&text).timeline;
    assert_eq!(timeline.len(), 1);
    assert_eq!(timeline.last(MEM_CACHED), Some(Bytes::from_kib(204_800)));
}

#[test]
fn a_date_is_the_time_of_the_next_command() {
    let snapshot = |time: &str| {
        format!(
            "$ date\n{time}\n$ vmstat\n{HEAD} 1  0      0 349408 123456 654321    9    9   141     6   42   68  0  0 99  1  0\n"
        )
    };
    let text = snapshot("Sat Nov 21 23:58:47 UTC 2026") + &snapshot("Sat Nov 21 23:59:47 UTC 2026");
    let timeline = paste(&text).timeline;
    assert_eq!((timeline.len(), timeline.duration()), (2, Span::from_secs(60)));
}

#[test]
fn a_reversed_order_and_repeated_times_are_one_series() {
    let head = " r b swpd free buff cache si so bi bo in cs us sy id wa st UTC\n";
    let row = |second: u32| {
        format!(
            "2 4 2000000 60000 1000 80000 9000 8000 12000 9000 4100 9000 10 15 10 65 0 2026-11-21 10:00:0{second}\n"
        )
    };
    for seconds in [[0, 0, 1, 1, 2, 2], [2, 2, 1, 1, 0, 0], [2, 1, 1, 1, 1, 0]] {
        let rows: String = seconds.into_iter().map(row).collect();
        let timeline = crate::testing::paste(&format!("$ vmstat -t 1\n{head}{rows}")).timeline;
        assert_eq!((timeline.len(), timeline.segments().len()), (3, 1));
    }
}

/// As a mail program breaks lines of 72 columns.
#[test]
fn rows_that_a_mail_broke_in_two_are_joined() {
    let text = "> procs -----------memory---------- ---swap-- -----io---- --system--
> ----cpu----
>  r  b   swpd   free   buff  cache   si   so    bi    bo   in    cs us sy id
>  wa
>  9  2   5244  38272 7738248  10400    0    0     3 11444  390    24  0  5
>  75 20
>  5 10   5244  30824 7747680   8684    0    0     0 265672 2582  1917  1 95
>  0  4
>  2 12   5244  30948 7747248   8708    0    0     0 222620 2858   292  0 33
>  0 67
";
    let timeline = paste(text).timeline;
    assert_eq!(timeline.len(), 3);
    assert_eq!(timeline.last(TASKS_BLOCKED), Some(Count::new(12)));
    assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(30_948)));
    let waited = timeline.rate(timeline::signals::CPU_IOWAIT).unwrap();
    assert_eq!(waited.last().map(|rate| rate.get()), Some(67.0));
}

/// PCP 6.0.3 on a host that swaps.
#[test]
fn pmrep_prints_pages_in_the_columns_of_swap() {
    let text = "\
   r   b    swpd     free    buff   cache    si    so     bi     bo    in     cs  us  sy  id  wa  st
   3   0  194032    55368     580   44700   N/A   N/A    N/A    N/A   N/A    N/A N/A N/A N/A N/A N/A
   3   1  176112    38752     576   44520  4824   891  19302   3564  1182    665   3  22  22   5   0
   3   0  173756    37380     584   43684  2035  1565   8234   6263   603    353   1  32   4   3   0
   3   0  174780    40912     136   39900  3223  3421  12895  13684  1102   1230   3  29  31  11   0
";
    let opened = paste(text);
    let timeline = &opened.timeline;
    assert_eq!(timeline.len(), 4);
    assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(40_912)));
    assert_eq!(timeline.last(PSWPIN), Some(Pages::new(4_824 + 2_035 + 3_223)));
    assert!(opened.origin.inputs[0].what.contains("pmrep"));
    survives(text);
}
