//! `smem -tw`.

use super::{Block, Form, Reading};

pub(super) const FORM: Form = Form { name: "smem", read };

fn read(_reading: &mut Reading<'_>) -> Option<Block> {
    None
}
