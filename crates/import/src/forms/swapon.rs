//! `swapon -s`, `swapon --show` and `/proc/swaps`.

use super::{Block, Form, Reading};

pub(super) const FORM: Form = Form {
    name: "swapon",
    read,
};

fn read(_reading: &mut Reading<'_>) -> Option<Block> {
    None
}
