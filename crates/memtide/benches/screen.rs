//! What the screen of a long recording lets through: for each rule in how many of its minutes the trigger could hold, as far
//! as roll-ups tell, and so how many are read sample by sample.
//!
//! `cargo bench -p memtide --bench screen -- DIRECTORY`, a recording that is too long to be read as a whole.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;

use store::{Recording, RollUpScreen, Selection};

fn main() {
    let given = std::env::args().nth(1);
    let Some(directory) = given.filter(|argument| !argument.starts_with('-')) else {
        println!("no recording was named: cargo bench -p memtide --bench screen -- DIRECTORY");
        return;
    };
    let recording = Recording::open(Path::new(&directory)).unwrap();
    let facts = recording.facts();
    let mut minutes = BTreeMap::<&'static str, usize>::new();
    let mut could_hold = |rolled: &timeline::RollUps| {
        let mut any = vec![false; rolled.len()];
        for (rule, could) in diagnose::could_hold_by_rule(rolled, &facts) {
            *minutes.entry(rule).or_default() += could.iter().filter(|could| **could).count();
            let both = any.iter_mut().zip(could);
            both.for_each(|(any, could)| *any |= could);
        }
        any
    };
    let signals = diagnose::screened_signals();
    let screen = RollUpScreen { signals: &signals, could_hold: &mut could_hold };
    let loaded = recording.load_screened(Selection::default(), screen, &mut |_| ());
    let mut most: Vec<_> = minutes.into_iter().collect();
    most.sort_by_key(|(rule, minutes)| (std::cmp::Reverse(*minutes), *rule));
    for (rule, minutes) in most.iter().filter(|(_, minutes)| *minutes > 0) {
        println!("{rule:28} {minutes:6} minutes");
    }
    println!("{:?}, {} samples", loaded.screened, loaded.timeline.len());
    for problem in loaded.problems {
        println!("{problem}");
    }
}
