//! Services: all processes of a systemd unit, of a container, of a cgroup, or else of a program, added up. A service
//! outlives its processes, so its figures are worth keeping for long.
//!
//! Levels are sums over the current processes. Counters are sums of increases, so they do not fall when a process ends;
//! what a process counted between its last scan and its end is unknown and missing. A service without processes is
//! forgotten; when it starts again, its counters begin at zero.

use timeline::signals::{
    PROC_MAJFLT, PROC_PSS, PROC_READ_BYTES, PROC_RSS, PROC_RSS_ANON, PROC_RSS_FILE, PROC_RSS_SHMEM,
    PROC_STIME, PROC_SWAP, PROC_UTIME, PROC_WRITE_BYTES, SERVICE_CPU, SERVICE_MAJFLT,
    SERVICE_PROCESSES, SERVICE_PSS, SERVICE_READ_BYTES, SERVICE_RSS, SERVICE_RSS_ANON,
    SERVICE_RSS_FILE, SERVICE_RSS_SHMEM, SERVICE_SWAP, SERVICE_WRITE_BYTES,
};
use timeline::{Entity, Event, EventKind, ProcessCells, Sample, SignalId, Stamp};
use units::Count;

use crate::record::allowance::Allowance;

/// Levels of a process; those of a service are the sums.
const LEVELS: [(SignalId, SignalId); 6] = [
    (PROC_RSS.id(), SERVICE_RSS.id()),
    (PROC_RSS_ANON.id(), SERVICE_RSS_ANON.id()),
    (PROC_RSS_FILE.id(), SERVICE_RSS_FILE.id()),
    (PROC_RSS_SHMEM.id(), SERVICE_RSS_SHMEM.id()),
    (PROC_SWAP.id(), SERVICE_SWAP.id()),
    (PROC_PSS.id(), SERVICE_PSS.id()),
];

/// Counters of a process; those of a service are the sums of the increases.
const COUNTS: [(SignalId, SignalId); 5] = [
    (PROC_UTIME.id(), SERVICE_CPU.id()),
    (PROC_STIME.id(), SERVICE_CPU.id()),
    (PROC_MAJFLT.id(), SERVICE_MAJFLT.id()),
    (PROC_READ_BYTES.id(), SERVICE_READ_BYTES.id()),
    (PROC_WRITE_BYTES.id(), SERVICE_WRITE_BYTES.id()),
];

/// An array of numbers, each of which may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partly<const N: usize> {
    values: [u64; N],
    known: u8,
}

impl<const N: usize> Default for Partly<N> {
    fn default() -> Self {
        Self { values: [0; N], known: 0 }
    }
}

impl<const N: usize> Partly<N> {
    fn set(&mut self, at: usize, value: u64) {
        self.values[at] = value;
        self.known |= 1 << at;
    }

    fn get(&self, at: usize) -> Option<u64> {
        (self.known >> at & 1 == 1).then(|| self.values[at])
    }

    fn add(&mut self, other: &Self) {
        for (sum, value) in self.values.iter_mut().zip(other.values) {
            *sum = sum.saturating_add(value);
        }
        self.known |= other.known;
    }
}

/// The last readings of a process; not every scan reads all of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share {
    levels: Partly<6>,
    counts: Partly<5>,
}

/// How much a process's counters grew since the previous scan.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Increases(Partly<5>);

impl Share {
    /// Takes the readings of a scan. A process that started since the previous scan has counted from zero.
    pub(crate) fn update(&mut self, cells: &ProcessCells, is_born: bool) -> Increases {
        for (at, (signal, _)) in LEVELS.iter().enumerate() {
            if let Some(value) = cells.get_raw(*signal) {
                self.levels.set(at, value);
            }
        }
        let mut increases = Partly::default();
        for (at, (signal, _)) in COUNTS.iter().enumerate() {
            let Some(value) = cells.get_raw(*signal) else {
                continue;
            };
            let before = self.counts.get(at).or(is_born.then_some(0));
            let increase = before.map_or(0, |before| value.saturating_sub(before));
            increases.set(at, increase);
            self.counts.set(at, value);
        }
        Increases(increases)
    }

    /// Returns the last reading of resident pages.
    pub(crate) fn resident(&self) -> u64 {
        self.levels.get(0).unwrap_or(0)
    }
}

/// A service's index in the list; a process with an unknown service has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServiceId(u32);

/// The state of one service.
#[derive(Debug, Default)]
struct ServiceState {
    name: String,
    /// Processes in this scan.
    processes: u64,
    /// Processes in this scan that were also in the previous one.
    stayed: u64,
    /// Processes in the previous scan.
    before: u64,
    levels: Partly<6>,
    counts: Partly<5>,
    /// When it was first seen, or last restarted.
    since: Stamp,
    /// Whether its start is not reported yet; it is reported if the service stays.
    is_new: bool,
}

/// The services of a host.
#[derive(Debug)]
pub(crate) struct Services {
    all: Vec<ServiceState>,
    /// The services in use, by name.
    by_name: Vec<ServiceId>,
    free: Vec<ServiceId>,
    /// Services and their memory, to find the largest.
    order: Vec<(u64, ServiceId)>,
    most: usize,
    left_out: usize,
    events: Allowance,
    scans: u64,
}

impl Services {
    /// Starts and ends reported at once, and how many an hour in the long run. A crash loop must not fill the list of
    /// events; a rollout of a node's containers must fit.
    const EVENTS: (u32, u32) = (64, 60);

    /// Starts without services; at most `most` of them become rows.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            all: Vec::new(),
            by_name: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
            most,
            left_out: 0,
            events: Allowance::new(Self::EVENTS.0, Self::EVENTS.1),
            scans: 0,
        }
    }

    /// Returns the service of this name; adds it if it is new.
    pub(crate) fn named(&mut self, name: &str, now: Stamp) -> ServiceId {
        let all = &self.all;
        let of = |id: &ServiceId| all.get(id.at()).map_or("", |service| &service.name);
        match self.by_name.binary_search_by(|id| of(id).cmp(name)) {
            Ok(at) => self.by_name[at],
            Err(at) => {
                let id = self.make(name, now);
                self.by_name.insert(at, id);
                id
            }
        }
    }

    fn make(&mut self, name: &str, now: Stamp) -> ServiceId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(ServiceState::default());
            // There are no more services than processes, and no more processes than PIDs.
            ServiceId(u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX))
        });
        if let Some(service) = self.all.get_mut(id.at()) {
            let mut name_buffer = std::mem::take(&mut service.name);
            name_buffer.clear();
            name_buffer.push_str(name);
            *service = ServiceState {
                name: name_buffer,
                since: now,
                is_new: self.scans > 0 && is_worth_telling(name),
                ..ServiceState::default()
            };
        }
        id
    }

    /// Returns the name of a service.
    pub(crate) fn name(&self, id: ServiceId) -> &str {
        self.all.get(id.at()).map_or("", |service| &service.name)
    }

    /// Begins a scan of all processes.
    pub(crate) fn begin(&mut self) {
        for service in &mut self.all {
            service.before = std::mem::take(&mut service.processes);
            service.stayed = 0;
            service.levels = Partly::default();
        }
    }

    /// Adds a process; `stayed` says that the previous scan found it in the same service.
    pub(crate) fn add(&mut self, id: ServiceId, share: &Share, more: &Increases, stayed: bool) {
        if let Some(service) = self.all.get_mut(id.at()) {
            service.processes += 1;
            service.stayed += u64::from(stayed);
            service.levels.add(&share.levels);
            service.counts.add(&more.0);
        }
    }

    /// Ends the scan: forgets services without processes, and reports those that started or ended.
    pub(crate) fn end(&mut self, now: Stamp, report: &mut dyn FnMut(Event)) {
        self.scans += 1;
        self.order.clear();
        let mut in_use = std::mem::take(&mut self.by_name);
        in_use.retain(|id| self.settle(*id, now, report));
        self.by_name = in_use;
        self.left_out = self.order.len().saturating_sub(self.most);
        if let Some(dropped) = self.events.caught_up(now.boot) {
            let text =
                format!("{dropped} more services began or ended, too many to be listed one by one");
            report(event(now, EventKind::ServiceStarted, "", text));
        }
    }

    /// Ends the scan for one service. Returns whether it still has processes.
    fn settle(&mut self, id: ServiceId, now: Stamp, report: &mut dyn FnMut(Event)) -> bool {
        let Some(service) = self.all.get_mut(id.at()) else {
            return false;
        };
        let note = service.news(now);
        let is_there = service.processes > 0;
        if is_there {
            let rss = service.levels.values[0];
            self.order.push((rss, id));
        } else {
            self.free.push(id);
        }
        if let Some((stamp, kind, text)) = note
            && self.events.take(now.boot)
        {
            report(event(stamp, kind, self.name(id), text));
        }
        is_there
    }

    /// Writes the rows of the scan; if there are too many services, those of the largest.
    pub(crate) fn rows(&mut self, sample: &mut Sample) {
        if self.order.len() > self.most && self.most > 0 {
            let by_size = |a: &(u64, ServiceId), b: &(u64, ServiceId)| b.0.cmp(&a.0);
            self.order.select_nth_unstable_by(self.most - 1, by_size);
        }
        self.order.truncate(self.most);
        let table = sample.table_mut(Entity::Service);
        for (_, id) in &self.order {
            let Some(service) = self.all.get(id.at()) else {
                continue;
            };
            let entity = table.add();
            entity.key.reserve(Self::NAME_ROOM);
            entity.key.push_str(&service.name);
            entity.row.set(SERVICE_PROCESSES, Count::new(service.processes));
            service.readings(|signal, raw| entity.row.set_raw(signal, raw));
        }
    }

    /// Capacity of a service's name in a row. Rows change places, and a longer name must not be allocated; the name of
    /// a pod's slice has 80 bytes.
    const NAME_ROOM: usize = 96;

    /// Returns the number of services, and how many of them became no rows.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.by_name.len(), self.left_out)
    }
}

impl ServiceId {
    fn at(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl ServiceState {
    /// Returns what to report after a scan: that the service stayed, restarted or ended.
    fn news(&mut self, now: Stamp) -> Option<(Stamp, EventKind, String)> {
        if self.processes == 0 {
            let was_told = !self.is_new && is_worth_telling(&self.name);
            return was_told.then(|| {
                let text = format!("{} has ended: none of its processes is left", self.name);
                (now, EventKind::ServiceEnded, text)
            });
        }
        if self.before == 0 {
            return None;
        }
        let text = if self.stayed == 0 && is_worth_telling(&self.name) {
            self.since = now;
            format!("{} was started again: all of its processes are new", self.name)
        } else if self.is_new {
            format!("{} was started", self.name)
        } else {
            return None;
        };
        self.is_new = false;
        Some((self.since, EventKind::ServiceStarted, text))
    }

    fn readings(&self, mut set: impl FnMut(SignalId, u64)) {
        for (at, (_, signal)) in LEVELS.iter().enumerate() {
            if let Some(sum) = self.levels.get(at) {
                set(*signal, sum);
            }
        }
        let cpu = self.counts.get(0).into_iter().chain(self.counts.get(1));
        if self.counts.known & 0b11 != 0 {
            set(SERVICE_CPU.id(), cpu.sum());
        }
        for (at, (_, signal)) in COUNTS.iter().enumerate().skip(2) {
            if let Some(sum) = self.counts.get(at) {
                set(*signal, sum);
            }
        }
    }
}

/// Whether start and end of a service become events: units that an administrator runs, and containers. Not logins, the
/// manager of each user, a user's own units, or programs outside of any unit, which come and go by the thousand.
fn is_worth_telling(name: &str) -> bool {
    let is_unit = name.ends_with(".service")
        && !name.starts_with('/')
        && !["user@", "user-runtime-dir@", "run-"].iter().any(|prefix| name.starts_with(prefix));
    let (above, part) = name.rsplit_once('/').unwrap_or(("", name));
    let part = timeline::cgroup::PathPart::of(part, above);
    // systemd's own containers and virtual machines are units: `machine-NAME.scope`.
    let is_machine = part.is_unit && name.starts_with("machine-");
    is_unit || is_machine || part.container.is_some()
}

fn event(stamp: Stamp, kind: EventKind, subject: &str, text: String) -> Event {
    Event { stamp, kind, subject: subject.to_owned(), text, report: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::signals::PROC_RSS;
    use units::{Bytes, Pages, Span, Ticks};

    fn at(seconds: u64) -> Stamp {
        Stamp { boot: Span::from_secs(seconds), ..Stamp::default() }
    }

    /// Builds readings of a process: resident pages, user time, and swap if it was read.
    fn cells(pages: u64, ticks: u64, swap: Option<u64>) -> ProcessCells {
        let mut cells = ProcessCells::default();
        cells.set(PROC_RSS, Pages::new(pages));
        cells.set(PROC_UTIME, Ticks::new(ticks));
        if let Some(swap) = swap {
            cells.set(PROC_SWAP, Bytes::new(swap));
        }
        cells
    }

    /// Scans processes of services: name, whether the process stayed, its readings.
    fn scan(
        services: &mut Services,
        now: u64,
        processes: &mut [(&str, bool, &mut Share, ProcessCells)],
    ) -> Vec<Event> {
        services.begin();
        for (name, stayed, share, cells) in processes {
            let id = services.named(name, at(now));
            let more = share.update(cells, !*stayed && now > 0);
            services.add(id, share, &more, *stayed);
        }
        let mut events = Vec::new();
        services.end(at(now), &mut |event| events.push(event));
        events
    }

    fn row(services: &mut Services, name: &str) -> Option<timeline::Row> {
        let mut sample = Sample::default();
        services.rows(&mut sample);
        let rows = sample.table(Entity::Service).rows().iter();
        rows.filter(|row| row.key == name).map(|row| row.row.clone()).next()
    }

    #[test]
    fn levels_are_sums_of_now_and_counters_do_not_fall_when_a_process_ends() {
        let mut services = Services::new(9);
        let (mut a, mut b) = (Share::default(), Share::default());
        let first = &mut [
            ("web.service", false, &mut a, cells(10, 500, Some(7))),
            ("web.service", false, &mut b, cells(20, 900, None)),
        ];
        scan(&mut services, 0, first);
        let seen = row(&mut services, "web.service").unwrap();
        assert_eq!(seen.get(SERVICE_RSS), Some(Pages::new(30)));
        assert_eq!(seen.get(SERVICE_SWAP), Some(Bytes::new(7)));
        assert_eq!(seen.get(SERVICE_PSS), None::<Bytes>, "it was never read");
        assert_eq!(seen.get(SERVICE_CPU), Some(Ticks::new(0)), "since recording began");
        // Swap is not read in every scan; its last reading stands.
        let second = &mut [
            ("web.service", true, &mut a, cells(11, 530, None)),
            ("web.service", true, &mut b, cells(20, 900, None)),
        ];
        scan(&mut services, 10, second);
        let seen = row(&mut services, "web.service").unwrap();
        assert_eq!(seen.get(SERVICE_SWAP), Some(Bytes::new(7)));
        assert_eq!(seen.get(SERVICE_CPU), Some(Ticks::new(30)));
        // The first process has ended, and a new one has used 4 ticks since the last scan.
        let mut c = Share::default();
        let third = &mut [
            ("web.service", true, &mut b, cells(20, 905, None)),
            ("web.service", false, &mut c, cells(1, 4, None)),
        ];
        scan(&mut services, 20, third);
        let seen = row(&mut services, "web.service").unwrap();
        assert_eq!(seen.get(SERVICE_RSS), Some(Pages::new(21)));
        assert_eq!(seen.get(SERVICE_CPU), Some(Ticks::new(39)));
        assert_eq!(seen.get(SERVICE_PROCESSES), Some(Count::new(2)));
    }

    /// Returns the events of scans 10 s apart. Each scan lists its processes, each with its service and a number.
    fn events_of(scans: &[&[(&'static str, u32)]]) -> Vec<(u64, String)> {
        let mut services = Services::new(9);
        let mut before: &[(&str, u32)] = &[];
        let mut reported = Vec::new();
        for (number, there) in scans.iter().enumerate() {
            let mut shares = vec![Share::default(); there.len()];
            let mut processes: Vec<_> = there
                .iter()
                .zip(&mut shares)
                .map(|(who, share)| (who.0, before.contains(who), share, cells(1, 1, None)))
                .collect();
            let events = scan(&mut services, number as u64 * 10, &mut processes);
            let texts = events.into_iter().map(|event| {
                let seconds = event.stamp.boot.as_nanos() / 1_000_000_000;
                (seconds, event.text)
            });
            reported.extend(texts);
            before = there;
        }
        reported
    }

    #[test]
    fn services_that_begin_end_or_begin_anew_are_told_and_others_are_not() {
        let db = ("db.service", 1);
        let (old, new) = (("web.service", 2), ("web.service", 3));
        let reported = events_of(&[
            &[db, ("sshd", 9), ("session-1.scope", 5)],
            &[db, ("session-2.scope", 6), ("sleep", 7), ("logrotate.service", 8)],
            &[db, old],
            &[db, old],
            &[db, new],
            &[new],
        ]);
        let expected = [
            (20, "web.service was started".to_owned()),
            (40, "web.service was started again: all of its processes are new".to_owned()),
            (50, "db.service has ended: none of its processes is left".to_owned()),
        ];
        assert_eq!(reported, expected);
    }

    #[test]
    fn a_crash_loop_does_not_fill_the_list_of_events() {
        let names: Vec<String> = (0..200).map(|n| format!("unit{n}.service")).collect();
        let mut services = Services::new(9);
        let mut count = 0;
        for now in 0..40 {
            let mut shares = vec![Share::default(); names.len()];
            let there = names.iter().zip(&mut shares);
            let mut processes: Vec<_> = there
                .map(|(name, share)| (name.as_str(), false, share, cells(1, 1, None)))
                .collect();
            let events = scan(&mut services, now * 10, &mut processes);
            count += events.len();
        }
        assert!((64..90).contains(&count), "{count}");
    }

    #[test]
    fn of_too_many_services_the_largest_become_rows() {
        let mut services = Services::new(2);
        let names = ["a", "b", "c", "d"];
        let mut shares = [Share::default(); 4];
        let sizes = [5, 90, 3, 40];
        let mut processes: Vec<_> = names
            .iter()
            .zip(&mut shares)
            .zip(sizes)
            .map(|((name, share), size)| (*name, false, share, cells(size, 0, None)))
            .collect();
        scan(&mut services, 0, &mut processes);
        let rows = names.map(|name| row(&mut services, name).is_some());
        assert_eq!(rows, [false, true, false, true]);
        assert_eq!(services.count(), (4, 2));
    }

    #[test]
    fn units_and_containers_are_worth_telling_and_logins_are_not() {
        let id = "0123456789abcdef".repeat(4);
        for (name, expected) in [
            ("nginx.service", true),
            ("postgresql@15-main.service", true),
            (&*id, true),
            (&*format!("docker-{id}.scope"), true),
            (&*format!("cri-containerd-{id}.scope"), true),
            ("lxc.payload.web1", true),
            ("session-3.scope", false),
            ("user@1000.service", false),
            ("run-u12.service", false),
            ("app-firefox-12.scope", false),
            ("bash", false),
            ("kernel threads", false),
        ] {
            assert_eq!(is_worth_telling(name), expected, "{name}");
        }
    }
}
