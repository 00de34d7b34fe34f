//! A bundle in a tar archive, read as a stream: nothing is unpacked to disk, so no name can lead outside.
//!
//! Long names are read here: the tar crate would read a name of any length into memory.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Component, Path};

use tar::{Archive, EntryType, PaxExtensions};

use super::{Bundle, ENTRIES_MAX};
use crate::decompress::{Packing, damage};
use timeline::Source;

/// At most 64 GiB of an unpacked bundle: a packed megabyte can become a gigabyte.
const ARCHIVE_BYTES_MAX: u64 = 64 << 30;
/// At most 64 KiB of extended headers, far more than the longest path.
const NAME_LEN_MAX: u64 = 64 << 10;

/// Reads an archive up to its end or its first error.
pub(crate) fn read(input: &mut dyn BufRead, packing: Packing) -> Source {
    let mut bundle = Bundle::default();
    let mut refused = 0;
    let mut read = 0;
    if let Err(error) = entries(input, &mut bundle, &mut read, &mut refused) {
        let what = match packing {
            Packing::None => format!("the archive ends early or is damaged ({error})"),
            packed => damage(packed, &error),
        };
        bundle.paste.problem(format!("{what} after {read} entries; those before it are used"));
    }
    if refused > 0 {
        bundle.paste.problem(format!(
            "{refused} entries have names that lead outside the archive and are not read"
        ));
    }
    bundle.finish()
}

fn entries(
    input: &mut dyn BufRead,
    bundle: &mut Bundle,
    read: &mut usize,
    refused: &mut usize,
) -> std::io::Result<()> {
    let mut archive = Archive::new(input.take(ARCHIVE_BYTES_MAX));
    let mut long_name: Option<String> = None;
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        if *read >= ENTRIES_MAX {
            bundle.paste.problem(format!("only the first {ENTRIES_MAX} entries are read"));
            return Ok(());
        }
        *read += 1;
        match entry.header().entry_type() {
            EntryType::GNULongName => {
                let name = header(&mut entry)?;
                let name = name.split(|b| *b == 0).next().unwrap_or_default();
                long_name = Some(String::from_utf8_lossy(name).into_owned());
            }
            EntryType::XHeader => long_name = path_in(&header(&mut entry)?).or(long_name),
            EntryType::Regular | EntryType::Continuous => {
                let name = long_name
                    .take()
                    .unwrap_or_else(|| String::from_utf8_lossy(&entry.path_bytes()).into_owned());
                match inner(&name) {
                    Some(name) => file(&name, &mut entry, bundle),
                    None => *refused += 1,
                }
            }
            // Links and devices: the target of a link has its own entry.
            _ => long_name = None,
        }
    }
    Ok(())
}

fn file(name: &str, entry: &mut tar::Entry<'_, impl Read>, bundle: &mut Bundle) {
    let Some(role) = bundle.role(name) else {
        return;
    };
    let left = entry.size();
    let body = Whole { inner: entry, left };
    bundle.file(name, role, BufReader::with_capacity(64 << 10, body));
}

/// An entry that fails if the archive ends within it: a truncated number is another number.
struct Whole<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

fn header(entry: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    entry.take(NAME_LEN_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// The path in an extended header, which replaces that of the entry.
fn path_in(header: &[u8]) -> Option<String> {
    let path =
        PaxExtensions::new(header).flatten().find(|extension| extension.key() == Ok("path"))?;
    path.value().ok().map(str::to_owned)
}

/// The name, unless it leads outside the archive.
fn inner(name: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/"))
}
