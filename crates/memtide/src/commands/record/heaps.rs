//! `memtide record --read-heaps`: the recorder's child that reads malloc heaps once, at the lowest priority.

use probe::Root;

use super::seal::give_way;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn run(names: &[String], output: &Output) -> Result<Exit, CommandError> {
    give_way();
    let mut printed = Ok(());
    sampler::each_heap(&Root::default(), names, &mut |part| {
        if printed.is_ok() {
            printed = output.print(&part.json_line());
        }
    });
    printed?;
    Ok(Exit::Ok)
}
