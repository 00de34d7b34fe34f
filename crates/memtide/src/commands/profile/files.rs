//! Profiles that are read, and files that are written.

use std::path::{Path, PathBuf};

use ::profile::{Profile, ProfilePart, ProfileReport, firefox, flame_graph, folded, read_profile};
use units::Span;

use crate::cli::ProfileArgs;
use crate::command_error::{CommandError, ErrorContext, bail};
use crate::output_file::OutputTarget;

/// Reads profiles that are parts of one.
pub(super) fn read(paths: &[PathBuf], lasts: Option<Span>) -> Result<Profile, CommandError> {
    let mut all: Option<Profile> = None;
    for path in paths {
        let is_stdin = path == Path::new("-");
        let file = if is_stdin { Path::new("/dev/stdin") } else { path };
        let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let content = import::read_unpacked(file).with_context(|| format!("cannot read {name}"))?;
        let one = read_profile(&name, &content).context(&name)?;
        match &mut all {
            Some(profile) => profile.join(one),
            None => all = Some(one),
        }
    }
    let mut profile = all.context("no file is named")?;
    let seconds = lasts.map(Span::as_secs_f64);
    profile.origin.seconds = profile.origin.seconds.or(seconds);
    Ok(profile)
}

/// What is written besides the answer.
#[derive(Clone, Copy)]
enum ProfileFile {
    Svg,
    Folded,
    Firefox,
}

/// A file that is written.
pub(super) struct ProfileTarget {
    kind: ProfileFile,
    part: ProfilePart,
    target: OutputTarget,
}

/// The files of a profile, checked before it is taken; of several profiles the second has `-2` in its name.
pub(super) fn targets(args: &ProfileArgs, time: u32) -> Result<Vec<ProfileTarget>, CommandError> {
    args.outputs.iter().map(|path| target(path, time, args.force)).collect()
}

fn target(path: &Path, time: u32, force: bool) -> Result<ProfileTarget, CommandError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
    let unpacked = [".gz", ".zst", ".xz"].iter().find_map(|end| name.strip_suffix(end));
    let kind = match unpacked.unwrap_or(name).rsplit('.').next() {
        Some("svg") => ProfileFile::Svg,
        Some("folded") => ProfileFile::Folded,
        Some("json") => ProfileFile::Firefox,
        _ => bail!("{name}: a profile is written as .svg, .folded or .json.gz"),
    };
    let numbered = if time > 1 {
        path.with_file_name(format!("{stem}-{time}.{ending}"))
    } else {
        path.to_owned()
    };
    let part = if name.contains(".waits.") { ProfilePart::Waits } else { ProfilePart::Cpu };
    Ok(ProfileTarget { kind, part, target: OutputTarget::new(&numbered, force)? })
}

/// Writes the files.
pub(super) fn write(
    targets: &[ProfileTarget],
    profile: &Profile,
    report: &ProfileReport,
) -> Result<(), CommandError> {
    for one in targets {
        let text = match one.kind {
            ProfileFile::Svg => flame_graph(profile, report, one.part),
            ProfileFile::Folded => folded(profile, one.part),
            ProfileFile::Firefox => firefox(profile, one.part)?,
        };
        let written = one.target.write(|out| out.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write {}", one.target))?;
    }
    Ok(())
}
