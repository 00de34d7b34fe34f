//! `vmstat`: one look or a series, wide, with times, in any unit; and its totals (`-s`).

use super::{Block, Form, Reading};

pub(super) const FORM: Form = Form {
    name: "vmstat",
    read,
};

fn read(_reading: &mut Reading<'_>) -> Option<Block> {
    None
}
