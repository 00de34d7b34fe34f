//! Files of one line of numbers that only their position identifies: the kernel's file objects, KSM, zram.

use std::collections::BTreeSet;

use timeline::signals::field_of;
use timeline::{EntityRow, Row};
use units::{Limit, Quantity as _};

use super::{Texts, push, raw};

/// Writes the files of the host.
pub(super) fn host(host: &Row, texts: &mut Texts) {
    for file in files(host) {
        push(texts, file, line(host, file));
    }
}

/// Writes the files of a zram device.
pub(super) fn zram(device: &EntityRow, texts: &mut Texts) {
    for file in files(&device.row) {
        let path = file.replace("zram*", &device.key);
        push(texts, &path, line(&device.row, file));
    }
}

/// Returns the files of which the catalogue's fields are positions.
fn files(row: &Row) -> BTreeSet<&'static str> {
    let defs = row.iter().map(|(signal, _)| signal.def());
    let of_places = defs.filter(|def| place(def.field).is_some());
    of_places.map(|def| def.file).collect()
}

fn place(field: &str) -> Option<usize> {
    field.parse().ok()
}

/// Writes a line: unused numbers as 0, up to the first that is missing.
fn line(row: &Row, file: &str) -> String {
    /// At most 16 numbers; no file has more.
    const PLACES: usize = 16;
    let mut readings = [None; PLACES + 1];
    for (field, signal, def) in field_of(file) {
        if let Some(reading) = place(field).and_then(|at| readings.get_mut(at)) {
            *reading = Some((raw(row, signal), def));
        }
    }
    let mut words = Vec::new();
    let mut known = 0;
    for (at, reading) in readings.into_iter().enumerate().skip(1) {
        match reading {
            None => words.push("0".to_owned()),
            Some((None, _)) => break,
            // These files write "no limit" as 0.
            Some((Some(u64::MAX), def)) if def.unit == Limit::NAME => {
                words.push("0".to_owned());
                known = at;
            }
            Some((Some(raw), def)) => {
                words.push((raw / def.scale).to_string());
                known = at;
            }
        }
    }
    words.truncate(known);
    words.join(" ") + "\n"
}
