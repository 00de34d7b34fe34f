//! Kernel logs: reports of OOM kills and of failed allocations, behind any prefix of `dmesg`, the journal, syslog or containers.

use super::{Block, Form, Reading};

pub(super) const FORM: Form = Form {
    name: "kernel log",
    read,
};

fn read(_reading: &mut Reading<'_>) -> Option<Block> {
    None
}
