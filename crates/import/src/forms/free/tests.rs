use crate::testing::{paste, survives};
use timeline::signals::{
    MEM_AVAILABLE, MEM_CACHED, MEM_FREE, MEM_SHMEM, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};
use units::{Bytes, Span};

const ARTICLE: &str = "\
              total        used        free      shared  buff/cache   available
Mem:          80429       58906         579       1,028       20943        9662
Swap:         20480        1402       19078
";

#[test]
fn sizes_are_in_the_unit_of_the_option() {
    for (command, unit) in [("free -m", "MiB"), ("", "MiB, by the size")] {
        let opened = paste(&format!("$ {command}\n{ARTICLE}"));
        let timeline = &opened.timeline;
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_mib(80_429)));
        assert_eq!(timeline.last(MEM_SHMEM), Some(Bytes::from_mib(1_028)));
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(9_662)));
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::from_mib(19_078)));
        assert_eq!(opened.origin.inputs[0].unit, unit);
    }
}

#[test]
fn kilo_is_a_thousand() {
    let text = "$ free --kilo\n total used free shared buff/cache available\nMem: 33667661 332746 32226500 517029 1108414 32417837\n";
    assert_eq!(paste(text).timeline.last(MEM_SHMEM), Some(Bytes::new(517_029_000)));
}

#[test]
fn old_columns_are_known() {
    let text = "$ free -m\n total used free shared buffers cached\nMem: 16022 804 15218 0 81 459\n-/+ buffers/cache: 264 15758\nSwap: 2053 0 2053\n";
    let opened = paste(text);
    assert_eq!(opened.timeline.last(MEM_CACHED), Some(Bytes::from_mib(459)));
    assert_eq!(opened.timeline.last(MEM_SHMEM), None, "0 is not known there");
    assert_eq!(opened.timeline.last(SWAP_TOTAL), Some(Bytes::from_mib(2_053)));
    assert!(opened.origin.inputs[0].what.contains("before 3.3.10"));
    assert_eq!(opened.origin.inputs[0].last_line, 5);
}

#[test]
fn a_zero_of_busybox_means_unknown() {
    let text = "$ free\n total used free shared buff/cache available\nMem: 33552 12392 2664 0 18496 0\n-/+ buffers/cache: 12392 21160\nSwap: 0 0 0\n";
    assert_eq!(paste(text).timeline.last(MEM_AVAILABLE), None);
    let procps = "$ free\n total used free shared buff/cache available\nMem: 33552 30392 2664 0 496 0\nSwap: 0 0 0\n";
    assert_eq!(paste(procps).timeline.last(MEM_AVAILABLE), Some(Bytes::ZERO));
}

#[test]
fn little_used_swap_is_not_lost_in_rounding() {
    let text = "$ free -h\n total used free shared buff/cache available\nMem: 15G 3.7G 641M 222M 11G 11G\nSwap: 15G 194M 15G\n";
    assert_eq!(paste(text).timeline.last(SWAP_USED), Some(Bytes::from_mib(194)));
}

#[test]
fn human_sizes_have_a_rounding_error() {
    let text = "$ free -h\n total used free shared buff/cache available\nMem: 31Gi 27Gi 3.6Gi 13Gi 228Mi 6,1Gi\nSwap: 0B 0B 0B\n";
    let timeline = paste(text).timeline;
    assert_eq!(timeline.last(MEM_FREE).map(|b| b.to_string()), Some("3.6 GiB".to_owned()));
    assert_eq!(timeline.last(MEM_AVAILABLE).map(|b| b.to_string()), Some("6.1 GiB".to_owned()));
    assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::ZERO));
    assert!(timeline.rounded_signals().any(|id| id == MEM_FREE.id()));
}

#[test]
fn a_sum_that_nearly_fits_drops_only_the_parts() {
    let head = "        total   used   free   shared   buff/cache   available\n";
    for (row, free, problem) in [
        ("8000 3000 1000 10 4000 4900", Some(1000), None),
        ("8000 3000 1000 10 3760 4600", Some(1000), Some("not quite")),
        ("8000 3000 1000 10 2000 3000", None, Some("shifted")),
        ("8000 3000 9000 10 2000 3000", None, Some("larger")),
    ] {
        let opened = paste(&format!("$ free -m\n{head}Mem: {row}\n"));
        let timeline = &opened.timeline;
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_mib(8000)));
        assert_eq!(timeline.last(MEM_FREE), free.map(Bytes::from_mib), "{row}");
        assert_eq!(timeline.last(MEM_AVAILABLE).is_some(), free.is_some());
        assert_eq!(timeline.last(MEM_CACHED).is_some(), problem.is_none());
        let found = opened.problems.first();
        let is_found = |problem| found.is_some_and(|found| found.contains(problem));
        assert!(problem.map_or(found.is_none(), is_found), "{row} {found:?}");
    }
}

#[test]
fn a_series_with_its_interval_is_a_timeline_and_without_is_not() {
    let series = format!("{ARTICLE}\n{ARTICLE}\n{ARTICLE}");
    let timed = paste(&format!("$ free -m -s 5\n{series}")).timeline;
    assert_eq!((timed.len(), timed.duration()), (3, Span::from_secs(10)));
    let untimed = paste(&format!("$ free -m\n{series}")).timeline;
    assert_eq!((untimed.len(), untimed.segments().len()), (3, 3));
    let dated = paste(&format!(
        "Sat Nov 21 23:58:00 UTC 2026\n{ARTICLE}Sat Nov 21 23:59:00 UTC 2026\n{ARTICLE}"
    ));
    assert_eq!(dated.timeline.duration(), Span::from_secs(60));
}

#[test]
fn a_row_without_a_header_is_recognised_by_its_sums() {
    let opened =
        paste("Mem:          80429       58906         579        1028       20943        9662\n");
    assert_eq!(opened.timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(9_662)));
    assert!(paste("Mem: 7\n").origin.inputs.is_empty());
}

#[test]
fn times_are_read_before_a_table_or_its_rows() {
    let rows: Vec<&str> = ARTICLE.lines().collect();
    let stamped = |time: &str| rows.iter().map(|row| format!("{time} {row}\n")).collect::<String>();
    let own_line = format!("23:59:55\n{ARTICLE}00:00:05\n{ARTICLE}");
    let in_rows = stamped("Nov 21 23:58:47") + &stamped("Nov 21 23:58:57");
    let on_header = format!("2026-11-21 23:58:47 - {ARTICLE}2026-11-21 23:58:57 - {ARTICLE}");
    let grepped = format!("1795305527 {0}\n1795305537 {0}\n", rows[1]);
    for text in [own_line, in_rows, on_header, grepped] {
        let timeline = paste(&text).timeline;
        assert_eq!((timeline.len(), timeline.duration()), (2, Span::from_secs(10)), "{text}");
        assert_eq!(timeline.last(MEM_SHMEM), Some(Bytes::from_mib(1_028)), "{text}");
    }
}

#[test]
fn other_languages_have_the_same_columns() {
    let text = "               gesamt       benutzt     frei      gemns.  Puffer/Cache verfügbar\nSpeicher:16524931072  1656258560 13704818688    12845056  1540685824 14868672512\nAuslager: 4096 1024 3072\n";
    let opened = paste(text);
    assert_eq!(opened.origin.inputs[0].unit, "bytes, by the size");
    assert_eq!(opened.timeline.last(MEM_AVAILABLE), Some(Bytes::new(14_868_672_512)));
    assert_eq!(opened.timeline.last(SWAP_FREE), Some(Bytes::new(3_072)));
}

#[test]
fn implausible_figures_are_not_used() {
    let header = "$ free -m\n total used free shared buff/cache available\n";
    for row in [
        // free > total; no sum fits; shifted by a column.
        "Mem: 16022 804 160218 0 81 459",
        "Mem: 16022 804 9000 12 81 459",
        "Mem: 16022 16022 804 9000 12 81",
    ] {
        let opened = paste(&format!("{header}{row}\n"));
        assert_eq!(opened.timeline.last(MEM_FREE), None, "{row}");
        assert!(opened.problems[0].contains("shifted"), "{:?}", opened.problems);
    }
    let swap = paste(&format!("{header}Mem: 16022 804 14000 0 1218 14500\nSwap: 100 7 900\n"));
    assert_eq!(swap.timeline.last(SWAP_TOTAL), None);
    assert_eq!(swap.timeline.last(MEM_FREE), Some(Bytes::from_mib(14_000)));
}

#[test]
fn a_missing_cell_is_found_by_alignment() {
    let text = "$ free -m
              total        used        free      shared  buff/cache   available
Mem:          80429       58906         579                   20943        9662
";
    let timeline = paste(text).timeline;
    assert_eq!(timeline.last(MEM_SHMEM), None);
    assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_mib(9_662)));
    let squeezed = text.replace("    ", " ").replace("  ", " ");
    let timeline = paste(&squeezed).timeline;
    assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_mib(579)));
    assert_eq!(timeline.last(MEM_CACHED), None);
}

#[test]
fn human_sizes_without_a_suffix_are_gib() {
    let text = "$ free -h\n total used free shared buffers cached\nMem: 30 27 3.6 13 228M 15\n-/+ buffers/cache: 11 19\nSwap: 0 0 0\n";
    let timeline = paste(text).timeline;
    assert_eq!(timeline.last(MEM_SHMEM), Some(Bytes::from_gib(13)));
    assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_gib(30)));
}

#[test]
fn one_line_per_sample_is_read() {
    let text = "$ free -L -s 2\nSwapUse 1024 CachUse 2163928 MemUse 3498460 MemFree 10482072\nSwapUse 1024 CachUse 2163928 MemUse 3498460 MemFree 10482000\n";
    let timeline = paste(text).timeline;
    assert_eq!(timeline.last(MEM_FREE), Some(Bytes::from_kib(10_482_000)));
    assert_eq!(timeline.last(SWAP_USED), Some(Bytes::from_kib(1_024)));
    assert_eq!(timeline.duration(), Span::from_secs(2));
}

#[test]
fn a_table_in_one_line_is_read() {
    let row = "total used free shared buff/cache available Mem: 2038576 670716 327956 14296 \
               1039904 1187160 Swap: 1557568 769096 788472";
    for text in [
        row.to_owned(),
        format!("| Memory | {row} |"),
        format!("$ free {row} $ ps"),
        row.replace("1039904 1187160 Swap", "1039904\n1187160 Swap"),
        row.replace("total used free shared buff/cache available ", ""),
        row.replace(
            "total used free shared buff/cache available Mem",
            "gesamt belegt frei gemeinsam Puffer/Cache verfügbar Speicher",
        ),
    ] {
        let timeline = paste(&text).timeline;
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_kib(1_187_160)), "{text}");
        assert_eq!(timeline.last(SWAP_FREE), Some(Bytes::from_kib(788_472)), "{text}");
        survives(&text);
    }
}

#[test]
fn a_table_with_bars_is_read() {
    for text in [
        "| | total | used | free | shared | buff/cache | available |\n|---|---|---|---|---|---|---|\n| Mem: | 31Gi | 20Gi | 1.6Gi | 328Mi | 9.6Gi | 10Gi |\n| Swap: | 29Gi | 69Mi | 29Gi | | | |\n",
        "|  | total | used | free | shared | buff/cache | available |\n|:--|--:|--:|--:|--:|--:|--:|\n| **Mem** | 31Gi | 20Gi | 1.6Gi | 328Mi | 9.6Gi | 10Gi |\n| **Swap** | 29Gi | 69Mi | 29Gi |\n",
    ] {
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_gib(10)), "{text}");
        assert_eq!(timeline.last(SWAP_USED), Some(Bytes::from_mib(69)), "{text}");
        survives(text);
    }
}

#[test]
fn columns_are_known_by_position_in_any_language() {
    for (heading, mem, swap) in [
        ("total utilisé libre partagé tamp/cache disponible", "Mem:", "Partition d'échange:"),
        ("total usado libre compartido búf/caché disponible", "Mem:", "Swap:"),
        ("total usada livre compart. buff/cache disponível", "Mem.:", "Swap:"),
        ("gesamt benutzt frei gemns. Puffer/Cache verfügbar", "Speicher:", "Auslager:"),
        ("totalt använd ledig delad buff/cache tillgänglig", "Minne:", "Växling:"),
        ("总计 已用 空闲 共享 缓冲/缓存 可用", "内存：", "交换："),
        ("合計 使用 空き 共有 バッファ/キャッシュ 利用可", "メモリ:", "スワップ:"),
    ] {
        let text = format!(
            "{heading}\n{mem} 1,9Gi 214Mi 1,1Gi 3,0Mi 676Mi 1,5Gi\n{swap} 974Mi 0,0Ki 974Mi\n"
        );
        let timeline = paste(&text).timeline;
        assert_eq!(timeline.last(MEM_CACHED), Some(Bytes::from_mib(676)), "{text}");
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_mib(974)), "{text}");
    }
}

#[test]
fn damaged_text_does_not_panic() {
    survives(&format!("$ free -h -s 5\n23:58:47\n{ARTICLE}\n2026-11-21 23:58:57 - {ARTICLE}"));
    survives("free -L\nSwapUse 1024 CachUse 2163928 MemUse 3498460 MemFree 10482072\n");
}

#[test]
fn rows_with_a_blank_line_after_each_are_one_table() {
    let text = "# free -g\n\n              total        used        free      shared  buff/cache   available\n\nMem:             15           0          13           0           1          14\n\nSwap:             1           0           1\n";
    let timeline = paste(text).timeline;
    assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_gib(14)));
    assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_gib(1)));
    survives(text);
}

#[test]
fn a_row_alone_in_whole_gibibytes_is_of_the_version_that_it_fits() {
    let timeline = paste("# free -g\nMem: 15 0 13 0 1 14\n").timeline;
    assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_gib(14)));
}
