//! Names of kernel addresses: `/proc/kallsyms`.
//!
//! `ffffffff81000000 T _text`, with `[module]` behind functions of modules; in no order. Without CAP_SYSLOG, or with
//! `kernel.kptr_restrict` = 2, all addresses are zero. 122,000 functions take 0.06 s and 8 MiB. Who keeps an address shows where the kernel
//! is, so only names are kept.

use std::io::{BufRead, BufReader, Read};

use crate::kernel_file::Root;
use thiserror::Error;

/// At most so many symbols: four times what a kernel with all modules has.
const SYMBOLS_MAX: usize = 1_000_000;

/// Why addresses have no names.
#[derive(Debug, Error)]
pub enum NoSymbols {
    /// All addresses are zero.
    #[error("kernel symbols are hidden")]
    Hidden,
    /// There is no such file.
    #[error("/proc/kallsyms cannot be read")]
    Unreadable(#[source] std::io::Error),
}

/// Functions of the running kernel.
#[derive(Debug, Clone, Default)]
pub struct Kallsyms {
    /// Sorted by address, with the place of the name in `names`.
    starts: Vec<(u64, u32)>,
    names: String,
}

impl Kallsyms {
    /// Reads those of this host.
    ///
    /// # Errors
    /// If they are hidden or not there.
    pub fn of_this_host(root: &Root) -> Result<Self, NoSymbols> {
        let file =
            std::fs::File::open(root.path("/proc/kallsyms")).map_err(NoSymbols::Unreadable)?;
        Self::read(file)
    }

    /// Reads a text of this form.
    ///
    /// # Errors
    /// If all addresses are zero, or it cannot be read.
    pub fn read(input: impl Read) -> Result<Self, NoSymbols> {
        let mut symbols = Self::default();
        let mut reader = BufReader::with_capacity(1 << 16, input);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(NoSymbols::Unreadable)?;
            if read == 0 || symbols.starts.len() >= SYMBOLS_MAX {
                break;
            }
            symbols.take(&line);
        }
        symbols.starts.sort_unstable();
        if symbols.starts.is_empty() { Err(NoSymbols::Hidden) } else { Ok(symbols) }
    }

    /// Takes a line: code only, with an address.
    fn take(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
        else {
            return;
        };
        if !matches!(kind, "t" | "T" | "w" | "W") {
            return;
        }
        let Some(address) = u64::from_str_radix(address, 16).ok().filter(|address| *address > 0)
        else {
            return;
        };
        if let Ok(at) = u32::try_from(self.names.len()) {
            self.starts.push((address, at));
            self.names.push_str(name);
            self.names.push('\n');
        }
    }

    /// The function that an address is in.
    pub fn name(&self, address: u64) -> Option<&str> {
        let at = self.starts.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        let (_, name) = self.starts.get(at)?;
        self.names.get(*name as usize..)?.split('\n').next()
    }

    /// Where a function begins.
    pub fn address(&self, name: &str) -> Option<u64> {
        let is_it = |(_, at): &&(u64, u32)| {
            self.names.get(*at as usize..).and_then(|rest| rest.split('\n').next()) == Some(name)
        };
        self.starts.iter().find(is_it).map(|(start, _)| *start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &str = "ffffffff81000000 T _text\nffffffff81000100 t do_one\tthing\n\
                        ffffffff81000200 D some_data\nffffffff81000300 W late [ext4]\n";

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let symbols = Kallsyms::read(SOME.as_bytes()).unwrap();
        for (address, name) in [
            (0xffff_ffff_8100_0000, Some("_text")),
            (0xffff_ffff_8100_02ff, Some("do_one")),
            (0xffff_ffff_8100_0300, Some("late")),
            (0x10, None),
        ] {
            assert_eq!(symbols.name(address), name, "{address:x}");
        }
        assert_eq!(symbols.address("late"), Some(0xffff_ffff_8100_0300));
    }

    #[test]
    fn addresses_that_are_zero_are_hidden() {
        let hidden = "0000000000000000 T _text\n0000000000000000 t one\n";
        assert!(matches!(Kallsyms::read(hidden.as_bytes()), Err(NoSymbols::Hidden)));
    }
}
