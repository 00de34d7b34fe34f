//! What an answer rests on, as numbers. How it was found has words too: rules show it as evidence.

use std::fmt;

use units::{Bytes, Ratio, SignedBytes, Span};

/// How a class was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowthMethod {
    /// Whether the live bytes were judged, else the total.
    pub is_of_live: bool,
    /// What fits best.
    pub fit: GrowthFit,
    /// The Mann-Kendall test's deviations from no trend.
    pub z: f64,
    /// The share of the variance that the slope explains.
    pub slope_r_squared: f64,
    /// The slope of the second half divided by that of the first; `None` where there is no trend.
    pub slope_ratio: Option<f64>,
}

/// What fits a series best.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GrowthFit {
    /// So few readings that nothing was fitted.
    None {
        /// Number of readings.
        readings: usize,
    },
    /// Sharp falls; its bottoms were judged.
    Sawtooth {
        /// Number of falls.
        falls: usize,
    },
    /// Smooth ups and downs.
    Season {
        /// Number of cycles.
        cycles: f64,
        /// The share of the variance that they explain.
        r_squared: f64,
    },
    /// This many levels.
    Levels(usize),
    Curve {
        kind: CurveKind,
        /// The share of the variance that it explains.
        r_squared: f64,
        /// The share that a line explains.
        line_r_squared: f64,
    },
}

/// A curve that is fitted.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurveKind {
    Line,
    /// A curve that levels off.
    LevelsOff,
    Logarithm,
}

impl fmt::Display for GrowthMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_of_live, fit, z, slope_r_squared, slope_ratio } = self;
        match fit {
            GrowthFit::None { readings } => write!(f, "{readings} readings: ")?,
            fit => write!(f, "{}: {fit}; ", if *is_of_live { "live bytes" } else { "total" })?,
        }
        write!(f, "Mann-Kendall z {z:.1}, slope R² {slope_r_squared:.2}")?;
        match slope_ratio {
            Some(ratio) => write!(f, "; slope of the second half to the first {ratio:.2}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for GrowthFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None { .. } => f.write_str("nothing"),
            Self::Sawtooth { falls } => {
                write!(f, "a sawtooth of {falls} falls, judged at its bottoms")
            }
            Self::Season { cycles, r_squared } => {
                write!(f, "{cycles:.1} cycles (R² {r_squared:.2})")
            }
            Self::Levels(levels) => write!(f, "{levels} levels"),
            Self::Curve { kind, r_squared, line_r_squared } => {
                let curve = match kind {
                    CurveKind::Line => "a line",
                    CurveKind::LevelsOff => "a curve that levels off",
                    CurveKind::Logarithm => "a logarithm",
                };
                write!(f, "{curve} fits best (R² {r_squared:.2}; a line {line_r_squared:.2})")
            }
        }
    }
}

/// A part of what a class rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GrowthReason {
    /// How the total changed.
    Total(GrowthChange),
    /// How the live bytes changed.
    Live(GrowthChange),
    /// Free memory in the allocator, as shares of the total.
    Free {
        /// All of it.
        free: Ratio,
        /// The part that peaks of the live bytes do not explain.
        beyond_peaks: Ratio,
    },
    /// Live and free bytes are unknown.
    TotalOnly,
    /// The kernel killed in it this often; one part was judged.
    Killed(usize),
    /// The sum of several processes rises unevenly, and none of them grows.
    NoProcessGrows,
    /// The process restarted this often; one part was judged.
    Restarts(usize),
    /// It rose for a while and gave that back, the largest time: what is level over all did grow.
    RoseAndFell(GrowthAndFall),
}

/// A rise that was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrowthAndFall {
    /// At the beginning of the rise.
    pub from: Bytes,
    /// At its end.
    pub to: Bytes,
    /// How long it took.
    pub took: Span,
    /// How long before the last sample it ended.
    pub ago: Span,
}

/// How a size changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrowthChange {
    /// At the beginning.
    pub from: Bytes,
    /// At the end.
    pub to: Bytes,
    /// After the first 15 %, by its trend.
    pub late: SignedBytes,
}
