//! A job with and without a remedy.

use ::job::{VerifyPlan, verify, verify_screen};

use crate::cli::{JobArgs, JobFormat};
use crate::command_error::CommandError;
use crate::interrupt;
use crate::output::Output;

/// Runs all ways, and says what differs.
pub(super) fn answer(args: &JobArgs, output: &Output) -> Result<String, CommandError> {
    let plan = VerifyPlan {
        command: args.command.clone(),
        hints: args.hints.clone(),
        blocks: usize::from(args.blocks),
        prepare: args.prepare.clone(),
    };
    let is_interrupted = interrupt::listen_to_any();
    let bar = output.busy("");
    let report = verify(&plan, &is_interrupted, &mut |now| bar.set_message(now.to_owned()));
    bar.finish_and_clear();
    let report = report?;
    Ok(match args.format {
        JobFormat::Text => verify_screen(&report, &output.screen_with(args.all)),
        JobFormat::Json => serde_json::to_string_pretty(&report)? + "\n",
    })
}
