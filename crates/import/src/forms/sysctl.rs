//! Lines of `sysctl`: `vm.swappiness = 60`.

use super::{Block, Form, Reading};

pub(super) const FORM: Form = Form {
    name: "sysctl",
    read,
};

fn read(_reading: &mut Reading<'_>) -> Option<Block> {
    None
}
