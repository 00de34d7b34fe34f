//! Opens what a command was pointed at, with progress and with warnings of what was wrong with it.

use std::path::Path;
use std::sync::LazyLock;

use anyhow::bail;
use diagnose::Diagnosis;
use import::{OpenError, Opened, Range, Screen, SourceKind, Wanted, Watch};
use timeline::SignalId;
use units::Span;

use crate::cli::Around;
use crate::moment;
use crate::output::Output;

/// What is looked at before and after a moment: long enough to see what led to it.
const AROUND: Span = Span::from_mins(5);

/// Watches this host.
pub(crate) fn watch(watch: Watch, output: &Output) -> Opened {
    output.watching("watching this host", watch.lasts, |progress| {
        import::watch(&probe::Root::default(), watch, progress)
    })
}

/// Reads a file or standard input, and says what was wrong with it.
pub(crate) fn open(file: &Path, output: &Output) -> anyhow::Result<Opened> {
    open_part(file, Wanted::default(), output).inspect(|opened| warn(opened, output))
}

/// Says what was wrong with a source, where the answer does not.
pub(crate) fn warn(opened: &Opened, output: &Output) {
    for problem in &opened.problems {
        output.warn(&format!("{}: {problem}", opened.name));
    }
}

/// Reads a part of a file, a recording or standard input. What was wrong with it is for the answer to say, or for
/// [`warn`].
pub(crate) fn open_part(file: &Path, wanted: Wanted, output: &Output) -> anyhow::Result<Opened> {
    const PARTS: u32 = 1000;
    refuse_backwards(&wanted.range)?;
    let result = if file == Path::new("-") {
        import::open_stdin().and_then(|opened| {
            let name = opened.name.clone();
            let part = opened.within(wanted.range);
            part.map_err(|why| OpenError::NotThere { name, why })
        })
    } else {
        let bar = output.progress("reading", u64::from(PARTS));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of 1000
        let result = import::open_part(file, wanted, &mut |share| {
            bar.set_position((share * f64::from(PARTS)) as u64);
        });
        bar.finish_and_clear();
        result
    };
    result.map_err(|error| match (&error, moment::understood(&wanted.range)) {
        (OpenError::NotThere { .. }, Some(range)) => anyhow::Error::new(error).context(range),
        _ => error.into(),
    })
}

/// Which part of a source is meant: what lies around a moment where one is named, else what lies between two.
pub(crate) fn range(meant: &Around) -> anyhow::Result<Range> {
    let between = || meant.part.range();
    let range = meant
        .at
        .map_or_else(between, |at| Range::around(at, AROUND));
    refuse_backwards(&range)?;
    Ok(range)
}

/// # Errors
/// Where a range ends before it begins: it holds nothing, whatever the source has.
fn refuse_backwards(range: &Range) -> anyhow::Result<()> {
    if range.is_backwards() {
        bail!("`--since` is later than `--until`; a time of day is the latest one that is past");
    }
    Ok(())
}

/// Reads what lies in a range of time. What the source lacks of the range is a problem of it, too.
pub(crate) fn open_range(file: &Path, range: Range, output: &Output) -> anyhow::Result<Opened> {
    let wanted = Wanted {
        range,
        screen: Some(screen()),
        ..Wanted::default()
    };
    let mut opened = open_part(file, wanted, output)?;
    let lacks = moment::uncovered(&range, &opened.timeline);
    opened.problems.extend(lacks);
    Ok(opened)
}

/// Which minutes of a long recording are read sample by sample: those in which a rule's trigger could hold.
pub(crate) fn screen() -> Screen {
    static SIGNALS: LazyLock<Vec<SignalId>> = LazyLock::new(diagnose::screened_signals);
    Screen {
        signals: &SIGNALS,
        could_hold: diagnose::could_hold,
    }
}

/// What the rules say of a source.
pub(crate) fn diagnosis(source: &Opened) -> Diagnosis {
    let diagnosis = diagnose::diagnose(&source.timeline, &source.facts);
    match source.is_cut_short {
        true => diagnosis.of_a_beginning(source.timeline.duration()),
        false => diagnosis,
    }
}

/// What the report says of a source.
pub(crate) fn info(source: &Opened) -> report::SourceInfo {
    report::SourceInfo {
        kind: match source.kind {
            SourceKind::Live => report::SourceKind::Live,
            SourceKind::Capture => report::SourceKind::Capture,
            SourceKind::Text => report::SourceKind::Text,
            SourceKind::Bundle => report::SourceKind::Bundle,
            SourceKind::Recording => report::SourceKind::Recording,
        },
        name: source.name.clone(),
        problems: source.problems.clone(),
        inputs: source.inputs.iter().map(input).collect(),
        lines_skipped: source.lines_skipped,
        thinned_to: source.thinned_to,
        cut_at: source.cut_at,
        live_from: None,
    }
}

fn input(input: &import::Input) -> report::Input {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    report::Input {
        form: input.form.to_owned(),
        what: input.what.clone(),
        file: some(&input.file),
        first_line: input.first_line,
        last_line: input.last_line,
        unit: some(input.unit),
        signals: input
            .signals
            .iter()
            .map(|name| (*name).to_owned())
            .collect(),
        not_understood: input.not_understood,
    }
}
