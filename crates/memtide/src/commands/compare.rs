//! `memtide compare`: what changed from one source to another.

use std::path::{Path, PathBuf};

use anyhow::bail;
use diagnose::Diagnosis;
use diagnose::compare::{Compared, Direction};
use diagnose::headroom::Question;
use import::{Opened, Range};
use report::SourceInfo;
use report::model::{CompareReport, ComparedSource};
use report::text::Detail;

use super::export::Target;
use super::report::write;
use super::shown::{Judged, Shown};
use crate::cli::{Compare, Format};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(args: &Compare, output: &Output) -> anyhow::Result<Exit> {
    if [&args.before, &args.after]
        .iter()
        .all(|path| path.as_path() == Path::new("-"))
    {
        bail!("standard input can be one of the two sources, not both");
    }
    let page = match &args.output {
        Some(path) => Some(Target::new(path, args.force)?),
        None => None,
    };
    let part = |since, until| Range {
        since: Option::or(since, args.part.since),
        until: Option::or(until, args.part.until),
    };
    let before = part(args.before_since, args.before_until);
    let after = part(args.after_since, args.after_until);
    let before = Side::open(&args.before, before, output)?;
    let after = Side::open(&args.after, after, output)?;
    let comparison = diagnose::compare::compare(before.compared(), after.compared());
    let report = CompareReport::new(&comparison, before.reported(), after.reported());
    match page {
        Some(target) => {
            write(&drawn(&report, &before, &after, output), &target, output)?;
        }
        None => output.print(&printed(&report, args, output)?)?,
    }
    Ok(match comparison.direction {
        Direction::Better | Direction::Same | Direction::Different => Exit::Ok,
        Direction::Worse => Exit::Warning,
        Direction::Unknown => Exit::Unknown,
    })
}

/// Both sides with their charts, which text and JSON do without.
fn drawn(report: &CompareReport, before: &Side, after: &Side, output: &Output) -> String {
    let question = Question::default();
    let [before, after] = [before, after].map(|side| Shown::new(side.judged(), &question, output));
    let screen = output.screen();
    report::html::compare(
        report,
        &before.page(None, &screen),
        &after.page(None, &screen),
    )
}

fn printed(report: &CompareReport, args: &Compare, output: &Output) -> anyhow::Result<String> {
    Ok(match args.answer.get() {
        Format::Json => report::json(report)? + "\n",
        Format::Text => {
            let mut screen = output.screen();
            if args.all {
                screen.detail = Detail::All;
            }
            report::text::compare(report, &screen)
        }
    })
}

/// A source and what is wrong in it.
struct Side {
    path: PathBuf,
    range: Range,
    opened: Opened,
    diagnosis: Diagnosis,
    info: SourceInfo,
}

impl Side {
    fn open(path: &Path, range: Range, output: &Output) -> anyhow::Result<Self> {
        let opened = source::open_range(path, range, output)?;
        source::warn(&opened, output);
        Ok(Self {
            path: path.to_owned(),
            range,
            diagnosis: source::diagnosis(&opened),
            info: source::info(&opened),
            opened,
        })
    }

    fn compared(&self) -> Compared<'_> {
        Compared {
            timeline: &self.opened.timeline,
            facts: &self.opened.facts,
            diagnosis: &self.diagnosis,
        }
    }

    fn judged(&self) -> Judged<'_> {
        Judged {
            path: &self.path,
            range: self.range,
            opened: &self.opened,
            diagnosis: &self.diagnosis,
            info: &self.info,
        }
    }

    fn reported(&self) -> ComparedSource<'_> {
        ComparedSource {
            compared: self.compared(),
            info: &self.info,
        }
    }
}
