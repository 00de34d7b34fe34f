//! The head of `top`, and its processes.

use super::{Block, Form, Reading};

pub(super) const FORM: Form = Form { name: "top", read };

fn read(_reading: &mut Reading<'_>) -> Option<Block> {
    None
}
