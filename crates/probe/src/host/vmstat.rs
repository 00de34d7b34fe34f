//! Page gauges and event counters of the whole machine: `/proc/vmstat`.
//!
//! Gauges are in pages (with a few exceptions, none of them in the catalogue), events are counts since boot; `pgpgin`
//! and `pgpgout` are KiB. Some 100 fields in 2.6.32, 190 in 6.18: unknown fields are stored by name, missing ones are
//! absent. Before 4.8 reclaim events are split by zone (`pgscan_kswapd_normal`); `pgalloc` and, since 4.10,
//! `allocstall` still are: the parts are summed. The kernel folds in per-CPU counts every second, so fields are up to a
//! second apart. Cost: one `pread` of 4 KiB, 10 µs; no lock that a task waits for.

use timeline::{Sample, signals::VMSTAT};

use crate::error::ParseError;
use crate::fields::Fields;

/// The parser; it remembers the file's layout.
#[derive(Debug)]
pub(crate) struct Vmstat(Fields);

impl Default for Vmstat {
    fn default() -> Self {
        Self(Fields::for_file(VMSTAT).adding_up(split_by_zone))
    }
}

impl Vmstat {
    /// Reads the text into the host's row.
    ///
    /// # Errors
    /// The first line without a number; the other lines are read.
    pub(crate) fn parse(&mut self, text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
        let Sample { host, unknown, .. } = sample;
        self.0.parse(text, host, |field, value| unknown.keep(VMSTAT, field, value))
    }
}

/// The suffixes of `mm/vmstat.c` (`TEXTS_FOR_ZONES`) for events that are counted by zone.
const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];

/// Returns the catalogue's field that `name` is a part of.
pub(crate) fn split_by_zone(name: &str) -> Option<&'static str> {
    // `allocstall` was one counter until 4.9; `pgsteal_kswapd` was called `kswapd_steal` until 3.4.
    match name {
        "allocstall" => return Some("allocstall_*"),
        "kswapd_steal" => return Some("pgsteal_kswapd"),
        _ => {}
    }
    let (event, zone) = name.rsplit_once('_')?;
    if !ZONES.contains(&zone) {
        return None;
    }
    match event {
        "allocstall" => Some("allocstall_*"),
        "pgalloc" => Some("pgalloc_*"),
        "pgskip" => Some("pgskip_*"),
        "pgrefill" => Some("pgrefill"),
        "pgscan_kswapd" => Some("pgscan_kswapd"),
        "pgscan_direct" => Some("pgscan_direct"),
        "pgsteal_kswapd" => Some("pgsteal_kswapd"),
        "pgsteal_direct" => Some("pgsteal_direct"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;
    use timeline::signals::{
        ALLOCSTALL, NR_FREE_PAGES, OOM_KILLS, PGALLOC, PGPGIN, PGREFILL, PGSCAN_DIRECT,
        PGSCAN_DIRECT_THROTTLE, PGSCAN_KSWAPD, PGSKIP, PGSTEAL_DIRECT, PGSTEAL_KSWAPD, PSWPIN,
        REFAULT, REFAULT_ANON, REFAULT_FILE, SWPIN_ZERO,
    };
    use units::{Bytes, Count, Pages};

    const V6_1: &[u8] = include_bytes!("../../tests/kernel/6.1/vmstat");
    const V6_12: &[u8] = include_bytes!("../../tests/kernel/6.12/vmstat");
    const V6_18: &[u8] = include_bytes!("../../tests/kernel/6.18/vmstat");
    /// The layout of 3.10: reclaim events by zone, one `allocstall`, no separate anonymous and file refaults.
    const V3_10: &str = "\
nr_free_pages 1301354
workingset_refault 12
pgpgin 5
pgalloc_dma 24
pgalloc_dma32 397
pgalloc_normal 2978
pgalloc_movable 1
pgrefill_dma 1
pgrefill_normal 2
pgsteal_kswapd_dma 0
pgsteal_kswapd_dma32 10
pgsteal_kswapd_normal 20
pgsteal_kswapd_movable 0
pgsteal_direct_dma32 3
pgsteal_direct_normal 4
pgscan_kswapd_dma32 100
pgscan_kswapd_normal 200
pgscan_direct_dma32 30
pgscan_direct_normal 40
pgscan_direct_throttle 7
allocstall 9
";
    const V2_6_32: &str = "\
nr_free_pages 10
pgsteal_dma32 5
pgsteal_normal 6
pgscan_kswapd_normal 20
pgscan_direct_normal 2
kswapd_steal 8
pageoutrun 1
allocstall 3
";

    fn parse(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = Vmstat::default().parse(text, &mut sample);
        (sample, result)
    }

    #[test]
    fn every_line_of_a_6_1_vmstat_is_read_or_kept() {
        let (sample, result) = parse(V6_1);
        result.unwrap();
        let host = &sample.host;
        assert_eq!(host.get(PSWPIN), Some(Pages::new(69_629)));
        assert_eq!(host.get(REFAULT_ANON), Some(Pages::new(69_629)));
        assert_eq!(host.get(PGALLOC), Some(Pages::new(6_750 + 289_742)));
        assert_eq!(host.get(ALLOCSTALL), Some(Count::new(8 + 449)));
        assert_eq!(host.get(PGSKIP), Some(Pages::ZERO));
        let lines = V6_1.split(|b| *b == b'\n').count() - 1;
        let summed = 3 * (5 - 1);
        let read = host.iter().count() + summed + sample.unknown.iter().count();
        assert_eq!(read, lines);
        assert!(host.iter().count() > 75, "{}", host.iter().count());
    }

    #[test]
    fn fields_come_and_go_with_kernels() {
        let (old, _) = parse(V6_1);
        assert_eq!(old.host.get(SWPIN_ZERO), None, "missing is not zero");
        assert_eq!(old.host.get(REFAULT), None);
        for text in [V6_12, V6_18] {
            let (sample, result) = parse(text);
            result.unwrap();
            assert!(sample.host.get(SWPIN_ZERO).is_some());
            assert!(sample.host.get(PGSCAN_KSWAPD).is_some());
            assert!(sample.host.get(OOM_KILLS).is_some());
        }
    }

    #[test]
    fn events_that_old_kernels_split_by_zone_are_added_up() {
        let (sample, result) = parse(V3_10.as_bytes());
        result.unwrap();
        assert_eq!(sample.host.get(NR_FREE_PAGES), Some(Pages::new(1_301_354)));
        for (signal, pages) in [
            (PGALLOC, Some(24 + 397 + 2_978 + 1)),
            (PGREFILL, Some(3)),
            (PGSTEAL_KSWAPD, Some(30)),
            (PGSTEAL_DIRECT, Some(7)),
            (PGSCAN_KSWAPD, Some(300)),
            (PGSCAN_DIRECT, Some(70)),
            (REFAULT, Some(12)),
            (REFAULT_FILE, None),
        ]
        .map(|(signal, pages)| (signal, pages.map(Pages::new)))
        {
            assert_eq!(sample.host.get(signal), pages, "{}", signal.def().name);
        }
        assert_eq!(sample.host.get(PGSCAN_DIRECT_THROTTLE), Some(Count::new(7)), "not a zone");
        assert_eq!(sample.host.get(ALLOCSTALL), Some(Count::new(9)));
        assert_eq!(sample.host.get(PGPGIN), Some(Bytes::from_kib(5)));
        assert_eq!(sample.unknown.iter().count(), 0);
    }

    #[test]
    fn the_oldest_kernels_count_what_kswapd_stole_under_another_name() {
        let (sample, result) = parse(V2_6_32.as_bytes());
        result.unwrap();
        assert_eq!(sample.host.get(PGSTEAL_KSWAPD), Some(Pages::new(8)));
        assert_eq!(sample.host.get(PGSTEAL_DIRECT), None, "missing is not zero");
        assert_eq!(sample.host.get(PGSCAN_KSWAPD), Some(Pages::new(20)));
        let unknown: Vec<_> = sample.unknown.iter().map(|u| u.field.as_str()).collect();
        assert_eq!(unknown, ["pgsteal_dma32", "pgsteal_normal"]);
    }

    #[test]
    fn a_sum_starts_anew_with_every_text() {
        let mut vmstat = Vmstat::default();
        for text in ["pgalloc_dma 1\npgalloc_normal 2\n", "pgalloc_dma 3\npgalloc_normal 4\n"] {
            let mut sample = Sample::default();
            vmstat.parse(text.as_bytes(), &mut sample).unwrap();
            assert_eq!(sample.host.iter().count(), 1);
        }
        let mut sample = Sample::default();
        vmstat.parse(b"pgalloc_normal 4\n", &mut sample).unwrap();
        assert_eq!(sample.host.get(PGALLOC), Some(Pages::new(4)));
        let mut sample = Sample::default();
        vmstat.parse(b"pswpin 4\n", &mut sample).unwrap();
        assert_eq!(sample.host.get(PGALLOC), None, "missing is not zero");
    }

    #[test]
    fn a_bad_number_costs_its_line_only() {
        for bad in ["-1", "18446744073709551616", "18446744073709551615", "x", "1.5"] {
            let text = format!("pswpin {bad}\noom_kill 3\npgalloc_dma {bad}\npgalloc_normal 5\n");
            let (sample, result) = parse(text.as_bytes());
            let error = result.unwrap_err().to_string();
            assert!(error.starts_with("/proc/vmstat, line 1: expected a number"), "{error}");
            assert_eq!(sample.host.get(PSWPIN), None);
            assert_eq!(sample.host.get(OOM_KILLS), Some(Count::new(3)));
            assert_eq!(sample.host.get(PGALLOC), None, "half a sum is no sum");
        }
    }

    #[test]
    fn any_bytes_are_survived() {
        let mut vmstat = Vmstat::default();
        hostile::feed(V6_18, |text| {
            let _ = vmstat.parse(text, &mut Sample::default());
        });
        hostile::feed(V3_10.as_bytes(), |text| drop(parse(text)));
    }
}
