//! `virsh dommemstat`: what a virtual machine's balloon driver reports of its guest, `unused 112344`, in KiB.
//!
//! `unused` is the guest's MemFree, `available` its MemTotal, `usable` its MemAvailable and `disk_caches` its page cache with
//! buffers and swap cache (`NR_FILE_PAGES` in `drivers/virtio/virtio_balloon.c`). The guest's figures are only as recent as `last_update`. Its RSS on the host and the size of its balloon are not used.

use timeline::SignalId;
use timeline::signals::{MEM_AVAILABLE, MEM_CACHED, MEM_FREE, MEM_TOTAL};

use super::Form;
use super::size_unit::SLAB_IN_CACHE;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::{KIB, PrintedFigure};
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form =
    Form { name: "dommemstat", begins: BlockStart::with(&["actual "]), read };

const SIZES: [(&str, SignalId); 4] = [
    ("available", MEM_TOTAL.id()),
    ("unused", MEM_FREE.id()),
    ("usable", MEM_AVAILABLE.id()),
    ("disk_caches", MEM_CACHED.id()),
];
fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let is_first = |line: &&&str| line.trim_start().starts_with("actual ");
    input.lines.first().filter(is_first)?;
    let mut snapshot = Snapshot::default();
    let mut lines = 0;
    for line in input.lines {
        let Some((name, number)) = line.trim().split_once(' ') else {
            break;
        };
        let Ok(number) = number.trim().parse::<u64>() else {
            break;
        };
        if let Some((_, signal)) = SIZES.iter().find(|(known, _)| *known == name) {
            #[allow(clippy::cast_precision_loss)] // sizes far below 2^53
            snapshot.set_size(*signal, PrintedFigure::whole(number as f64), KIB);
        } else if !name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_') {
            // Newer drivers report more.
            break;
        }
        lines += 1;
    }
    // One line alone may be anything.
    if lines < 3 {
        return None;
    }
    snapshot.set_error(MEM_CACHED.id(), SLAB_IN_CACHE);
    let has_guest = snapshot.has_readings();
    if has_guest {
        input.add(snapshot);
    }
    let what = if has_guest {
        "virsh dommemstat: memory of the guest"
    } else {
        "virsh dommemstat without figures of the guest (its balloon driver reports none); run free \
         in the guest"
    };
    Some(TextBlock { what: what.to_owned(), lines, unit: "KiB", ..TextBlock::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{paste, survives};
    use units::Bytes;

    #[test]
    fn the_guests_figures_are_those_of_a_host() {
        let text = "actual 4194304\nswap_in 102934\nunused 112344\navailable 4030532\nusable 212344\nlast_update 1699900000\nrss 4200000\n";
        let timeline = paste(text).timeline;
        assert_eq!(timeline.last(MEM_TOTAL), Some(Bytes::from_kib(4_030_532)));
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_kib(212_344)));
        survives(text);
    }

    #[test]
    fn figures_of_newer_drivers_do_not_end_the_block() {
        let text = "actual 4194304\nunused 519476\nnr_oom_kill 0\navailable 3390244\nusable 2029636\ndisk_caches 1813252\nrss 3663796\n";
        let opened = paste(text);
        let timeline = &opened.timeline;
        assert_eq!(timeline.last(MEM_AVAILABLE), Some(Bytes::from_kib(2_029_636)));
        // It has buffers and the swap cache.
        assert!(timeline.rounding_error(MEM_CACHED.id()).is_some_and(|error| error >= 4096));
        assert_eq!(opened.origin.inputs[0].last_line, 7);
        survives(text);
    }

    #[test]
    fn without_a_driver_it_says_where_to_look() {
        let opened = paste("actual 4194304\nlast_update 0\nrss 4200000\n");
        assert!(opened.timeline.is_empty());
        assert!(opened.origin.inputs[0].what.contains("run free"));
        assert!(paste("actual 12\nactual prose\n").origin.inputs.is_empty());
    }
}
