//! More cgroups than anybody has: al makes them by the thousand below his slice, and root's containers keep their names.

use std::time::Duration;

use crate::asked::{
    is_kept, kept_names, memtide, naming_max, recorder_state, rows, shown, until_kept,
};
use crate::host::{GroupOfRoot, OF_AL, RECORDING, al, id, until};
use crate::names::LISTS;
use crate::score::Score;

/// Until it counts as never.
const NEVER: Duration = Duration::from_secs(300);
/// The host's cgroups are listed every ten seconds or more, within a share of a CPU; under emulation that takes long.
const BESIDE_A_FLOOD_MAX: Duration = Duration::from_secs(120);

pub(crate) fn tried(score: &mut Score) {
    let running = GroupOfRoot::make(&id('1'), "running");
    let took = until_kept("running", NEVER);
    score.note(&format!("before any flood root's container is named after {took:?}"));
    a_thousand(score);
    five_thousand_live(score);
    named_and_gone(score);
    beyond_all_bounds(score);
    drop(running);
}

/// Makes so many cgroups of containers in a directory below al's slice, each with a name in his list.
fn flood(directory: &str, count: u32) {
    al(&format!(
        "mkdir -p {OF_AL}/{directory} {LISTS}; cd {OF_AL}/{directory}
        head -c {} /dev/urandom | od -An -v -tx1 -w32 | tr -d ' ' > /tmp/ids
        sed 's/.*/docker-&.scope/' /tmp/ids | xargs mkdir
        (echo '['; sed 's/.*/{{\"id\":\"&\",\"names\":[\"flood\"]}},/' /tmp/ids; echo '{{\"id\":\"0\",\"names\":[\"x\"]}}]') > {LISTS}/containers.json",
        count * 32
    ));
}

fn end_of_flood(directory: &str) {
    al(&format!("cd {OF_AL}/{directory}; ls -d docker-* | xargs rmdir"));
}

/// Row 7: root's new container after a thousand of al's.
fn a_thousand(score: &mut Score) {
    flood(".", 1000);
    let of_root = GroupOfRoot::make(&id('2'), "after-a-thousand");
    let took = until_kept("after-a-thousand", NEVER);
    let most = naming_max();
    let is_soon = took.is_some_and(|took| took <= most);
    score.check(
        "row 7",
        "root's new container is named after 1,000 of al's as soon as alone",
        is_soon,
        &format!("after {took:?} of {most:?}"),
    );
    drop(of_root);
    end_of_flood(".");
}

/// The bounds of one answer.
fn five_thousand_live(score: &mut Score) {
    flood(".", 5000);
    let table = rows("container", None);
    let is_named = table.iter().any(|row| row.name.contains("running"));
    let all = memtide(&["where", "--by", "container", "--top", "6000"]);
    let is_named = is_named || all.out.contains("running (docker 111111111111)");
    score.check(
        "row 7",
        "`where --by container` names root's among 5,000 of al's",
        is_named,
        &shown(&table),
    );
    let of_root = GroupOfRoot::make(&id('3'), "after-five-thousand");
    let took = until_kept("after-five-thousand", NEVER);
    let is_soon = took.is_some_and(|took| took <= BESIDE_A_FLOOD_MAX);
    score.check(
        "row 7",
        "root's new container is named after 5,000 of al's as soon as alone",
        is_soon,
        &format!("after {took:?} of {BESIDE_A_FLOOD_MAX:?}"),
    );
    drop(of_root);
    end_of_flood(".");
}

/// Containers of al that live for a moment, each with a name, push no name of root out.
fn named_and_gone(score: &mut Score) {
    let of_al = || kept_names().matches("\"name\":\"flood\"").count();
    let mut made = 0;
    let mut grown = of_al();
    for _ in 0..12 {
        flood(".", 600);
        made += 600;
        // Scans are rare after the flood before.
        until(Duration::from_secs(60), || of_al() > grown);
        end_of_flood(".");
        let now = of_al();
        if now == grown {
            break;
        }
        grown = now;
    }
    let table = rows("container", Some(RECORDING));
    let is_named = table.iter().any(|row| row.name.contains("running"));
    let seen = format!(
        "{made} came and went, {grown} names of them are kept; root's is kept: {}; {}",
        is_kept("running"),
        shown(&table)
    );
    score.check("row 7", "short-lived containers of al push out no name of root", is_named, &seen);
}

/// More than the recorder knows at a time.
fn beyond_all_bounds(score: &mut Score) {
    const ALL: u32 = 17_000;
    // Without the memory controller each costs the kernel little.
    for part in 0..ALL / 1000 {
        flood(&format!("bare/{part}"), 1000);
    }
    std::thread::sleep(Duration::from_secs(15));
    let of_root = GroupOfRoot::make(&id('4'), "beyond-bounds");
    let took = until_kept("beyond-bounds", NEVER);
    score.check(
        "row 7",
        "root's new container is named beside 17,000 cgroups of al's",
        took.is_some(),
        &format!("after {took:?}"),
    );
    let table = rows("container", None);
    let is_there = table.iter().any(|row| row.name.contains("beyond-bounds"));
    score.check("row 7", "and `where` names it", is_there, &shown(&table));
    let is_well = until(Duration::from_secs(40), || recorder_state().0).is_some();
    score.check("row 7", "the recorder says that it is well", is_well, &recorder_state().1);
    drop(of_root);
    for part in 0..ALL / 1000 {
        end_of_flood(&format!("bare/{part}"));
    }
}
