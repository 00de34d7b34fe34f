//! `numastat`, `numastat -m`, `numastat -p`.

use super::{Block, Form, Reading};

pub(super) const FORM: Form = Form {
    name: "numastat",
    read,
};

fn read(_reading: &mut Reading<'_>) -> Option<Block> {
    None
}
