//! The page cache that a job needs: observed while it runs, or planned before it does.
//!
//! Three nouns: **touches** ([`Touches`]) are pages of files that were read or made dirty, in order; a **model** ([`JobModel`])
//! is what they mean for a cache of any size; a **report** ([`JobReport`]) is the answer. A plan ([`JobPlan`]) and an
//! observation ([`observe()`]) both give touches, so one model answers for both.
//!
//! ```
//! let plan = "[[file]]\nname = 'logs'\nsize = '1G'\n[[step]]\nread = ['logs x2']";
//! let report = job::JobReport::of_plan(&job::JobPlan::read(plan, "twice")?, &[]);
//! let curve = &report.job().curve;
//! assert_eq!(curve.net_bytes_most.to_string(), "2 GiB");
//! assert_eq!((curve.net_bytes_least.to_string(), curve.cliffs.len()), ("1 GiB".to_owned(), 1));
//! # Ok::<(), job::PlanError>(())
//! ```

mod cached;
mod cliffs;
mod curve;
mod harm;
mod model;
mod observe;
mod pages;
mod picture;
mod plan;
mod recorded;
mod screen;
mod stack_distance;
mod streams;
mod touches;
mod two_lists;
mod verify;
mod words;

pub use cached::{CACHED_SCHEMA, CachedGroup, CachedNow, CachedOne, CachedPlace, cached_screen};
pub use cliffs::{CliffKind, JobCliff};
pub use curve::{CurvePoint, JobCurve, JobModel, WriteConditions};
pub use model::{
    JOB_SCHEMA, JobFile, JobLimit, JobReport, JobRow, JobSeen, JobVariant, VariantOrigin,
};
pub use observe::{
    HostMeanwhile, JobEnd, JobIo, JobTarget, LeftCached, Observation, ObserveError, ObserveMethod,
    OtherGroup, OtherReader, SeenStep, TouchSource, TraceError, observe, observe_running,
};
pub use plan::{JobPlan, JobPlanRun, PlanError, PlannedStep};
pub use recorded::{RECORDED_JOB_SCHEMA, RecordedJob, recorded_job_screen};
pub use screen::job_screen;
pub use touches::{FileNumber, TouchKind, TouchedFile, Touches};
pub use verify::{
    JobHint, NoSuchHint, VERIFY_SCHEMA, VerifiedMetric, VerifiedValue, VerifiedWay, VerifyError,
    VerifyPlan, VerifyReport, serve_dont_cache, verify, verify_screen,
};

/// The rate that a text such as `100MB/s` is; `None` where it is none, or nothing.
pub fn disk_rate(text: &str) -> Option<units::BytesPerSecond> {
    let text = text.trim();
    let bytes: units::Bytes = text.strip_suffix("/s").unwrap_or(text).parse().ok()?;
    (bytes > units::Bytes::ZERO).then(|| units::BytesPerSecond::new(units::Quantity::as_f64(bytes)))
}

#[cfg(test)]
mod tests {
    use report::model::schema_of;

    use super::*;

    /// `BLESS=1 cargo test -p memtide-job` writes them anew.
    #[test]
    fn the_published_schemas_are_fresh() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for (name, schema) in [
            ("job", schema_of::<JobReport>()),
            ("job-cached", schema_of::<CachedNow>()),
            ("job-recorded", schema_of::<RecordedJob>()),
            ("job-verify", schema_of::<VerifyReport>()),
        ] {
            let path = docs.join(format!("{name}.schema.json"));
            let schema = schema.unwrap() + "\n";
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(&path, &schema).unwrap();
            }
            let published = std::fs::read_to_string(path).unwrap_or_default();
            let advice = "BLESS=1 cargo test -p memtide-job";
            assert!(published == schema, "docs/{name}.schema.json is stale: {advice}");
        }
    }
}
