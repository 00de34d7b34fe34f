//! Names of files, directories and signals in a segment.

use std::collections::HashMap;
use std::sync::OnceLock;

use timeline::{Entity, SignalId, signals};
use units::WallClock;

/// Returns the file of an entity's table.
pub(crate) const fn file_of(entity: Entity) -> &'static str {
    match entity {
        Entity::Host => "host.parquet",
        Entity::Node => "node.parquet",
        Entity::Zone => "zone.parquet",
        Entity::Disk => "disk.parquet",
        Entity::SwapArea => "swap_area.parquet",
        Entity::Zram => "zram.parquet",
        Entity::Slab => "slab.parquet",
        Entity::Cgroup => "cgroup.parquet",
        Entity::Process => "process.parquet",
        Entity::Service => "service.parquet",
    }
}

/// The roll-ups.
pub(crate) const MINUTES: &str = "minutes.parquet";
pub(crate) const EVENTS: &str = "events.parquet";
/// The content of a segment besides its tables.
pub(crate) const ABOUT: &str = "about.json";
/// The list of the segment's files, with checksums.
pub(crate) const MANIFEST: &str = "segment.json";

/// Returns all files that a manifest may list.
pub(super) fn files() -> impl Iterator<Item = &'static str> {
    let tables = Entity::ALL.into_iter().map(file_of);
    tables.chain([MINUTES, EVENTS, ABOUT])
}

/// Returns the signal with this name in a file; `None` if only a later memtide knows it.
pub(crate) fn signal(name: &str) -> Option<SignalId> {
    static BY_NAME: OnceLock<HashMap<&'static str, SignalId>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        let all = signals::ALL.iter().enumerate();
        all.filter_map(|(place, def)| Some((def.name, SignalId::from_index(place)?))).collect()
    });
    by_name.get(name).copied()
}

/// Returns the name of a segment's directory.
pub(crate) fn directory(sequence: u64, start: Option<WallClock>) -> String {
    match start {
        Some(start) => format!("{sequence:08}-{}", compact_utc(start)),
        None => format!("{sequence:08}-undated"),
    }
}

/// Returns the sequence number in the name of a segment's directory; `None` for any other name.
pub(crate) fn sequence(name: &str) -> Option<u64> {
    let (number, start) = name.split_once('-')?;
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = || {
        let (day, time) = start.split_once('T')?;
        let time = time.strip_suffix('Z')?;
        Some(day.len() == 8 && time.len() == 6 && are_digits(day) && are_digits(time))
    };
    // The number has more digits after 99,999,999 parts, or beside a head file that somebody gave such a number.
    let is_padded = number.len() == 8 || number.len() > 8 && !number.starts_with('0');
    let is_ours = is_padded && are_digits(number);
    let is_ours = is_ours && (start == "undated" || is_time() == Some(true));
    number.parse().ok().filter(|_| is_ours)
}

/// Formats as `20261122T033000Z`.
fn compact_utc(at: WallClock) -> String {
    let [year, month, day, hour, minute, second] = civil(at);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Formats as `2026-11-22 03:30:00 UTC`.
pub(crate) fn utc(at: WallClock) -> String {
    let [year, month, day, hour, minute, second] = civil(at);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Returns year, month, day, hour, minute and second in UTC, in the Gregorian calendar: it counts eras of 400 years
/// that begin in March, so that a leap day is the last day of its year.
fn civil(at: WallClock) -> [i64; 6] {
    let seconds = at.unix_nanos().div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + later;
    [year, month, day, second / 3600, second / 60 % 60, second % 60]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_named_by_number_and_start() {
        let named =
            |seconds: i64| directory(7, Some(WallClock::from_unix_nanos(seconds * 1_000_000_000)));
        assert_eq!(named(0), "00000007-19700101T000000Z");
        assert_eq!(named(951_827_696), "00000007-20000229T123456Z");
        assert_eq!(named(1_795_318_200), "00000007-20261122T033000Z");
        assert_eq!(sequence(&named(0)), Some(7));
        assert_eq!(sequence("00000007-undated"), Some(7));
        for strange in [".tmp-x", "00000007-notes", "7-undated", "00000007-2026T03Z"] {
            assert_eq!(sequence(strange), None, "{strange}");
        }
    }

    #[test]
    fn every_entity_has_a_file_of_its_name() {
        for kind in Entity::ALL {
            assert_eq!(
                file_of(kind).split('.').next(),
                Some(kind.name().replace(' ', "_").trim_end_matches("_cache"))
            );
        }
    }
}
