//! `ipcs -m`: segments of shared memory. Their sizes are reserved, not resident, so they are listed and not counted.

use units::Bytes;

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "ipcs", begins: BlockStart::with(&["Shared Memory Segments", "shmid"]), read };

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let is_title = input.lines.first()?.contains("Shared Memory Segments");
    let heading = input.lines.iter().take(2).position(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&"shmid") && words.contains(&"bytes") && words.contains(&"nattch")
    })?;
    if heading > 0 && !is_title {
        return None;
    }
    let names: Vec<&str> = input.lines[heading].split_whitespace().collect();
    let place = |name| names.iter().position(|known| *known == name);
    let (bytes, users) = (place("bytes")?, place("nattch")?);
    let mut lines = heading + 1;
    let (mut all, mut unused) = ((0, Bytes::ZERO), (0, Bytes::ZERO));
    for line in &input.lines[lines..] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let (Some(size), Some(users)) = (number(bytes).map(Bytes::new), number(users)) else {
            break;
        };
        all = (all.0 + 1, all.1 + size);
        if users == 0 {
            unused = (unused.0 + 1, unused.1 + size);
        }
        lines += 1;
    }
    let (count, size) = all;
    let what = match unused {
        (0, _) => format!("ipcs -m: {count} segments of {size}, none without a process"),
        (orphans, of) => {
            format!("ipcs -m: {count} segments of {size}, {orphans} of {of} without a process")
        }
    };
    Some(TextBlock { what, lines, ..TextBlock::default() })
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};

    #[test]
    fn segments_without_a_process_are_counted() {
        let text = "------ Shared Memory Segments --------\nkey        shmid      owner      perms      bytes      nattch     status\n0x00000000 0          root       600        1048576    3          dest\n0x00000000 65538      root       600        8388608    0\n\n";
        let opened = paste(text);
        assert_eq!(
            opened.origin.inputs[0].what,
            "ipcs -m: 2 segments of 9 MiB, 1 of 8 MiB without a process"
        );
        survives(text);
    }
}
