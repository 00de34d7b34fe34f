//! `memtide export`: what a source holds, in formats of other programs.

mod parquet;
mod target;

use std::io::ErrorKind;

use ::export::{Capture, Csv, Exported, Exporter, Names, OpenMetrics, Picks};
use anyhow::{Context, bail};
use timeline::Source;
use timeline::{Entity, SignalId, signals};

pub(super) use self::target::OutputTarget;
use crate::cli::{ExportArgs, ExportFormat, ExportTable, MetricNames};
use crate::commands::source;
use crate::exit::Exit;
use crate::output::Output;

/// Thousands of entities, each a series: only with --table.
const MANY: [Entity; 2] = [Entity::Slab, Entity::Process];

pub(crate) fn run(args: &ExportArgs, output: &Output) -> anyhow::Result<Exit> {
    let picks = picks(&args.signals)?;
    let format = format(args)?;
    let path = answers::recording_directory::unless_named(args.source.as_deref())?;
    let open = || {
        source::open_part(&path, args.part.options(), output)
            .inspect(|opened| source::warn(opened, output))
    };
    let Some(format) = format else {
        parquet::write(&open()?, &path, &args.output, output)?;
        return Ok(Exit::Ok);
    };
    let target = OutputTarget::new(&args.output, args.force)?;
    write(&open()?, &*format, &picks, &target, output)
}

/// Writes a source and reports the result.
pub(super) fn write(
    opened: &Source,
    format: &dyn Exporter,
    picks: &Picks,
    target: &OutputTarget,
    output: &Output,
) -> anyhow::Result<Exit> {
    if let Some(thinned) = opened.origin.thinned_to {
        output.warn(&format!(
            "the source is long: one sample every {thinned} is written; \
             --since and --until choose a part with every sample"
        ));
    }
    match target.write(|out| format.export(opened, picks, out)) {
        Ok(exported) => say(&exported, opened, format, target, output),
        // A reader that went away (`| head`) is no error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            bail!("{}: {error}", opened.origin.name)
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot write {target}"));
        }
    }
    Ok(Exit::Ok)
}

fn say(
    exported: &Exported,
    opened: &Source,
    format: &dyn Exporter,
    target: &OutputTarget,
    output: &Output,
) {
    for left_out in &exported.left_out {
        output.warn(&format!("left out: {left_out}"));
    }
    if exported.written == 0 {
        output.warn(&format!(
            "{} has none of that: nothing is written but the header",
            opened.origin.name
        ));
    } else if !target.is_stdout() {
        let (written, unit) = (exported.written, format.unit());
        let plural = if written == 1 { "" } else { "s" };
        output.note(&format!("{target}: {written} {unit}{plural} written"));
    }
}

/// What writes a file; `None` for Parquet, which is several.
fn format(args: &ExportArgs) -> anyhow::Result<Option<Box<dyn Exporter>>> {
    let is_metrics = args.format == ExportFormat::Openmetrics;
    if args.all && !is_metrics {
        bail!("--all is for --format openmetrics; the other formats have all samples");
    }
    let tables: Vec<Entity> = args.tables.iter().map(|table| entity(*table)).collect();
    let is_whole = matches!(args.format, ExportFormat::Capture | ExportFormat::Parquet);
    if is_whole && !(tables.is_empty() && args.signals.is_empty()) {
        bail!(
            "--table and --signal are for --format csv and openmetrics; the other formats hold everything"
        );
    }
    Ok(Some(match args.format {
        ExportFormat::Csv => Box::new(csv(&tables)?),
        ExportFormat::Openmetrics => Box::new(metrics(args, tables)),
        ExportFormat::Capture => Box::new(Capture),
        ExportFormat::Parquet => return Ok(None),
    }))
}

fn csv(tables: &[Entity]) -> anyhow::Result<Csv> {
    let table = match tables {
        [] => Entity::Host,
        [one] => *one,
        _ => bail!("a CSV file holds one table; name one with --table, or write --format parquet"),
    };
    Ok(Csv { table })
}

fn metrics(args: &ExportArgs, tables: Vec<Entity>) -> OpenMetrics {
    let few = Entity::ALL
        .into_iter()
        .filter(|table| !MANY.contains(table));
    OpenMetrics {
        tables: if tables.is_empty() {
            few.collect()
        } else {
            tables
        },
        names: match args.names {
            MetricNames::Memtide => Names::Memtide,
            MetricNames::NodeExporter => Names::NodeExporter,
        },
        all: args.all,
    }
}

/// The signals of these names and prefixes.
fn picks(names: &[String]) -> anyhow::Result<Picks> {
    let mut picked: Vec<SignalId> = Vec::new();
    for name in names {
        let is_it = |signal: &SignalId| match name.strip_suffix('*') {
            Some(start) => signal.def().name.starts_with(start),
            None => signal.def().name == name,
        };
        let before = picked.len();
        picked.extend(
            (0..signals::ALL.len())
                .filter_map(SignalId::from_index)
                .filter(is_it),
        );
        if picked.len() == before {
            bail!("there is no signal `{name}`; `memtide signals` lists them");
        }
    }
    Ok(Picks::only(picked))
}

const fn entity(table: ExportTable) -> Entity {
    match table {
        ExportTable::Host => Entity::Host,
        ExportTable::Node => Entity::Node,
        ExportTable::Zone => Entity::Zone,
        ExportTable::Disk => Entity::Disk,
        ExportTable::SwapArea => Entity::SwapArea,
        ExportTable::Zram => Entity::Zram,
        ExportTable::Slab => Entity::Slab,
        ExportTable::Cgroup => Entity::Cgroup,
        ExportTable::Process => Entity::Process,
        ExportTable::Service => Entity::Service,
    }
}
