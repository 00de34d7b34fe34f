//! Levels as bytes: differences of integers, deflated.

use crate::{Chart, Drawing};

/// The bytes that travel in the page.
pub fn pack(charts: &[Chart], drawing: &Drawing) -> Vec<u8> {
    let _ = (charts, drawing);
    Vec::new()
}
