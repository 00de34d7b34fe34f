//! The answer of a profile is printed and written, and its exit code.

use ::profile::{Profile, ProfileReport, profile_screen};
use probe::Root;
use units::Quantity;

use super::files::{ProfileTarget, write};
use crate::cli::{Format, ProfileArgs};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn give(
    profile: &Profile,
    base: Option<&ProfileReport>,
    targets: &[ProfileTarget],
    args: &ProfileArgs,
    output: &Output,
) -> Result<Exit, CommandError> {
    let mut report = ProfileReport::of(profile);
    if args.from.is_empty() && args.recording.is_none() {
        answers::name_cgroups(&Root::default(), &mut report);
    }
    if let Some(base) = base {
        report.compare_with(base);
    }
    write(targets, profile, &report)?;
    let mut screen = output.screen();
    screen.top = args.top;
    let text = match args.format.get() {
        Format::Text => profile_screen(&report, &screen, args.min.as_f64()),
        Format::Json => serde_json::to_string_pretty(&report)? + "\n",
    };
    output.print(&text)?;
    let has_little = report.cpu.is_none() && args.from.is_empty() && args.recording.is_none();
    Ok(match report.hot.as_slice() {
        [] if has_little || report.is_nameless() => Exit::Unknown,
        [] => Exit::Ok,
        _ => Exit::Warning,
    })
}
