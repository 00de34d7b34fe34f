//! `ps aux` and its like: resident memory of processes.

use super::{Block, Form, Reading};

pub(super) const FORM: Form = Form { name: "ps", read };

fn read(_reading: &mut Reading<'_>) -> Option<Block> {
    None
}
