//! A plan of a job, read from a file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use ::job::JobPlan;

use crate::cli::JobArgs;
use crate::command_error::{CommandError, ErrorContext};

/// The longest text of a plan.
const PLAN_LEN_MAX: u64 = 16 << 20;

/// Reads a plan; what was typed takes the place of what it has.
pub(super) fn read(path: &Path, args: &JobArgs) -> Result<JobPlan, CommandError> {
    let failed = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(failed)?;
    file.take(PLAN_LEN_MAX).read_to_string(&mut text).with_context(failed)?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let mut plan = JobPlan::read(&text, &name.unwrap_or_default())
        .with_context(|| format!("{} is no plan", path.display()))?;
    plan.disk = args.disk.or(plan.disk);
    Ok(plan)
}
