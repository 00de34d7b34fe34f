//! A week of abuse in an hour: a live recorder is killed, stopped and run out of disk a thousand times, recordings are
//! damaged, clocks are set. A log of truth that another program writes runs beside it. Nothing may be lost beyond five
//! seconds, wrong, or lost without a note; nothing may panic, and no start may be refused.
//!
//! `scripts/abuse.sh` runs all of it; the test suite runs a tenth. Needs root, python3 and a memory cgroup of version 1;
//! skips with a reason where they are missing, except on CI. `MEMTIDE_ABUSE_SEED` repeats a run,
//! `MEMTIDE_ABUSE_ONLY=disks` runs one chapter.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::string_slice)] // helpers fail as the test does, and print the table

mod bench;
mod clocks;
mod damage;
mod disks;
mod kills;
mod load;
mod recorder;
mod score;

use bench::Bench;
use score::Score;

/// A chapter's name, and what is done in it.
type Chapter = (&'static str, fn(&Bench) -> Score);

#[test]
fn nothing_is_lost_wrong_or_silent_whatever_is_done_to_a_recorder() {
    let bench = match Bench::make() {
        Ok(bench) => bench,
        Err(why) => return bench::skip(&why),
    };
    println!("MEMTIDE_ABUSE_SEED={}", bench.seed);
    let chapters: [Chapter; 6] = [
        ("kills", kills::killed_and_started_again),
        ("damage", damage::damaged),
        ("disks", disks::full_and_read_only),
        ("stops", disks::stopped_and_swapped),
        ("load", load::under_load),
        ("clocks", clocks::set),
    ];
    let only = std::env::var("MEMTIDE_ABUSE_ONLY").ok();
    let is_chosen = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let scores: Vec<(&str, Score)> = std::thread::scope(|scope| {
        let chosen = chapters.iter().filter(|(name, _)| is_chosen(name));
        let running: Vec<_> =
            chosen.map(|(name, chapter)| (*name, scope.spawn(|| chapter(&bench)))).collect();
        let ended = running.into_iter();
        ended.map(|(name, chapter)| (name, chapter.join().unwrap())).collect()
    });
    assert!(!scores.is_empty(), "no chapter is named {only:?}");
    score::print(&scores);
    let faults = scores.iter().flat_map(|(name, score)| {
        let faults = score.faults().into_iter();
        faults.map(move |fault| format!("{name}: {fault}"))
    });
    assert_eq!(faults.collect::<Vec<_>>(), Vec::<String>::new());
}
