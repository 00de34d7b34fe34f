//! What of a recording is not in what was loaded, in words.

use timeline::{Entity, Timeline};
use units::Count;

use crate::segment::Segment;

/// What could not be read or was left out.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) problems: Vec<String>,
    /// Out-of-order samples without a known reason, such as a reboot with a clock that was set back.
    pub(super) unexplained: usize,
    /// Samples without a wall clock, where a range of time was requested.
    pub(super) undated: usize,
    /// Minutes that should be read sample by sample but could not.
    pub(super) not_opened: usize,
    /// Segments without some entities, which were dropped before they were written.
    pub(super) lacking_entities: usize,
    /// Parts that found no room in memory.
    pub(super) parts_left_out: usize,
}

impl Losses {
    pub(super) fn new(problems: &[String]) -> Self {
        Self { problems: problems.to_vec(), ..Self::default() }
    }

    /// Reports that one of `stride` reads of a table with this many changes is loaded.
    pub(super) fn thinned(&mut self, entity: Entity, size: usize, stride: usize, by_minute: bool) {
        self.problems.push(format!(
            "{} readings exceed the memory limit ({} changes): one {} in {stride} is shown; a \
             shorter range shows all",
            entity.name(),
            count(size),
            if by_minute { "minute" } else { "reading" },
        ));
    }

    /// Reports that one of `stride` reads of a table is loaded in minutes that are read sample by sample.
    pub(super) fn opened_thinned(&mut self, entity: Entity, stride: usize) {
        self.problems.push(format!(
            "in minutes that are read sample by sample, one reading in {stride} of each {} is shown \
             to limit memory; a shorter range shows all",
            entity.name(),
        ));
    }

    /// Reports what of a file could not be read, and what is left of it.
    pub(super) fn of_file(&mut self, segment: &Segment, file: &str, error: &str, rest: &str) {
        let name = segment.name();
        self.problems.push(format!("{name}/{file}: {error}; {rest}"));
    }

    /// Reports what is wrong with some rows of a table.
    pub(super) fn wrong_rows(&mut self, segment: &Segment, file: &str, wrong: Option<String>) {
        if let Some(wrong) = wrong {
            self.of_file(
                segment,
                file,
                &wrong,
                "their readings are missing, the other rows are read",
            );
        }
    }

    /// Reports that some suspicious minutes are not read sample by sample.
    pub(super) fn unopened(&mut self, minutes: usize) {
        if minutes > 0 {
            self.problems.push(format!(
                "{} minutes that may have problems are read by one sample each to limit memory; \
                 the worst are read in full, and a shorter range shows all",
                count(minutes)
            ));
        }
    }

    /// Reports what the whole result lacks.
    pub(super) fn finish(&mut self, timeline: &Timeline) {
        if self.unexplained > 0 {
            self.problems.push(format!(
                "places where the recording continues with an earlier time, as after a reboot with \
                 a wrong clock: {}; nothing is computed across them",
                self.unexplained
            ));
        }
        if self.undated > 0 {
            self.problems.push(format!(
                "samples without a wall clock, which are in no range of time and are left out: {}",
                self.undated
            ));
        }
        if self.lacking_entities > 0 {
            self.problems.push(format!(
                "segments without some processes, cgroups and other series, which exceeded the \
                 memory limit when they were written: {}",
                self.lacking_entities
            ));
        }
        if self.parts_left_out > 0 {
            self.problems.push(format!(
                "only its first {} samples were read{}; later parts that are left out: {}; a \
                 shorter range shows them",
                count(timeline.len()),
                timeline.why_full(),
                self.parts_left_out
            ));
        }
    }
}

fn count(number: usize) -> Count {
    Count::new(u64::try_from(number).unwrap_or(u64::MAX))
}
