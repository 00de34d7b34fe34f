//! Charts of a host's memory, and how their curves are reduced to what a page can hold.
//!
//! Three nouns: a **chart** ([`Chart`]) is a picture with a title, a unit and series, and knows how to compute its curves
//! from any part of a source; a **level** ([`CurveLevel`]) is the curves of a stretch of time in so many columns, each column
//! with the least, the mean and the largest value of its time; **packed** ([`pack`]) levels are the bytes that travel in
//! the page. Pure: opens no file, has no clock, and draws nothing.
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

pub use catalogue::charts;
pub use drawing::{
    Chart, ChartKind, ChartLimit, ChartSeries, ChartSize, ChartUnit, Colour, Curve, Draw,
    LimitValue,
};
pub use level::{ColumnCells, CurveLevel, Drawing, Reducer, scanned, worth_sharpening};
pub use pack::{PackedLevels, pack};
