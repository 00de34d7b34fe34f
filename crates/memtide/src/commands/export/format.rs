//! Chooses the exporter for the arguments.

use ::export::{Capture, Csv, Exporter, MetricNaming, OpenMetrics};
use timeline::Entity;

use crate::cli::{ExportArgs, ExportFormat, MetricNames};
use crate::command_error::{CommandError, bail};

/// Returns the exporter of a file; `None` for Parquet, which is several files.
///
/// # Errors
/// If options do not fit the format.
pub(super) fn exporter(args: &ExportArgs) -> Result<Option<Box<dyn Exporter>>, CommandError> {
    if args.all && args.format != ExportFormat::Openmetrics {
        bail!("--all is for --format openmetrics; the other formats have all samples");
    }
    let tables: Vec<Entity> = args.tables.iter().map(|table| (*table).into()).collect();
    let has_everything = matches!(args.format, ExportFormat::Capture | ExportFormat::Parquet);
    if has_everything && !(tables.is_empty() && args.signals.is_empty()) {
        bail!(
            "--table and --signal are for --format csv and openmetrics; the other formats hold \
             everything"
        );
    }
    Ok(Some(match args.format {
        ExportFormat::Csv => Box::new(csv(&tables)?),
        ExportFormat::Openmetrics => Box::new(OpenMetrics {
            tables: if tables.is_empty() { OpenMetrics::default_tables() } else { tables },
            names: match args.names {
                MetricNames::Memtide => MetricNaming::Memtide,
                MetricNames::NodeExporter => MetricNaming::NodeExporter,
            },
            all: args.all,
        }),
        ExportFormat::Capture => Box::new(Capture),
        ExportFormat::Parquet => return Ok(None),
    }))
}

fn csv(tables: &[Entity]) -> Result<Csv, CommandError> {
    let table = match tables {
        [] => Entity::Host,
        [table] => *table,
        _ => bail!("a CSV file holds one table; name one with --table, or write --format parquet"),
    };
    Ok(Csv { table })
}
