//! Lines of `sysctl` (`vm.swappiness = 60`), of its configuration (`vm.swappiness=60`), and of `grep . /proc/sys/vm/*`
//! (`/proc/sys/vm/swappiness:60`).

use timeline::{Fact, Sample, facts};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form {
    name: "sysctl",
    begins: BlockStart {
        commands: &["sysctl"],
        ..BlockStart::with(&["vm.", "vm/", "kernel.", "kernel/", "fs.", "net."])
    },
    read,
};

const FOLDER: &str = "/proc/sys/";

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let is_sysctl = input.command.is_some_and(|command| command.contains("sysctl"));
    // Without the command, the first name must be known: prose is full of assignments.
    let (name, _) = assignment(input.lines.first()?)?;
    if !is_sysctl && fact(&name).is_none() {
        return None;
    }
    let mut block = TextBlock { what: "sysctl".to_owned(), ..TextBlock::default() };
    let mut sample = Sample::default();
    while let Some((name, value)) = input.lines.get(block.lines).and_then(|line| assignment(line)) {
        if let Some(fact) = fact(&name) {
            let read = input.parsers.read(fact.file, value.as_bytes(), &mut sample, input.facts);
            if let Err(error) = read {
                block.problems.push((block.lines, error.to_string()));
            }
        } else if name == "kernel.osrelease" {
            input.facts.note_release(value);
        }
        block.lines += 1;
    }
    Some(block)
}

/// A tunable by its dotted name.
fn fact(name: &str) -> Option<Fact> {
    facts::ALL.iter().find(|fact| fact.name == name && fact.file.starts_with(FOLDER)).copied()
}

/// The dotted name and the value on a line that is an assignment.
fn assignment(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    let (name, value) = match line.strip_prefix(FOLDER) {
        Some(rest) => rest.split_once([':', '=', ' '])?,
        None => line.split_once(['=', ':'])?,
    };
    let (name, value) = (name.trim().replace('/', "."), value.trim());
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    let is_name = name.contains('.') && name.len() <= 100 && name.split('.').all(is_part);
    // Known tunables are numbers; a sentence may begin with their name.
    let is_value = fact(&name).is_none()
        || value.split_whitespace().all(|word| word.parse::<u64>().is_ok()) && !value.is_empty();
    (is_name && is_value).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use crate::testing::{paste, survives};
    use timeline::facts::{MIN_FREE, NUMA_BALANCING, SWAPPINESS};

    #[test]
    fn tunables_are_read_in_any_notation() {
        for text in [
            "$ sysctl vm.swappiness\nvm.swappiness = 60\n",
            "vm.swappiness=60\n",
            "/proc/sys/vm/swappiness:60\n",
            "$ sysctl -a\nabi.vsyscall32 = 1\nkernel.domainname = (none)\nvm.swappiness = 60\n",
            "I set\nvm.swappiness = 60\nand it helped.\n",
        ] {
            assert_eq!(paste(text).facts.number(SWAPPINESS), Some(60), "{text}");
        }
        let facts = paste("$ sysctl -a\nkernel.osrelease = 5.15.0-116-generic\nvm.min_free_kbytes = 67584\nkernel.numa_balancing = 1\n").facts;
        assert_eq!(facts.number(MIN_FREE), Some(67_584));
        assert_eq!(facts.number(NUMA_BALANCING), Some(1));
        assert_eq!(facts.kernel_release(), Some("5.15.0-116-generic"));
    }

    #[test]
    fn lines_that_look_like_tunables_are_ignored() {
        for text in [
            "a.b = 7\n",
            "thp.enabled = always\n",
            "# vm.swappiness = 10\n",
            "vm.swappiness = as low as you dare\n",
            "vm.swappiness = -5\n",
            "kernel.version = #1 SMP\n",
            "set vm.swappiness = 60\n",
        ] {
            let opened = paste(text);
            assert_eq!(opened.facts.iter().count(), 0, "{text}");
            assert!(opened.origin.inputs.is_empty(), "{text}");
        }
    }

    #[test]
    fn any_damage_is_survived() {
        survives(
            "$ sysctl -a\nvm.swappiness = 60\n/proc/sys/vm/swappiness:60\nkernel.osrelease = 5.15\n",
        );
    }
}
