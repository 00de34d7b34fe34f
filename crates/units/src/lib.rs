//! Units of measure: one type and one [`Display`](std::fmt::Display) for each.
//!
//! Three nouns: a **unit** ([`Bytes`], [`Pages`], [`Count`], [`Micros`], …) is a whole reading as a kernel file gives
//! it; a **quantity** ([`Quantity`]) is anything that can be averaged and printed: a unit, a rate ([`PerSecond`]), a
//! [`Ratio`]; a **limit** ([`Limit`]) is a size that may be absent on purpose.
//!
//! Fields are private and constructors name their unit, so a page count cannot become a byte count by accident:
//!
//! ```
//! use units::{Bytes, PageSize, Pages};
//! let page = PageSize::from_bytes(4096).unwrap();
//! assert_eq!(Pages::new(3).to_bytes(page), Bytes::from_kib(12));
//! assert_eq!(Bytes::from_mib(1536).to_string(), "1.5 GiB");
//! ```
//!
//! Without the size of a page this does not compile:
//!
//! ```compile_fail,E0308
//! let size: units::Bytes = units::Pages::new(3);
//! ```
#![warn(clippy::disallowed_methods)]
// Conversions between floats and integers are deliberate here; each one saturates or is exact below 2^53.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]

mod change;
mod format;
mod json;
mod rate;
mod size;
mod time;
mod typed_size;

pub use change::{Factor, SignedBytes};
pub use format::in_one_unit;
pub use rate::{BytesPerSecond, PerSecond, RatePeriod, Ratio};
pub use size::{Bytes, Count, Limit, PageSize, Pages};
pub use time::{Micros, Millis, Nanos, Span, Ticks, WallClock};
pub use typed_size::SizeError;

/// Something measured that can be averaged, compared and printed: a unit, a rate or a ratio.
pub trait Quantity: Copy + PartialOrd + std::fmt::Display + std::fmt::Debug {
    /// The name of the unit in untyped formats (JSON, CSV): `bytes`, `pages/s`, `ratio`.
    const NAME: &'static str;
    /// The nearest value of this quantity; negative input becomes zero for units that cannot be negative.
    fn from_f64(value: f64) -> Self;
    /// The value as a plain number in [`NAME`](Self::NAME).
    fn as_f64(self) -> f64;
}

/// A whole reading as stored: the value of one field of a kernel file.
pub trait Unit: Quantity {
    /// The name of the unit per second: `bytes/s`.
    const NAME_PER_SECOND: &'static str;
    /// The stored integer.
    fn raw(self) -> u64;
    /// Returns the value of a stored integer.
    fn from_raw(raw: u64) -> Self;
    /// Prints `per_second` of this unit per second: usually the unit's own format with `/s`.
    fn fmt_rate(per_second: f64, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result;
}
