//! Sizes as people type them.

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Quantity};

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizeError {
    /// No number, or an unknown unit.
    NoSize(String),
    /// No host has more than 16 EiB: it was mistyped.
    TooLarge(String),
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSize(text) => {
                write!(f, "`{text}` is no size; write 500MiB, 2GiB or a number of bytes")
            }
            Self::TooLarge(text) => {
                write!(f, "`{text}` is more than 16 EiB, the most that there can be")
            }
        }
    }
}

impl std::error::Error for SizeError {}

/// `500MiB`, `2GiB`, `1.5G` (all binary), `2GB` (decimal); a plain number is bytes.
impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let wrong = || SizeError::NoSize(text.to_owned());
        let typed = text.trim();
        let digits = typed.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let (number, unit) = typed.split_at(digits.unwrap_or(typed.len()));
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            unit => {
                let (letter, rest) = unit.split_at_checked(1).ok_or_else(wrong)?;
                let base = match rest {
                    "" | "i" | "ib" => 1024_f64,
                    "b" => 1000_f64,
                    _ => return Err(wrong()),
                };
                let power = "kmgtp".find(letter).ok_or_else(wrong)?;
                base.powi(i32::try_from(power + 1).map_err(|_| wrong())?)
            }
        };
        let bytes = number * factor;
        if bytes < 2_f64.powi(64) {
            Ok(Self::from_f64(bytes))
        } else {
            Err(SizeError::TooLarge(text.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_people_write_them() {
        for (text, bytes) in [
            ("2GiB", 2 << 30),
            ("1.5G", 3 << 29),
            ("500 MiB", 500 << 20),
            ("500m", 500 << 20),
            ("2GB", 2_000_000_000),
            ("64k", 64 << 10),
            ("4096", 4096),
        ] {
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)), "{text}");
        }
        for text in ["", "GiB", "2 gallons", "-1G", "1.2.3M", "2é"] {
            assert_eq!(text.parse::<Bytes>(), Err(SizeError::NoSize(text.to_owned())));
        }
        for text in ["99999999999999999999G", "16384PiB", "18446744073709551616"] {
            assert_eq!(text.parse::<Bytes>(), Err(SizeError::TooLarge(text.to_owned())));
        }
    }
}
