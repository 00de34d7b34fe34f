//! Whether a recorder is healthy: it writes its status, stores all samples in time, and its recording is undamaged.

use jiff::Timestamp;
use recorder_status::RecorderStatus;
use report::model::status::{RecorderHealth, RecorderProblem, RecorderState, StatusReport};

/// A status that is older than this is stale: the recorder has missed one.
const STALE_S: f64 = 75.0;
/// Samples may reach the disk this much later than they are due: an engineering choice, above what a busy host takes.
const BEHIND_S: f64 = 10.0;

/// Returns the health of a recorder that runs and has written a status.
pub(super) fn health(report: &StatusReport, now: Timestamp) -> Option<RecorderHealth> {
    let status = report.recorder.as_ref().filter(|_| report.state == RecorderState::Running)?;
    let age_s = |at: Timestamp| now.duration_since(at).as_secs_f64();
    let status_age_s = status.written.map(age_s);
    let newest = report.recording.as_ref().and_then(|recording| recording.to);
    let sample_age_s = newest.map(age_s);
    let is_fresh = status_age_s.is_some_and(|age| age <= STALE_S);
    let is_behind = sample_age_s.is_some_and(|age| age > sample_age_max_s(status));
    let is_damaged =
        report.recording.as_ref().is_some_and(|recording| !recording.problems.is_empty());
    let disk = &status.disk;
    let problems = [
        (!is_fresh, RecorderProblem::Stale),
        (is_behind, RecorderProblem::Behind),
        (disk.problem.is_some(), RecorderProblem::Disk),
        (disk.lost_since.is_some(), RecorderProblem::SamplesLost),
        (disk.parts_dropped > 0, RecorderProblem::PartsDropped),
        (is_damaged, RecorderProblem::Damaged),
    ];
    let problems: Vec<RecorderProblem> =
        problems.into_iter().filter_map(|(has, problem)| has.then_some(problem)).collect();
    Some(RecorderHealth { is_healthy: problems.is_empty(), problems, status_age_s, sample_age_s })
}

/// The age of the newest sample on disk that the recorder's intervals explain.
fn sample_age_max_s(status: &RecorderStatus) -> f64 {
    status.settings.every_s + status.settings.sync_s + BEHIND_S
}

#[cfg(test)]
mod tests {
    use super::*;
    use recorder_status::RecorderSettings;
    use report::model::status::{RecordingStatus, STATUS_SCHEMA};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_240_800 + seconds).unwrap()
    }

    fn report() -> StatusReport {
        let settings = RecorderSettings { every_s: 1.0, sync_s: 5.0, ..Default::default() };
        let recorder = RecorderStatus { written: Some(at(95)), settings, ..Default::default() };
        StatusReport {
            schema: STATUS_SCHEMA,
            directory: "/var/lib/memtide".to_owned(),
            state: RecorderState::Running,
            pid: Some(812),
            user_id: Some(0),
            health: None,
            recorder: Some(recorder),
            recording: Some(RecordingStatus {
                size_bytes: units::Bytes::from_mib(4),
                segments: 2,
                from: Some(at(0)),
                to: Some(at(90)),
                recorded_s: units::Span::from_secs(90),
                free_bytes: None,
                bytes_per_day: None,
                problems: Vec::new(),
            }),
        }
    }

    fn problems(report: &StatusReport, now: Timestamp) -> Vec<RecorderProblem> {
        let health = health(report, now).unwrap();
        assert_eq!(health.is_healthy, health.problems.is_empty());
        health.problems
    }

    #[test]
    fn a_recorder_that_stores_all_in_time_is_healthy() {
        let health = health(&report(), at(100)).unwrap();
        assert!(health.is_healthy);
        assert_eq!((health.status_age_s, health.sample_age_s), (Some(5.0), Some(10.0)));
    }

    #[test]
    fn old_samples_and_an_old_status_are_problems() {
        assert_eq!(problems(&report(), at(106)), []);
        assert_eq!(problems(&report(), at(107)), [RecorderProblem::Behind]);
        assert_eq!(problems(&report(), at(171)), [RecorderProblem::Stale, RecorderProblem::Behind]);
        let mut undated = report();
        undated.recorder.as_mut().unwrap().written = None;
        assert_eq!(problems(&undated, at(100)), [RecorderProblem::Stale]);
    }

    #[test]
    fn a_full_disk_and_damage_are_problems() {
        let mut report = report();
        let disk = &mut report.recorder.as_mut().unwrap().disk;
        disk.problem = Some("the disk is full".to_owned());
        disk.lost_since = Some(at(80));
        disk.parts_dropped = 1;
        report.recording.as_mut().unwrap().problems.push("a segment is damaged".to_owned());
        let expected = [
            RecorderProblem::Disk,
            RecorderProblem::SamplesLost,
            RecorderProblem::PartsDropped,
            RecorderProblem::Damaged,
        ];
        assert_eq!(problems(&report, at(100)), expected);
    }

    #[test]
    fn only_a_running_recorder_with_a_status_has_a_health() {
        let without_status = StatusReport { recorder: None, ..report() };
        assert_eq!(health(&without_status, at(100)), None);
        for state in [RecorderState::Gone, RecorderState::Stopped, RecorderState::Vanished] {
            assert_eq!(health(&StatusReport { state, ..report() }, at(100)), None);
        }
    }
}
