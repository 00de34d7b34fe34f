//! What the scans of a watch could not read.

use probe::Walk;
use timeline::{Absence, Entity, Problems, Timeline, signals};
use units::Count;

/// What the scans of one kind of entity could not read.
#[derive(Debug)]
pub(super) struct Unread {
    entity: Entity,
    /// The most entities that one scan left out.
    left_out: usize,
    /// The most that did not answer in one scan.
    silent: usize,
    /// Why the last scan had nothing to read.
    absent: Option<Absence>,
    /// Files that this user may not read, by their catalogue names.
    denied: Vec<&'static str>,
}

impl Unread {
    pub(super) fn new(entity: Entity) -> Self {
        Self { entity, left_out: 0, silent: 0, absent: None, denied: Vec::new() }
    }

    pub(super) fn note(&mut self, walk: Walk, problems: &mut Problems) {
        if let Some(malformed) = &walk.malformed {
            problems.note(malformed.to_string());
        }
        self.left_out = self.left_out.max(walk.left_out);
        self.silent = self.silent.max(walk.silent);
        self.absent = walk.absent;
        for file in walk.denied_files {
            if !self.denied.contains(&file) {
                self.denied.push(file);
            }
        }
    }

    /// Adds what could not be read so far to the problems and the absent files.
    pub(super) fn note_to(&self, timeline: &mut Timeline, problems: &mut Problems) {
        if self.left_out > 0 {
            let (what, which) = match self.entity {
                Entity::Cgroup => ("cgroups", "the largest were, eight levels deep"),
                _ => ("processes", "there were too many"),
            };
            problems.note(format!("up to {} {what} at once were not read: {which}", self.left_out));
        }
        if self.silent > 0 {
            problems.note(format!(
                "left out: {}, without an answer within 0.1 s as they wait in execve(2) for a file \
                 system",
                Count::new(self.silent as u64).named("process", "processes")
            ));
        }
        if let Some(absent) = &self.absent {
            let of_entity = signals::ALL.iter().filter(|def| def.entity == self.entity);
            for def in of_entity {
                timeline.absent.insert(def.file, absent.clone());
            }
        }
        for file in &self.denied {
            timeline.absent.insert(file, Absence::PermissionDenied);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scans_left_out_is_reported_once() {
        let mut problems = Problems::default();
        let mut timeline = Timeline::default();
        for (entity, expected) in [
            (Entity::Cgroup, "up to 9 cgroups at once were not read: the largest were"),
            (Entity::Process, "up to 9 processes at once were not read: there were too many"),
        ] {
            let mut unread = Unread::new(entity);
            for left_out in [7, 9, 8] {
                let walk = Walk { left_out, denied_files: vec!["/proc/PID/io"], ..Walk::default() };
                unread.note(walk, &mut problems);
            }
            unread.note_to(&mut timeline, &mut problems);
            let texts = std::mem::take(&mut problems).into_texts();
            assert_eq!(texts.len(), 1, "{texts:?}");
            assert!(texts[0].starts_with(expected), "{texts:?}");
        }
        let denied = timeline.absent.get("/proc/PID/io");
        assert_eq!(denied, Some(&Absence::PermissionDenied));
    }
}
