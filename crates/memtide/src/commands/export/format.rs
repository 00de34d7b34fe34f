//! Chooses the exporter for the arguments.

use ::export::{Capture, Csv, Exporter, MetricNaming, MetricsFormat, MetricsText};
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
            "--table and --signal are for --format csv, prometheus and openmetrics; the other formats \
             hold everything"
        );
    }
    Ok(Some(match args.format {
        ExportFormat::Csv => Box::new(csv(&tables)?),
        ExportFormat::Prometheus => Box::new(metrics(args, tables, MetricsFormat::Prometheus)),
        ExportFormat::Openmetrics if args.all => {
            Box::new(metrics(args, tables, MetricsFormat::OpenMetricsOverTime))
        }
        ExportFormat::Openmetrics => Box::new(metrics(args, tables, MetricsFormat::OpenMetrics)),
        ExportFormat::Capture => Box::new(Capture),
        ExportFormat::Parquet => return Ok(None),
    }))
}

fn metrics(args: &ExportArgs, tables: Vec<Entity>, format: MetricsFormat) -> MetricsText {
    MetricsText {
        tables: if tables.is_empty() { MetricsText::default_tables() } else { tables },
        names: match args.names {
            MetricNames::Memtide => MetricNaming::Memtide,
            MetricNames::NodeExporter => MetricNaming::NodeExporter,
        },
        format,
        entities_max: None,
        own: Vec::new(),
    }
}

fn csv(tables: &[Entity]) -> Result<Csv, CommandError> {
    let table = match tables {
        [] => Entity::Host,
        [table] => *table,
        _ => bail!("a CSV file holds one table; name one with --table, or write --format parquet"),
    };
    Ok(Csv { table })
}
