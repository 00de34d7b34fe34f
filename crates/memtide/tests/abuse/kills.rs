//! Kills of a live recorder, at random moments: of the process, of all that it started, under load, while it seals.

use std::path::Path;

use rustix::process::Signal;
use units::Span;

use crate::bench::{Bench, Dice};
use crate::recorder::{Recorder, Run, boot, judge, wait};
use crate::score::Score;

/// Recordings that are written at the same time.
const WORKERS: u64 = 4;

pub(crate) fn killed_and_started_again(bench: &Bench) -> Score {
    let kills = bench.count(1_000);
    let scores = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| scope.spawn(move || worker(bench, number, kills.div_ceil(WORKERS))))
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    let mut all = Score {
        done: format!("{} kills of {WORKERS} recorders", WORKERS * kills.div_ceil(WORKERS)),
        ..Score::default()
    };
    scores.into_iter().for_each(|score| all.add(score));
    all
}

fn worker(bench: &Bench, number: u64, kills: u64) -> Score {
    let mut score = Score::default();
    let directory = bench.path(&format!("killed-{number}"));
    let dice = bench.dice(number);
    let mut runs = Vec::new();
    // One in two writes each second, so that there is more to compare.
    let options: &[&str] = if number.is_multiple_of(2) { &[] } else { &["--sync", "1s"] };
    for _ in 0..kills {
        let mut recorder = Recorder::start(bench, &directory, options);
        let from = live(&mut recorder, &directory, &dice);
        let until = boot();
        recorder.kill(dice.one_in(2), &mut score);
        runs.extend(from.map(|from| Run { from, until }));
    }
    let last = Recorder::start(bench, &directory, &[]);
    wait(3_000);
    last.end(&mut score);
    judge(bench, &directory, &runs, &mut score);
    score
}

/// Lets a recorder live for a while: mostly briefly, sometimes beyond what may be lost; some are asked to seal, some are
/// stopped for a moment. Returns since when it took samples, where it lived longer than what may be lost.
fn live(recorder: &mut Recorder, directory: &Path, dice: &Dice) -> Option<Span> {
    match dice.below(20) {
        0 => {
            let from = recorder.until_it_samples(directory);
            wait(8_000 + dice.below(3_000));
            return Some(from);
        }
        1..=6 => {
            wait(200 + dice.below(900));
            recorder.signal(Signal::HUP);
            wait(dice.below(150));
        }
        7..=9 => {
            wait(dice.below(500));
            recorder.signal(Signal::STOP);
            wait(dice.below(200));
            recorder.signal(Signal::CONT);
            wait(dice.below(100));
        }
        _ => wait(dice.below(2_500)),
    }
    None
}
