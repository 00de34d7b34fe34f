//! The loop on the clock: beats, messages, the beginning and the end.

use std::time::Duration;

use sampler::{Control, Message, Settings};
use timeline::signals::{MEM_FREE, RECORDER_CPU, RECORDER_LATE, RECORDER_LOST, RECORDER_RSS};
use timeline::{Absence, Event, EventKind, Stamp};
use units::{Bytes, Count, Span};

use crate::fake::{Fake, always};

#[test]
fn what_the_host_said_is_in_the_recording_and_so_are_the_recorders_own_figures() {
    let fake = Fake::host();
    let (mut recorder, health, _outbox) = fake.recorder(always());
    for free in [1_000, 990, 990, 900] {
        fake.meminfo(free);
        recorder.take();
    }
    recorder.stop().unwrap();
    let timeline = fake.loaded().timeline;
    let free = (0..4).map(|at| timeline.at(MEM_FREE, at).unwrap());
    let expected = [1_000, 990, 990, 900].map(Bytes::from_kib);
    assert_eq!(free.collect::<Vec<_>>(), expected);
    assert_eq!(timeline.last(RECORDER_LOST), Some(Count::ZERO));
    assert!(timeline.at(RECORDER_CPU, 3) > timeline.at(RECORDER_CPU, 0));
    assert!(timeline.last(RECORDER_RSS) > Some(Bytes::from_mib(1)));
    assert!(timeline.at(RECORDER_LATE, 0).is_some());
    let figures = health.figures();
    assert_eq!((figures.samples, figures.lost), (4, 0));
}

#[test]
fn it_samples_on_the_beat_until_told_to_stop_and_says_when_it_began_and_ended() {
    let fake = Fake::host();
    let settings = Settings { every: Span::from_millis(20), ..always() };
    let (recorder, health, outbox) = fake.recorder(settings);
    let control = Control::default();
    let event = Event {
        stamp: Stamp::default(),
        kind: EventKind::OomKill,
        subject: "4242".to_owned(),
        text: "somebody was killed".to_owned(),
        report: "line\nline".to_owned(),
    };
    outbox.try_send(Message::Event(event.clone())).unwrap();
    outbox.try_send(Message::Absent("/dev/kmsg", Absence::PermissionDenied)).unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| recorder.run(&control));
        // Until then it has sealed once.
        control.seal.store(true, std::sync::atomic::Ordering::Relaxed);
        while health.figures().samples < 10 {
            std::thread::sleep(Duration::from_millis(5));
        }
        control.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        running.join().unwrap().unwrap();
    });
    let timeline = fake.loaded().timeline;
    let samples = health.figures().samples;
    assert_eq!(timeline.len() as u64, samples);
    // Where the machine was busy a sample was late, and those missed meanwhile were not made up for: less its lateness, each
    // is on a beat, and beats that are no samples were counted.
    let every_us = settings.every.as_nanos() / 1_000;
    let times_us = timeline.times().iter().map(|time| time.as_nanos() / 1_000);
    let late_us = (0..timeline.len()).map(|at| timeline.at(RECORDER_LATE, at).unwrap().get());
    let begun_us = late_us.clone().next().unwrap();
    let beats: Vec<u64> = times_us
        .zip(late_us)
        .map(|(time, late)| {
            let due = (time + begun_us).saturating_sub(late);
            let beat = (due + every_us / 2) / every_us;
            assert!(due.abs_diff(beat * every_us) < every_us / 10, "{due} µs");
            beat + late / every_us
        })
        .collect();
    assert!(beats.is_sorted_by(|one, next| one < next), "{beats:?}");
    let missed = health.figures().missed;
    assert_eq!(beats.last(), Some(&(samples - 1 + missed)));
    let kinds: Vec<EventKind> = timeline.recorder_events().iter().map(|event| event.kind).collect();
    use EventKind::{OomKill, RecorderStarted, RecorderStopped};
    assert_eq!(kinds, [RecorderStarted, OomKill, RecorderStopped]);
    assert_eq!(timeline.recorder_events()[1], event);
    assert_eq!(timeline.absent["/dev/kmsg"], Absence::PermissionDenied);
    assert!(timeline.absent.contains_key("/proc/pressure/memory"));
    assert!(!control.seal.load(std::sync::atomic::Ordering::Relaxed));
}

#[test]
fn a_sample_that_is_late_says_by_how_much_and_those_missed_are_not_made_up_for() {
    let fake = Fake::host();
    let settings = Settings { every: Span::from_millis(100), ..always() };
    let (mut recorder, health, _outbox) = fake.recorder(settings);
    recorder.take();
    // The second is due after 100 ms, and this host is slow.
    std::thread::sleep(Duration::from_millis(450));
    let control = Control::default();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| recorder.run(&control));
        while health.figures().samples < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        control.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        running.join().unwrap().unwrap();
    });
    let figures = health.figures();
    assert!(figures.missed >= 3, "{}", figures.missed);
    assert!(figures.late_samples >= 1);
    let timeline = fake.loaded().timeline;
    let late = timeline.at(RECORDER_LATE, 1).unwrap().get();
    assert!(late >= 350_000, "{late} µs");
    assert!(figures.worst_late.get() >= late);
}
