//! The page cache that a job needs: observed while it runs, or planned before it does.
mod cliffs;
mod curve;
mod model;
mod observe;
mod pages;
mod picture;
mod plan;
mod screen;
mod stack_distance;
mod streams;
mod touches;
mod two_lists;
mod words;

pub use cliffs::{CliffKind, JobCliff};
pub use curve::{CurvePoint, JobCurve, JobModel, WriteConditions};
pub use model::{
    JOB_SCHEMA, JobFile, JobLimit, JobReport, JobRow, JobSeen, JobVariant, VariantOrigin,
};
pub use observe::{
    HostMeanwhile, JobEnd, JobIo, Observation, ObserveError, ObserveMethod, SeenStep, TouchSource,
    TraceError, observe,
};
pub use plan::{JobPlan, JobPlanRun, PlanError, PlannedStep};
pub use screen::job_screen;
pub use touches::{FileNumber, TouchKind, TouchedFile, Touches};

/// The rate that a text such as `100MB/s` is; `None` where it is none, or nothing.
pub fn disk_rate(text: &str) -> Option<units::BytesPerSecond> {
    let text = text.trim();
    let bytes: units::Bytes = text.strip_suffix("/s").unwrap_or(text).parse().ok()?;
    (bytes > units::Bytes::ZERO).then(|| units::BytesPerSecond::new(units::Quantity::as_f64(bytes)))
}
