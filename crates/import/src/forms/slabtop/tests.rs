use crate::testing::{paste, survives};
use timeline::signals::{MEM_SLAB, SLAB_OBJECT_SIZE, SLAB_OBJECTS, SLAB_PAGES};
use timeline::{Entity, Timeline};
use units::{Bytes, Count, Pages};

const HEAD: &str = " Active / Total Objects (% used)    : 1267332 / 1503546 (84.3%)
 Active / Total Slabs (% used)      : 50192 / 50192 (100.0%)
 Active / Total Caches (% used)     : 131 / 235 (55.7%)
 Active / Total Size (% used)       : 357260.45K / 394945.50K (90.5%)
 Minimum / Average / Maximum Object : 0.01K / 0.26K / 50.27K

";
const TABLE: &str = "  OBJS ACTIVE  USE OBJ SIZE  SLABS OBJ/SLAB CACHE SIZE NAME
386988 367417  94%    0.19K  18428       21     73712K dentry
 50037  50037 100%    0.10K   1283       39      5132K my cache
";

fn pages(timeline: &Timeline, cache: &str) -> Option<Pages> {
    timeline.last_of(timeline.entity(Entity::Slab, cache)?, SLAB_PAGES)
}

#[test]
fn caches_and_their_sum_are_read_with_the_head_and_without() {
    let opened = paste(&format!("$ slabtop -o\n{HEAD}{TABLE}\n"));
    let timeline = &opened.timeline;
    assert_eq!(pages(timeline, "dentry"), Some(Pages::new(18_428)));
    assert_eq!(pages(timeline, "my cache"), Some(Pages::new(1_283)));
    let total = Bytes::new(394_945 * 1024 + 512);
    assert_eq!(timeline.last(MEM_SLAB), Some(total));
    assert_eq!(opened.origin.inputs[0].last_line, 10);
    let bare = paste(TABLE).timeline;
    assert_eq!(pages(&bare, "dentry"), Some(Pages::new(18_428)));
    assert_eq!(bare.last(MEM_SLAB), None);
    let european =
        paste(&format!("{}{}", HEAD.replace("5.50K", "5,50K"), TABLE.replace('.', ","))).timeline;
    assert_eq!(european.last(MEM_SLAB), Some(total));
    assert_eq!(pages(&european, "dentry"), Some(Pages::new(18_428)));
}

#[test]
fn totals_as_pairs_are_merged_with_the_table() {
    let text = "$ slabtop totals\nactive_objs 14740085\ntotal_kB 11666603.50\n\n$ slabtop\n\
        objs active use% objsize_kB slabs objs_per_slab cache_kB name\n\
            11418016 10634618 93 0.94 671648 17 10746368 ext4_inode_cache\n";
    let timeline = paste(text).timeline;
    assert_eq!(timeline.len(), 1);
    assert_eq!(timeline.last(MEM_SLAB), Some(Bytes::new(11_666_603 * 1024 + 512)));
    assert_eq!(pages(&timeline, "ext4_inode_cache"), Some(Pages::new(2_686_592)));
}

#[test]
fn vmstat_m_has_objects_and_their_size() {
    let text = "Cache                       Num  Total   Size  Pages\nAcpi-State                  102    104     80     51\nempty 0 0 1984 16\nCache Num Total Size Pages\nbio-184 273 273 192 21\n";
    let opened = paste(text);
    let timeline = &opened.timeline;
    let cache = timeline.entity(Entity::Slab, "Acpi-State").unwrap();
    assert_eq!(timeline.last_of(cache, SLAB_OBJECTS), Some(Count::new(104)));
    assert_eq!(timeline.last_of(cache, SLAB_OBJECT_SIZE), Some(Bytes::new(80)));
    assert_eq!(timeline.entities(Entity::Slab).count(), 2, "empty ones are left out");
    assert_eq!(
        (opened.origin.inputs[0].what.as_str(), opened.origin.inputs.len()),
        ("vmstat -m", 1)
    );
}

#[test]
fn the_largest_caches_are_kept() {
    let row = |i| format!("{i} {i} 100% 1.00K {i} 1 {}K cache-{i}\n", i * 4);
    let rows: String = (1..=300).map(row).collect();
    let heading = TABLE.lines().next().unwrap();
    let timeline = paste(&format!("{heading}\n{rows}")).timeline;
    assert_eq!(timeline.entities(Entity::Slab).count(), 64);
    assert_eq!(pages(&timeline, "cache-300"), Some(Pages::new(300)));
}

#[test]
fn hostile_rows_end_the_table() {
    let heading = TABLE.lines().next().unwrap();
    for row in ["-1 1 1% 1K 1 1 4K a", "1 1 1% 1K 1 1 4K", "x", "1"] {
        let opened = paste(&format!("{heading}\n{row}\n"));
        assert!(opened.timeline.is_empty(), "{row}");
        assert_eq!(opened.origin.inputs[0].last_line, 1, "{row}");
    }
    paste(&format!("{heading}\n{0} {0} 1% {0}K 1 1 {0}K a\n", "99999999999999999999"));
}

#[test]
fn damaged_text_does_not_panic() {
    survives(&format!("{HEAD}{TABLE}active_objs 14740085\ntotal_kB 11666603.50\n"));
    survives("Cache Num Total Size Pages\nAcpi-State 102 104 80 51\n");
}
