//! A cgroup grows in a line towards its limit.

pub(crate) mod soon;

use timeline::signals::{CGROUP_ANON, CGROUP_CURRENT, CGROUP_MAX, MEM_AVAILABLE};
use units::BytesPerSecond;

use crate::measures::cgroups;
use crate::measures::rise::Rise;
use crate::measures::steady_growth::{GROWN, SteadyGrowth};
use crate::prelude::*;
use crate::remedy;

declare_rule! {
    /// A cgroup grows in a line, and meets its limit soon if that goes on.
    ///
    /// ## What it means
    /// Memory of the cgroup that cannot be dropped (its programs' memory, tmpfs, kernel objects) rises without an end
    /// in sight. At the limit the kernel kills in the cgroup. There is still time to find out what grows.
    /// ## How it is recognised
    /// What cannot be dropped rises until the last reading, by {Rise::NOISE} and {GROWN} or more and beyond all it was
    /// before, for a minute or longer; the classifier of `memtide growth` calls it a line; and at that rate the limit
    /// is met within ten times the time that was seen. Where only memory.current is known, page cache is in it, and the
    /// finding is informational.
    ///
    /// Of a cgroup that is asked about (`check --cgroup`), a growth of seconds counts too, if it goes on until the last
    /// reading and meets a limit within minutes at that rate. It says that it may be a program that loads its data.
    /// ## Not this
    /// - A program that starts: its growth slows down and ends. In its first minutes it cannot be distinguished.
    /// - A sawtooth of collections: it reaches what it was before.
    /// - `cgroup-cache-starved`, `oom-cgroup`: the limit is met already.
    /// - Page cache: it grows up to the limit and is dropped there.
    /// ## What to do
    /// Now: see which process grows, and restart it in time. For good: find the leak, or bound its cache or queue. A
    /// higher limit only buys time. Verify: memtide growth over the same time calls it flat, or a warm-up.
    /// ## References
    /// - kernel Documentation/admin-guide/cgroup-v2.rst, memory.max
    pub(crate) RULE = {
        id: "cgroup-limit-ahead", since: "0.1.0", class: Growth,
        numbers: [Rise::NOISE, GROWN],
        trigger: trigger, story: story,
        cause: "Programs of the cgroup take ever more memory, and its limit does not move.",
        verify: "memtide growth over as long a time: flat, or a warm-up that has ended",
        brings_about: &[
            "cgroup-cache-starved", "cgroup-high-throttle", "cgroup-oom-standstill", "cgroup-swap-limited",
            "oom-cgroup",
        ],
    }
}

fn trigger() -> Trigger {
    Trigger::Found(FoundBy {
        find,
        could: None,
        scope: Subjects::each_cgroup(),
        none: Some(|_| clear!("no cgroup with a limit grows towards it in a line")),
    })
}

fn find(cx: &Evidence<'_>) -> Result<Vec<Occurrence>, Missing> {
    let mut found = Vec::new();
    for group in cgroups::with(cx, CGROUP_CURRENT)? {
        if let Some((growth, _)) = ahead(cx, group) {
            found.push(Occurrence {
                first: growth.first,
                last: growth.last,
                key: Some(group.key.clone()),
            });
        }
    }
    Ok(found)
}

/// What of a cgroup counts as growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GrowingPart {
    /// All but page cache and reclaimable kernel objects.
    Undroppable,
    Anon,
    /// Page cache is in it.
    Usage,
}

impl GrowingPart {
    fn of(cx: &Evidence<'_>, group: &EntitySeries) -> (Self, Option<Track<Bytes>>) {
        let track = |reading: Reading<Bytes>| reading.track_of(cx, group).ok();
        if let Some(size) = track(cgroups::undroppable()) {
            return (Self::Undroppable, Some(size));
        }
        match track(gauge(CGROUP_ANON)) {
            Some(size) => (Self::Anon, Some(size)),
            None => (Self::Usage, track(gauge(CGROUP_CURRENT))),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Undroppable => "memory that cannot be dropped",
            Self::Anon => "anonymous memory",
            Self::Usage => "memory, page cache included",
        }
    }

    fn signal(self) -> Signal<timeline::Gauge<Bytes>> {
        match self {
            Self::Anon => CGROUP_ANON,
            Self::Undroppable | Self::Usage => CGROUP_CURRENT,
        }
    }
}

/// How a cgroup grows towards its limit, and what of it.
fn ahead(cx: &Evidence<'_>, group: &EntitySeries) -> Option<(SteadyGrowth, GrowingPart)> {
    let limit = |index| cx.timeline.at_of(group, CGROUP_MAX, index)?.limited();
    let last = cx.timeline.last_of(group, CGROUP_MAX)?.limited()?;
    let (part, size) = GrowingPart::of(cx, group);
    let size = size?;
    let growth = SteadyGrowth::of(cx, &size, |index| {
        let limit = limit(index).unwrap_or(last);
        Some(limit.saturating_sub(size.at(index)?))
    })?;
    let left = growth.limit_in()?;
    (left > Span::ZERO).then_some((growth, part))
}

fn story<'a>(cx: &Evidence<'a>, incident: &Incident<'a>) -> Result<Outcome, Missing> {
    let group = incident.entity()?;
    let name = cgroups::called(cx, group);
    let limit = cgroups::limit_at(cx, group, CGROUP_MAX, incident.stretch.last);
    let (Some((growth, part)), Some(limit)) = (ahead(cx, group), limit) else {
        return clear!("{name} does not grow towards its limit in a line");
    };
    let Some(left) = growth.limit_in() else {
        return clear!("{name} does not meet its limit soon");
    };
    let words = part.words();
    let title = format!(
        "{} meets its limit of {limit} in {left} if it goes on like this: its {words} rose in a \
         line from {} to {} in {}, {}.",
        capital(&name),
        growth.from,
        growth.to,
        growth.growth.judged,
        growth.pace()
    );
    Ok(RULE
        .found(Severity::warning_if(part != GrowingPart::Usage), title)
        .foretells_in(Some(left))
        .shows_from(
            part.signal(),
            growth.to,
            limit,
            cx.time(growth.last),
            format!("{} of {limit}: {words}", growth.to),
        )
        .with_line(growth.growth.method.to_string())
        .counts_as("a line of readings")
        .not("a warm-up", "the rise does not slow down")
        .fix(Fix::say("See which process grows, and restart it in time.").inspect_growth(None))
        .with(growth.rate(), |finding, rate| finding.fix(raised(cx, group, limit, rate)))
        .affects([Affected::new(
            "cgroup",
            &group.key,
            format!("{} {words}, limit {limit}", growth.to),
        )])
        .sure(growth.confidence(words))
        .into())
}

/// Raises a limit that is met at this rate, if there is room.
fn raised(cx: &Evidence<'_>, group: &EntitySeries, limit: Bytes, rate: BytesPerSecond) -> Fix {
    let available = cx.timeline.last(MEM_AVAILABLE);
    let Some(to) = remedy::larger_limit(cx, group, limit, available) else {
        return Fix::say(remedy::NO_ROOM);
    };
    let raise = remedy::raise_limit_to(cx, group, remedy::kills_at(cx), limit, to);
    raise
        .described(format!("Raise the limit to win time. {}", remedy::lasts_words(limit, to, rate)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{Case, changed, clear, found};
    use timeline::Entity::Cgroup;
    use units::Limit;

    const APP: &str = "/system.slice/app.service";

    /// Two reproducible numbers from 0 to 1 for each n.
    fn random(seed: u64, n: u64) -> (f64, f64) {
        let mut state =
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ n.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let mut next = || {
            state ^= state >> 30;
            state = state.wrapping_mul(0xBF58_476D_1CE4_E5B9);
            state ^= state >> 27;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (next(), next())
    }

    /// A cgroup of this many MiB second by second, with noise of `noise` MiB, and a limit.
    fn app(seconds: u64, limit: u64, noise: f64, seed: u64, mib: impl Fn(f64) -> f64) -> Case {
        let sizes: Vec<Bytes> = (0..=seconds)
            .map(|n| {
                let (a, b) = random(seed, n);
                Bytes::from_f64((mib(n as f64) + (a + b - 1.0) * noise).max(1.0) * 1048576.0)
            })
            .collect();
        Case::over(seconds)
            .gauge_of(Cgroup, APP, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(limit)))
            .gauge_steps_of(Cgroup, APP, CGROUP_CURRENT, &sizes)
            .gauge_steps_of(Cgroup, APP, CGROUP_ANON, &sizes)
    }

    fn growth_of(case: &Case) -> Option<SteadyGrowth> {
        case.with(|cx| {
            let group = cx.timeline.entity(Cgroup, APP)?;
            Some(ahead(cx, group)?.0)
        })
    }

    #[test]
    fn twenty_leaks_are_named_after_90_seconds_with_rate_and_time_to_the_limit() {
        for seed in 0..20 {
            let per_second = 0.5 + seed as f64 * 0.4;
            let noise = 2.0 + per_second * 3.0;
            let limit = 300 + seed * 160;
            let begins = 100.0 + seed as f64;
            let case = app(90, limit, noise, seed, |at| begins + per_second * at);
            let growth = growth_of(&case).unwrap_or_else(|| panic!("leak {seed} is not found"));
            let rate = growth.growth.rate.unwrap().rate.get() / 1048576.0;
            let left = growth.limit_in().unwrap().as_secs_f64();
            let really = (limit as f64 - begins - per_second * 90.0) / per_second;
            assert!((rate / per_second - 1.0).abs() < 0.1, "leak {seed}: {rate} of {per_second}");
            assert!((left / really - 1.0).abs() < 0.2, "leak {seed}: {left} of {really}");
        }
    }

    #[test]
    fn twenty_that_warm_up_level_off_or_saw_are_silent() {
        for seed in 0..20 {
            let n = seed as f64;
            let size = |at: f64| match seed % 4 {
                0 => 100.0 + 200.0 * (1.0 - (-at / (30.0 + n * 2.0)).exp()),
                1 => 100.0 + (at * 2.0).min(100.0 + n * 5.0),
                2 => 100.0 + (at % (40.0 + n)) * 2.0,
                _ => 100.0 + 100.0 * (at / (60.0 + n)).sin(),
            };
            let case = app(300, 600, 4.0, seed, size);
            let growth = growth_of(&case);
            assert!(growth.is_none(), "{seed}: {growth:?}");
        }
    }

    #[test]
    fn a_leak_is_a_warning_with_its_pace() {
        let finding = found(RULE, &app(120, 500, 2.0, 1, |at| 100.0 + at));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.title.contains("60 MiB a minute"), "{}", finding.title);
        assert_ne!(finding.confidence.word(), "confirmed");
    }

    #[test]
    fn the_limit_has_the_name_that_it_has_on_the_host() {
        let mut case = app(120, 500, 2.0, 1, |at| 100.0 + at);
        case.facts.cgroup_mode = Some(timeline::facts::CgroupMode::V1);
        let raised = changed(&found(RULE, &case).fixes[1]);
        assert!(raised[0].contains("/memory.limit_in_bytes="), "{raised:?}");
    }

    #[test]
    fn clear_far_from_the_limit_and_without_one() {
        clear(RULE, &app(120, 500_000, 2.0, 1, |at| 100.0 + at));
        let without = app(120, 500, 2.0, 1, |at| 100.0 + at).gauge_of(
            Cgroup,
            APP,
            CGROUP_MAX,
            Limit::Unlimited,
        );
        clear(RULE, &without);
    }

    #[test]
    fn page_cache_that_fills_a_cgroup_is_clear_and_a_total_is_informational() {
        use timeline::signals::{CGROUP_ACTIVE_FILE, CGROUP_INACTIVE_FILE};
        let files: Vec<Bytes> = (0..=120).map(|n| Bytes::from_mib(50 + n)).collect();
        let case = Case::over(120)
            .gauge_of(Cgroup, APP, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(500)))
            .gauge_steps_of(Cgroup, APP, CGROUP_CURRENT, &files)
            .gauge_steps_of(Cgroup, APP, CGROUP_INACTIVE_FILE, &files)
            .gauge_of(Cgroup, APP, CGROUP_ACTIVE_FILE, Bytes::ZERO);
        clear(RULE, &case);
        let total = Case::over(120)
            .gauge_of(Cgroup, APP, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(500)))
            .gauge_steps_of(Cgroup, APP, CGROUP_CURRENT, &files);
        assert_eq!(found(RULE, &total).severity, Severity::Info);
    }
}
