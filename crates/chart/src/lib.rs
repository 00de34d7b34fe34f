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
//! for chart in &charts {
//!     println!("{}: {}", chart.id, chart.title);
//! }
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
