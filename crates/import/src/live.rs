//! This host, live: samples taken at a steady pace for a while.
//!
//! System-wide files are read first and together; control groups and processes, whose files may wait for a busy
//! process's locks, after them. A late sample is recorded at the time at which it was taken.

use probe::{Cgroups, Closeness, HostProbe, Processes, Root, Walk, host_facts};
use timeline::{Absence, Entity, Facts, Origin, Sample, Source, Timeline, signals};
use units::Span;

use crate::live_log::LiveLog;
use crate::pace::{Pace, Progress};
use crate::problems::Problems;

/// How long to watch, how often and how closely to look.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// From the first sample to the last; zero takes one sample.
    pub lasts: Span,
    /// From sample to sample.
    pub every: Span,
    /// How closely the last sample looks at processes; those before it look as by default.
    pub last: Closeness,
    /// How far back the kernel's log is searched for kills and failed allocations, before the first sample.
    pub recent: Span,
}

/// Kills of so long ago have to do with what is seen now.
pub const RECENT: Span = Span::from_mins(15);

/// Slab caches are read with the first sample and each this many after it: 100 µs, and they change slowly.
const SLABINFO_EVERY: u32 = 5;

/// Watches the host below `root`.
pub fn watch(root: &Root, watch: Watch, progress: Progress<'_>) -> Source {
    let mut facts = Facts::default();
    host_facts::read(root, Span::ZERO, &mut facts);
    let mut host = HostProbe::open(root).slabinfo_every(SLABINFO_EVERY);
    let mut cgroups = Cgroups::new(root);
    let mut processes = Processes::new(root);
    let mut timeline = Timeline::default();
    let mut problems = Problems::default();
    let mut sample = Sample::default();
    let mut groups = Walked::of(Entity::Cgroup);
    let mut tasks = Walked::of(Entity::Process);
    let mut log = LiveLog::open(root, watch.recent);
    let pace = Pace::start(watch.every, watch.lasts);
    loop {
        let next = pace.next();
        if next.is_none() {
            processes.closeness = watch.last;
        }
        sample.clear();
        host.sample(&mut sample);
        groups.note(cgroups.sample(&mut sample), &mut problems);
        tasks.note(processes.sample(&mut sample), &mut problems);
        if timeline.push(&sample).is_err() {
            problems.note("a sample was not later than the one before it and was passed over");
        }
        log.look(false);
        let Some(next) = next else { break };
        if pace.wait(next, progress).is_break() {
            break;
        }
    }
    log.finish(&mut timeline, &mut problems);
    for walked in [groups, tasks] {
        walked.finish(&mut timeline, &mut problems);
    }
    problems.note_evicted(&timeline);
    for problem in host.problems() {
        problems.note(problem.to_string());
    }
    timeline.absent.extend(host.absent());
    if !host_facts::user_is_root()
        && let Some(more) = more_as_root(&timeline)
    {
        problems.note(more);
    }
    Source {
        timeline,
        facts,
        origin: Origin::default(),
        problems: problems.into_texts(),
    }
}

/// The files that another user would have read.
fn more_as_root(timeline: &Timeline) -> Option<String> {
    let denied = timeline
        .absent
        .iter()
        .filter_map(|(file, why)| (*why == Absence::PermissionDenied).then_some(*file));
    let denied: Vec<&str> = denied.collect();
    (!denied.is_empty()).then(|| format!("root would also have read {}", denied.join(", ")))
}

/// What the walks over one kind of entity could not read.
struct Walked {
    entity: Entity,
    /// The most that one walk left out.
    left_out: usize,
    /// Why the last walk had nothing to walk.
    absent: Option<Absence>,
    /// Files that this user may not read, by their names in the catalogue.
    denied: Vec<&'static str>,
}

impl Walked {
    fn of(entity: Entity) -> Self {
        Self {
            entity,
            left_out: 0,
            absent: None,
            denied: Vec::new(),
        }
    }

    fn note(&mut self, walk: Walk, problems: &mut Problems) {
        if let Some(malformed) = &walk.malformed {
            problems.note(malformed.to_string());
        }
        self.left_out = self.left_out.max(walk.left_out);
        self.absent = walk.absent;
        for file in walk.denied_files {
            if !self.denied.contains(&file) {
                self.denied.push(file);
            }
        }
    }

    fn finish(self, timeline: &mut Timeline, problems: &mut Problems) {
        if self.left_out > 0 {
            let (what, which) = match self.entity {
                Entity::Cgroup => ("control groups", "the largest were, eight levels deep"),
                _ => ("processes", "there were too many"),
            };
            problems.note(format!(
                "up to {} {what} at once were not read: {which}",
                self.left_out
            ));
        }
        if let Some(absent) = &self.absent {
            let of_entity = signals::ALL.iter().filter(|def| def.entity == self.entity);
            for def in of_entity {
                timeline.absent.insert(def.file, absent.clone());
            }
        }
        for file in self.denied {
            timeline.absent.insert(file, Absence::PermissionDenied);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;

    #[test]
    fn one_sample_is_taken_even_of_no_time() {
        let root = Root::at("/nonexistent");
        let once = Watch {
            lasts: Span::ZERO,
            every: Span::from_secs(1),
            last: Closeness::default(),
            recent: RECENT,
        };
        let timeline = watch(&root, once, &mut |_| ControlFlow::Continue(())).timeline;
        assert_eq!(timeline.len(), 1);
        for def in [signals::CGROUP_CURRENT.def(), signals::PROC_RSS.def()] {
            let absent = timeline.absent.get(def.file);
            assert_eq!(absent, Some(&Absence::NotFound), "{}", def.file);
        }
    }

    #[test]
    fn what_walks_left_out_is_said_once_and_with_the_right_words() {
        let mut problems = Problems::default();
        let mut timeline = Timeline::default();
        for (entity, says) in [
            (
                Entity::Cgroup,
                "up to 9 control groups at once were not read: the largest were",
            ),
            (
                Entity::Process,
                "up to 9 processes at once were not read: there were too many",
            ),
        ] {
            let mut walked = Walked::of(entity);
            for left_out in [7, 9, 8] {
                let walk = Walk {
                    left_out,
                    denied_files: vec!["/proc/PID/io"],
                    ..Walk::default()
                };
                walked.note(walk, &mut problems);
            }
            walked.finish(&mut timeline, &mut problems);
            let texts = std::mem::take(&mut problems).into_texts();
            assert_eq!(texts.len(), 1, "{texts:?}");
            assert!(texts[0].starts_with(says), "{texts:?}");
        }
        let denied = timeline.absent.get("/proc/PID/io");
        assert_eq!(denied, Some(&Absence::PermissionDenied));
        let more = more_as_root(&timeline).unwrap();
        assert_eq!(more, "root would also have read /proc/PID/io");
        assert_eq!(more_as_root(&Timeline::default()), None);
    }

    #[test]
    fn a_watch_that_is_ended_early_keeps_what_it_saw() {
        let long = Watch {
            lasts: Span::from_hours(1),
            every: Span::from_secs(60),
            last: Closeness::default(),
            recent: RECENT,
        };
        let seen = watch(&Root::default(), long, &mut |_| ControlFlow::Break(()));
        assert_eq!(seen.timeline.len(), 1);
    }
}
