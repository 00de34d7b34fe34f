//! A cgroup that is asked about grows, and meets a limit within minutes at that rate: a growth of seconds, which may end
//! where a program has loaded its data. For the host as a whole that would be every program that starts; who asks about
//! one cgroup wants to know it before the kill.

use timeline::Entity::Cgroup;
use timeline::EntitySeries;
use timeline::signals::CGROUP_MAX;
use units::{Bytes, BytesPerSecond, Count, PerSecond, Quantity as _, Ratio, Span};

use super::{GrowingPart, RULE, raised};
use crate::evidence::Evidence;
use crate::finding::{Affected, Confidence, Finding, Fix, Severity, capital};
use crate::measures::cgroups;

/// A growth of seconds is projected for at most this many times as long as it was seen: an engineering choice.
const PROJECTED: f64 = 3.0;
/// Where more time is left, a longer watch shows whether it is a line: an engineering choice.
const SOON: Span = Span::from_mins(5);
/// A climb has at least this many readings: an engineering choice.
const READINGS_MIN: usize = 4;
/// A smaller growth is the noise of a cgroup of that limit: an engineering choice.
const OF_LIMIT: Ratio = Ratio::from_percent(2.0);
/// The same of any cgroup: charges come in batches.
const NOISE: Bytes = Bytes::from_mib(1);
/// Changes of less than this part of a climb are wobble: an engineering choice.
const WOBBLE: f64 = 0.05;
/// A single step of more than this part of a climb is a jump, before which it does not begin: an engineering choice.
const JUMP: f64 = 0.5;
/// It goes on if its late pace is this part of the mean one or more: an engineering choice.
const SAME_PACE: f64 = 0.5;
/// From this many times the mean pace on it became faster, and only its last half counts: an engineering choice.
const FASTER: f64 = 1.25;

/// A size that rises until its last reading.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Climb {
    first: usize,
    last: usize,
    from: Bytes,
    to: Bytes,
    took: Span,
    readings: usize,
    rate: BytesPerSecond,
}

/// One reading of a size.
#[derive(Debug, Clone, Copy)]
struct SizeAt {
    index: usize,
    at: Span,
    bytes: f64,
}

impl Climb {
    /// Returns the climb with which readings end; `None` if they do not.
    fn at_the_end(readings: &[SizeAt]) -> Option<Self> {
        let mut run = &readings[beginning(readings)?..];
        loop {
            let pace = pace(run)?;
            let late = late_pace(run)?;
            if late < pace * SAME_PACE {
                return None;
            }
            // What became faster goes on as fast as it is now.
            let half = late_half(run);
            if late <= pace * FASTER || half.len() < READINGS_MIN {
                break;
            }
            run = half;
        }
        let (first, last) = (run.first()?, run.last()?);
        (run.len() >= READINGS_MIN).then_some(())?;
        Some(Self {
            first: first.index,
            last: last.index,
            from: Bytes::from_f64(first.bytes),
            to: Bytes::from_f64(last.bytes),
            took: last.at.saturating_sub(first.at),
            readings: run.len(),
            rate: PerSecond::new(pace(run)?),
        })
    }
}

/// Returns where the climb begins with which readings end: after the last fall, after the last jump, and where it left its
/// low.
fn beginning(readings: &[SizeAt]) -> Option<usize> {
    let to = readings.last()?.bytes;
    let mut first = readings.len() - 1;
    for (at, reading) in readings.iter().enumerate().rev() {
        let low = readings[first].bytes;
        if reading.bytes > low + (to - low) * WOBBLE {
            break;
        }
        if reading.bytes < low {
            first = at;
        }
    }
    loop {
        let low = readings[first].bytes;
        let edge = low + (to - low) * WOBBLE;
        let left = readings[first..].iter().rposition(|reading| reading.bytes <= edge)?;
        first += left;
        let grown = to - readings[first].bytes;
        let step = |two: &[SizeAt]| two[1].bytes - two[0].bytes > grown * JUMP;
        let Some(jump) = readings[first..].windows(2).rposition(step).filter(|_| grown > 0.0)
        else {
            return Some(first);
        };
        first += jump + 1;
    }
}

/// The mean pace in bytes a second.
fn pace(run: &[SizeAt]) -> Option<f64> {
    let (first, last) = (run.first()?, run.last()?);
    let seconds = last.at.saturating_sub(first.at).as_secs_f64();
    (seconds > 0.0 && last.bytes > first.bytes).then(|| (last.bytes - first.bytes) / seconds)
}

fn late_half(run: &[SizeAt]) -> &[SizeAt] {
    &run[run.len() / 2..]
}

/// The pace of the last half; zero where that stands.
fn late_pace(run: &[SizeAt]) -> Option<f64> {
    (run.len() >= READINGS_MIN).then(|| pace(late_half(run)).unwrap_or(0.0))
}

/// Returns the finding where a cgroup grows, and meets its limit or one around it soon at that rate. `was_killed`: the kernel
/// killed in it; without that, what was as high before and fell again does so now.
pub(crate) fn finding(
    cx: &Evidence<'_>,
    group: &EntitySeries,
    was_killed: bool,
) -> Option<Finding> {
    let (part, size) = GrowingPart::of(cx, group);
    if part == GrowingPart::Usage {
        return None;
    }
    let size = size?;
    let readings: Vec<SizeAt> = (0..size.values().len())
        .filter(|index| cx.timeline.was_read(Cgroup, *index))
        .filter_map(|index| {
            Some(SizeAt { index, at: cx.time(index)?, bytes: size.at(index)?.as_f64() })
        })
        .collect();
    let climb = Climb::at_the_end(&readings)?;
    // A cgroup that is gone grows no more.
    cx.timeline.read_after(Cgroup, climb.last + 1).is_none().then_some(())?;
    let before = readings.iter().filter(|reading| reading.index < climb.first);
    let highest = before.map(|reading| reading.bytes).fold(0.0, f64::max);
    if !was_killed && Bytes::from_f64(highest) >= climb.to {
        return None;
    }
    let (limited, limit, room) = nearest_limit(cx, group)?;
    let grown = climb.to.saturating_sub(climb.from);
    let left = Span::from_secs_f64(room.as_f64() / climb.rate.get());
    let is_near = left <= climb.took.times(PROJECTED) && left <= SOON;
    if !is_near || grown < limit.share(OF_LIMIT).max(NOISE) {
        return None;
    }
    let Climb { took, rate, .. } = climb;
    let below = if limited.key == group.key {
        format!("its limit of {limit}")
    } else {
        format!("the limit of {limit} of {}", cgroups::called(cx, limited))
    };
    let title = format!(
        "{} grew {rate} in the last {took}, and {room} is left below {below}: {left} at this rate. \
         {took} does not show whether it goes on.",
        capital(&cgroups::called(cx, group))
    );
    let words = part.words();
    let course = format!("{words} rose from {} to {} in {took}", climb.from, climb.to);
    Some(
        RULE.found(Severity::Warning, title)
            .during(cx.timeline.stretch(climb.first, climb.last)?)
            .foretells_in(Some(left))
            .shows(part.signal(), climb.to, cx.time(climb.last), course)
            .counts_as("readings of seconds")
            .fix(raised(cx, limited, limit, rate))
            .fix(Fix::say("See which process grows.").inspect_growth(None))
            .affects([Affected::new(
                "cgroup",
                &group.key,
                format!("{} {words}, limit {limit}", climb.to),
            )])
            .sure(Confidence {
                value: 0.5,
                why: format!(
                    "rests on {} readings in {took}: a program that loads its data grows like that, \
                     too",
                    Count::new(climb.readings as u64)
                ),
            }),
    )
}

/// The limit of a cgroup, or of one around it, that has least room for what cannot be dropped, with that room.
fn nearest_limit<'a>(
    cx: &Evidence<'a>,
    group: &'a EntitySeries,
) -> Option<(&'a EntitySeries, Bytes, Bytes)> {
    let ram = cx.ram().ok();
    let limits = cgroups::upwards(cx, group).filter_map(|level| {
        let limit = cx.timeline.last_of(level, CGROUP_MAX)?.limited()?;
        let is_below_ram = ram.is_none_or(|ram| limit < ram);
        let (_, size) = GrowingPart::of(cx, level);
        let room = limit.saturating_sub(size?.last()?);
        is_below_ram.then_some((level, limit, room))
    });
    limits.min_by_key(|(_, _, room)| *room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::diagnose;
    use crate::judge::verdict::Level;
    use crate::rules::testing::{Case, changed};
    use timeline::signals::{
        CGROUP_ACTIVE_FILE, CGROUP_CURRENT, CGROUP_INACTIVE_FILE, MEM_AVAILABLE, MEM_TOTAL,
    };
    use units::Limit;

    const APP: &str = "/app";

    /// A cgroup with a limit of 250 MiB and these sizes, second by second, without page cache.
    fn app(mib: impl IntoIterator<Item = f64>) -> Case {
        let bytes = |mib: f64| Bytes::from_f64(mib * 1048576.0);
        let sizes: Vec<Bytes> = mib.into_iter().map(bytes).collect();
        Case::over(sizes.len() as u64 - 1)
            .gauge(MEM_TOTAL, Bytes::from_gib(8))
            .gauge(MEM_AVAILABLE, Bytes::from_gib(6))
            .gauge_of(Cgroup, APP, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(250)))
            .gauge_steps_of(Cgroup, APP, CGROUP_CURRENT, &sizes)
            .gauge_of(Cgroup, APP, CGROUP_INACTIVE_FILE, Bytes::ZERO)
            .gauge_of(Cgroup, APP, CGROUP_ACTIVE_FILE, Bytes::ZERO)
    }

    fn soon(case: &Case, was_killed: bool) -> Option<Finding> {
        case.with(|cx| finding(cx, cx.timeline.entity(Cgroup, APP)?, was_killed))
    }

    /// 2.4 MiB more each second, up to 239 MiB.
    fn leak(seconds: u64) -> impl Iterator<Item = f64> {
        (0..=seconds).rev().map(|left| 239.0 - 2.4 * left as f64)
    }

    #[test]
    fn ten_seconds_of_growth_before_a_kill_are_a_warning_about_the_cgroup_asked_about() {
        let case = app(leak(10));
        let about = case.with(|cx| diagnose(cx.timeline, cx.facts).about(cx, APP, 0));
        assert_eq!(about.diagnosis.verdict.level, Level::Warning);
        assert_eq!(
            about.diagnosis.verdict.headline,
            "Cgroup /app grew 2.4 MiB/s in the last 10 s, and 11 MiB is left below its limit of 250 \
             MiB: 4.6 s at this rate. 10 s does not show whether it goes on."
        );
        let finding = &about.diagnosis.findings[0];
        assert_eq!(finding.confidence.word(), "possible");
        assert!(finding.fixes[0].what.contains("A limit of 1,000 MiB lasts 5.2 min more"));
        assert_eq!(
            changed(&finding.fixes[0]),
            ["/app/memory.max=262144000 -> /app/memory.max=1048576000"]
        );
        // Of a whole host that is every program that starts.
        let host = case.with(|cx| diagnose(cx.timeline, cx.facts));
        assert!(host.findings.is_empty(), "{:?}", host.findings);
    }

    #[test]
    fn what_stands_or_slows_down_or_has_time_is_silent() {
        let loaded = leak(10).chain(std::iter::repeat_n(239.0, 6));
        let slower = (0..20).map(|at| 240.0 - 100.0 * (-f64::from(at) / 4.0).exp());
        let jumped = [60.0, 60.0, 60.0, 238.0, 238.0, 239.0, 239.0, 239.0];
        let far = (0..=10).map(|at| 50.0 + 2.4 * f64::from(at));
        for (name, case) in [
            ("loaded", app(loaded)),
            ("slower", app(slower)),
            ("jumped", app(jumped)),
            ("far", app(far)),
            ("short", app(leak(2))),
        ] {
            assert!(soon(&case, false).is_none(), "{name}: {:?}", soon(&case, false));
        }
    }

    #[test]
    fn what_was_as_high_before_and_fell_does_so_again_unless_it_was_killed() {
        let sawtooth = || leak(20).chain([30.0; 5]).chain(leak(30).take(28));
        assert!(soon(&app(sawtooth()), false).is_none());
        let again = soon(&app(sawtooth()), true).unwrap();
        assert!(again.title.first().contains("2.4 MiB/s in the last 26 s"), "{}", again.title);
    }

    #[test]
    fn what_became_faster_is_projected_as_fast_as_it_is_now() {
        let slow = (0..100).map(|at| 150.0 + 0.1 * f64::from(at));
        let finding = soon(&app(slow.chain((0..=15).map(|at| 160.0 + 4.0 * f64::from(at)))), false);
        assert!(finding.as_ref().unwrap().title.first().contains("4 MiB/s"), "{finding:?}");
    }
}
