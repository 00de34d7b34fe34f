//! A wall clock that is set, and boots that begin at one time: by a clock that the abuse itself makes.

use std::path::Path;

use store::WriterOptions;
use timeline::signals::{MEM_FREE, PSWPIN};
use timeline::{BootId, BreakKind, Facts, Sample, Stamp};
use units::{Bytes, Pages, Span, WallClock};

use crate::bench::{Bench, Dice};
use crate::recorder::{load, writer};
use crate::score::Score;

/// By how much a clock is set, in seconds.
const SETS: [i64; 8] = [3, -3, 3_600, -3_600, 86_400, 31_536_000, -31_536_000, -1_795_000_000];

pub(crate) fn set(bench: &Bench) -> Score {
    let dice = bench.dice(300);
    let rounds = bench.count(200);
    let mut score = Score::default();
    let mut steps = 0;
    for number in 0..rounds {
        steps += recorded(bench, number, &dice, &mut score);
    }
    score.done = format!("{steps} steps of the clock, {} boots", 3 * rounds);
    score
}

/// What was written: the times of the samples, and the steps of the clock in seconds.
#[derive(Default)]
struct Written {
    stamps: Vec<Stamp>,
    steps: Vec<i64>,
}

/// Records three boots that begin at one time, each with steps of its clock, with a short retention. Returns the number of
/// steps.
fn recorded(bench: &Bench, round: u64, dice: &Dice, score: &mut Score) -> usize {
    let directory = bench.path(&format!("set-{round}"));
    let mut written = Written::default();
    for boot in 1..=3 {
        record(&directory, BootId::from_bytes([boot; 16]), dice, &mut written);
    }
    judge(&directory, round, &written, score);
    std::fs::remove_dir_all(&directory).unwrap();
    written.steps.len()
}

/// Records 150 seconds of a boot.
fn record(directory: &Path, boot_id: Option<BootId>, dice: &Dice, written: &mut Written) {
    let options = WriterOptions {
        patient: true,
        keep: Span::from_hours(72),
        segment: Span::from_secs(60),
        ..WriterOptions::default()
    };
    let mut facts = Facts::default();
    facts.record(Span::ZERO, timeline::facts::SWAPPINESS, "60");
    let mut writer = writer(directory, &facts, &options);
    let (mut set, begins) = (0, 1 + dice.below(100));
    for second in begins..begins + 150 {
        if second > begins && dice.one_in(40) {
            let by = SETS[dice.index(SETS.len())];
            set += by;
            written.steps.push(by);
        }
        let stamp = Stamp {
            boot: Span::from_secs(second),
            awake: Some(Span::from_secs(second)),
            wall: Some(WallClock::from_unix_nanos(
                (1_795_000_000 + second.cast_signed() + set) * 1_000_000_000,
            )),
            boot_id,
        };
        let mut sample = Sample::default();
        sample.stamp = stamp;
        sample.host.set(MEM_FREE, Bytes::new(second));
        sample.host.set(PSWPIN, Pages::new(second));
        writer.begin(stamp);
        writer.rows(&sample);
        writer.end();
        written.stamps.push(stamp);
    }
    writer.close().unwrap();
}

/// Compares what is read with what was written.
fn judge(directory: &Path, round: u64, written: &Written, score: &mut Score) {
    let timeline = load(directory).unwrap().timeline;
    let found: Vec<Stamp> = (0..timeline.len()).map(|at| timeline.stamp(at).unwrap()).collect();
    if found != written.stamps {
        let (found, all) = (found.len(), written.stamps.len());
        score.lost.push(format!("{found} of {all} samples in round {round}"));
    }
    let size = |span: Span| (span.as_nanos() / 1_000_000_000).cast_signed();
    let steps = timeline.breaks().iter().filter_map(|found| match found.kind {
        BreakKind::ClockForward(by) => Some(size(by)),
        BreakKind::ClockBack(by) => Some(-size(by)),
        _ => None,
    });
    if !steps.eq(written.steps.iter().copied()) {
        let steps = &written.steps;
        score.silent.push(format!("steps of the clock in round {round}: {steps:?}"));
    }
    for (at, stamp) in found.iter().enumerate() {
        let second = stamp.boot.as_nanos() / 1_000_000_000;
        if timeline.at(MEM_FREE, at) != Some(Bytes::new(second)) {
            score.wrong.push(format!("second {second} in round {round}"));
        }
        score.compared += 1;
    }
}
