//! Charts of a host's memory, and their reduction to the size of a page.
//!
//! Three nouns: a **chart** ([`Chart`]) has a title, a unit and series, and computes its curves from any part of a
//! source; a **level** ([`CurveLevel`]) is the curves of an interval in a fixed number of columns, each with the least, the
//! mean and the largest value of its time; **packed** ([`pack()`]) levels are the bytes that are embedded in the page.
//! Pure: opens no file, has no clock, and draws nothing.
//!
//! ```
//! use diagnose::Evidence;
//! use timeline::{Facts, Timeline};
//!
//! let (timeline, facts) = (Timeline::default(), Facts::default());
//! let charts = chart::charts(&Evidence::new(&timeline, &facts));
//! let first = &charts[0];
//! assert_eq!((first.id.as_str(), first.title.as_str()), ("where", "Where memory went"));
//! // Without samples there is no curve, and the chart says what is missing.
//! assert!(first.series.is_empty() && first.absent.is_some());
//! ```
#![warn(clippy::disallowed_methods)]

mod catalogue;
mod drawing;
mod level;
mod pack;

pub use catalogue::{charts, charts_of_group, comparable_charts};
pub use drawing::{
    Chart, ChartKind, ChartLimit, ChartSeries, ChartSize, ChartUnit, Colour, Curve, Draw,
    LimitValue,
};
pub use level::{ColumnCells, CurveLevel, Drawing, Reducer, scanned, worth_sharpening};
pub use pack::{PackedLevels, pack};
