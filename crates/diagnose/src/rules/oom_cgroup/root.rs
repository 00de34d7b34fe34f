//! What led to a kill at a cgroup's limit: files in tmpfs that fill it, or memory that grew in a line until then. A limit
//! that is raised cures neither.

use timeline::Entity::Cgroup;
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_MAX, CGROUP_SHMEM, MEM_AVAILABLE, PROC_RSS_ANON,
};
use units::{Bytes, BytesPerSecond, Limit, PerSecond, Quantity as _, Ratio, Span};

use super::report;
use crate::evidence::Evidence;
use crate::finding::{Affected, Finding, Fix, FixChange, LimitFile, capital};
use crate::measures::grew_until::{GrewUntil, OF_LIMIT, climb};
use crate::measures::readings::held_by_cgroup;
use crate::remedy;
use crate::rule::Incident;
use crate::trigger::Occurrence;

/// tmpfs fills a limit from this part of it on: an engineering choice, as for `cgroup-shmem-large`.
pub(super) const SHARED_MUCH: Ratio = Ratio::from_percent(50.0);
/// A limit is raised to win time only if it wins this much: an engineering choice, the time to find someone who knows the
/// program.
const WORTH_RAISING: Span = Span::from_hours(1);

/// Completes a finding with what led to the kill.
pub(super) fn with_root(cx: &Evidence<'_>, incident: &Incident<'_>, finding: Finding) -> Finding {
    let kill = Occurrence {
        first: incident.stretch.first,
        last: incident.stretch.last,
        key: incident.key.map(str::to_owned),
    };
    let Some(limit) = limit(cx, &kill) else {
        return show_growth(cx, &kill, None, finding);
    };
    if let Some(shared) = shared(cx, &kill).filter(|shared| *shared >= limit.share(SHARED_MUCH)) {
        return of_shared(finding, shared);
    }
    match GrewUntil::in_group(cx, &kill) {
        Some(grew) => of_growth(cx, &kill, limit, &grew, finding),
        None => show_growth(cx, &kill, Some(limit), finding),
    }
}

/// The limit when the kernel killed.
fn limit(cx: &Evidence<'_>, kill: &Occurrence) -> Option<Bytes> {
    let group = cx.timeline.entity(Cgroup, kill.key.as_deref()?);
    let read = || cx.timeline.latest_of(group?, CGROUP_MAX, kill.first)?.limited();
    read().or_else(|| report::limit_at(cx, kill))
}

/// Shared memory and tmpfs in the cgroup at the kill: as its report says, else at the last reading before it.
fn shared(cx: &Evidence<'_>, kill: &Occurrence) -> Option<Bytes> {
    let group = cx.timeline.entity(Cgroup, kill.key.as_deref()?);
    let read = || cx.timeline.latest_of(group?, CGROUP_SHMEM, kill.first);
    report::shared_at(cx, kill).max(read())
}

/// The finding where tmpfs fills the limit.
fn of_shared(mut finding: Finding, shared: Bytes) -> Finding {
    finding.cause = format!(
        "Files in tmpfs or shared segments ({shared}) fill the limit of the cgroup that wrote \
         them. They cannot be dropped, and stay when a process is killed: any program in it that \
         needs a page may be the next."
    );
    finding.fixes.clear();
    finding
        .fix(
            Fix::say(
                "Delete files in tmpfs that are not needed (/dev/shm, /tmp, an emptyDir in \
                 memory), and shared segments that no process uses.",
            )
            .inspect("df -h -t tmpfs\nipcs -m"),
        )
        .fix(Fix::say(
            "Mount it with size= (sizeLimit of an emptyDir) well below the limit: a write then \
             fails, and no process is killed. Or keep these files on a disk.",
        ))
        .fix(Fix::say(
            "If all these files are needed, the limit must hold them besides the memory of the \
             programs.",
        ))
}

/// Takes the fixes of a finding away, and returns what raises the limit at which the kernel kills, without its words.
fn take_raise(finding: &mut Finding) -> Option<Fix> {
    let is_max = |change: &FixChange| kills_above(change).is_some();
    let fixes = std::mem::take(&mut finding.fixes);
    let raise = fixes.into_iter().find(|fix| fix.changes.iter().any(is_max))?;
    Some(Fix { what: String::new(), ..raise })
}

/// The finding where memory grew in a line until the limit.
fn of_growth(
    cx: &Evidence<'_>,
    kill: &Occurrence,
    limit: Bytes,
    grew: &GrewUntil<'_>,
    mut finding: Finding,
) -> Finding {
    let (who, course) = (grew.who(), grew.course());
    let does = match grew.process {
        Some(_) => "takes ever more memory and does not give it back",
        None => "take ever more anonymous memory and do not give it back",
    };
    finding.title = finding.title.adding(&format!("; {who} had grown in a line {course}"));
    finding.cause = format!(
        "{} {does}: a leak, or a cache or a queue without a bound. The limit is where that ended, \
         not why.",
        grew.process.map_or_else(|| capital(&who), |_| who.clone())
    );
    let raise = take_raise(&mut finding);
    let signal = if grew.is_of_group { CGROUP_ANON } else { PROC_RSS_ANON };
    let rooted = finding
        .shows(
            signal,
            grew.growth.to,
            cx.time(grew.growth.last),
            format!("{who} grew in a line {course}, until the kill"),
        )
        .with_line(grew.growth.growth.method.to_string())
        .fix(find_it(grew))
        .fix(Fix::say(
            "Until that is mended, restart it before it meets the limit: \
             RuntimeMaxSec= in its unit does.",
        ))
        .fix(only_delays(cx, kill, limit, grew, raise));
    let Some(process) = grew.process else {
        return rooted;
    };
    let is_known = rooted.affected.iter().any(|one| one.name == process.label);
    let affected = Affected::new("process", &process.label, format!("grew {course}"));
    rooted.affects((!is_known).then_some(affected))
}

/// Where to find what is kept.
fn find_it(grew: &GrewUntil<'_>) -> Fix {
    let Some(process) = grew.process else {
        return Fix::say("See which of its programs grow, or whether there are ever more of them.")
            .inspect_growth(None);
    };
    Fix::say(format!(
        "Find what {} keeps: see its course, then what its heap holds while it runs.",
        process.label
    ))
    .inspect_growth(Some(&process.label))
}

/// How long a larger limit would last.
fn only_delays(
    cx: &Evidence<'_>,
    kill: &Occurrence,
    limit: Bytes,
    grew: &GrewUntil<'_>,
    raise: Option<Fix>,
) -> Fix {
    const LOADS: &str = "If it only loads its data, the limit must hold all of them.";
    let group = kill.key.as_deref().and_then(|key| cx.timeline.entity(Cgroup, key));
    let now = group.and_then(|group| cx.timeline.last_of(group, CGROUP_MAX));
    match now {
        Some(Limit::Unlimited) => {
            return Fix::say(format!("It has no limit now: it grows on into the host. {LOADS}"));
        }
        Some(Limit::Bytes(now)) if now > limit => {
            let lasts = grew.lasts(now.saturating_sub(limit));
            return Fix::say(format!("Its limit is {now} now, which lasts {lasts} more. {LOADS}"));
        }
        _ => {}
    }
    let path = kill.key.as_deref().unwrap_or_default();
    let available = cx.level(MEM_AVAILABLE, kill.first);
    let Some(more) = remedy::larger_limit_of(cx, path, limit, available) else {
        return Fix::say(format!("{} {LOADS}", remedy::NO_ROOM));
    };
    let lasts = grew.lasts(more.saturating_sub(limit));
    let words = format!(
        "A larger limit alone only delays the next kill: {more} lasts {lasts} more at this rate. \
         {LOADS}"
    );
    match raise.filter(|_| lasts >= WORTH_RAISING) {
        Some(raise) => raise.described(words),
        None => Fix::say(words),
    }
}

/// Adds how fast the cgroup grew in the seconds before the kill, where that was no line: its anonymous memory, to which
/// page cache gives way; all of it where the source has no more. Between two readings a track repeats the earlier one,
/// so only the readings themselves give a rate.
fn show_growth(
    cx: &Evidence<'_>,
    kill: &Occurrence,
    limit: Option<Bytes>,
    mut finding: Finding,
) -> Finding {
    let Some(group) = kill.key.as_deref().and_then(|key| cx.timeline.entity(Cgroup, key)) else {
        return finding;
    };
    let anon = held_by_cgroup().track_of(cx, group);
    let (size, signal, what) = match anon {
        Ok(anon) => (anon, CGROUP_ANON, "the cgroup's anonymous memory"),
        Err(_) => match cx.gauge_of(group, CGROUP_CURRENT) {
            Ok(all) => (all, CGROUP_CURRENT, "the cgroup"),
            Err(_) => return finding,
        },
    };
    let Some(((low, from), (last, to))) = climb(cx, &size, kill) else {
        return finding;
    };
    let times = cx.timeline.times();
    let took = times[last] - times[low];
    let grown = to.saturating_sub(from);
    let rate = PerSecond::<Bytes>::over(grown.as_f64(), took);
    let Some(rate) = rate.filter(|_| grown >= GROWTH_SHOWN) else {
        return finding;
    };
    if let Some(limit) = limit.filter(|limit| grown >= limit.share(OF_LIMIT)) {
        say_how_long(&mut finding, limit, rate);
    }
    let text = format!("{what} grew from {from} to {to} in the {took} before the kill ({rate})");
    finding.shows(signal, to, cx.time(last), text)
}

/// A growth by less is none: charges come in batches.
const GROWTH_SHOWN: Bytes = Bytes::from_mib(1);

/// Says first how long the limit that is advised lasts at a rate: a size alone reads as if it were enough.
fn say_how_long(finding: &mut Finding, limit: Bytes, rate: BytesPerSecond) {
    for fix in &mut finding.fixes {
        let to = fix.changes.iter().find_map(kills_above);
        if let Some(to) = to {
            fix.what = format!("{} {}", remedy::lasts_words(limit, to, rate), fix.what);
        }
    }
}

/// The limit at which the kernel kills, if that is what changes.
fn kills_above(change: &FixChange) -> Option<Bytes> {
    match change {
        FixChange::Limit(limit) if matches!(limit.file, LimitFile::Max | LimitFile::MaxV1) => {
            Some(limit.to)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::RULE;
    use super::*;
    use crate::finding::Inspection;
    use crate::oom::testing::Report;
    use crate::rules::testing::{Case, changed, found};
    use timeline::Entity;
    use timeline::signals::{CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL, CGROUP_FILE};

    const APP: &str = "/app";
    /// The kill lies between this sample and the next.
    const KILL: usize = 80;

    /// A cgroup at its limit of 200 MiB with `anon` MiB, the rest page cache, until the kernel kills in it.
    fn app(anon: impl Fn(u64) -> u64) -> Case {
        let mut kills = vec![0; 100];
        kills[KILL] = 1;
        let sizes: Vec<u64> =
            (0..=100).map(|n| if n <= KILL as u64 { anon(n) } else { 1 }).collect();
        let mib = |all: &[u64]| all.iter().map(|mib| Bytes::from_mib(*mib)).collect::<Vec<_>>();
        let files: Vec<u64> = sizes.iter().map(|anon| 200 - anon).collect();
        Case::over(100)
            .gauge_of(Cgroup, APP, CGROUP_MAX, Limit::Bytes(Bytes::from_mib(200)))
            .gauge_of(Cgroup, APP, CGROUP_CURRENT, Bytes::from_mib(199))
            .gauge_steps_of(Cgroup, APP, CGROUP_ANON, &mib(&sizes))
            .gauge_steps_of(Cgroup, APP, CGROUP_FILE, &mib(&files))
            .counter_steps_of(Cgroup, APP, CGROUP_EVENTS_OOM_KILL, &kills)
            .counter_steps_of(Cgroup, APP, CGROUP_EVENTS_OOM, &kills)
    }

    /// A process of the cgroup, which is killed.
    fn killed(case: Case, group: &str, mib: impl Fn(u64) -> u64) -> Case {
        let sizes: Vec<u64> = (0..=KILL as u64).map(mib).collect();
        case.process_in(group, "29508@1", "python3", &sizes)
    }

    fn raised(finding: &Finding) -> Vec<String> {
        finding.fixes.iter().flat_map(changed).collect()
    }

    /// 20 MiB, and from second 20 on 3 MiB more each second.
    fn leak(second: u64) -> u64 {
        20 + second.saturating_sub(20) * 3
    }

    #[test]
    fn a_line_until_the_kill_is_the_root_with_process_rate_and_length() {
        let finding = found(RULE, &killed(app(leak), "app", leak));
        let course = "python3 (29508) had grown in a line from 20 MiB to 200 MiB in 60 s, 3 MiB/s";
        assert!(finding.title.first().contains(course), "{}", finding.title);
        assert!(finding.cause.contains("a leak, or a cache or a queue"), "{}", finding.cause);
        let fixes: Vec<&str> = finding.fixes.iter().map(|fix| fix.what.as_str()).collect();
        assert!(fixes[0].starts_with("Find what python3 keeps"), "{fixes:?}");
        let by_name = Inspection::Growth { of: Some("python3".to_owned()) };
        assert_eq!(finding.fixes[0].inspect, by_name, "its PID is that of one that is dead");
        assert!(fixes.last().unwrap().contains("250 MiB lasts 17 s more"), "{fixes:?}");
        assert!(raised(&finding).is_empty());
    }

    #[test]
    fn a_limit_that_wins_hours_is_raised_to_win_time() {
        // 3 MiB each ten minutes.
        let case = |every| killed(app(leak), "app", leak).spaced(every);
        let slow = found(RULE, &case(Span::from_mins(10)));
        assert!(raised(&slow)[0].contains("/app/memory.max="), "{:?}", raised(&slow));
    }

    #[test]
    fn what_needs_more_than_its_limit_is_no_leak() {
        // It takes what it needs within seconds, and stands there.
        let load = |second: u64| if second < 60 { 20 } else { (20 + (second - 60) * 18).min(199) };
        // One that grows elsewhere.
        for case in [
            killed(app(load), "app", load),
            killed(app(|_| 190), "app", |_| 150).process_in(
                "other",
                "7@1",
                "java",
                &(0..=100).map(leak).collect::<Vec<_>>(),
            ),
        ] {
            let finding = found(RULE, &case);
            assert!(!finding.title.contains("in a line"), "{}", finding.title);
            assert!(!raised(&finding).is_empty());
        }
    }

    #[test]
    fn a_limit_for_what_grew_until_the_kill_is_advised_with_how_long_it_lasts() {
        // In seconds, which may be a program that loads its data.
        let load = |second: u64| if second < 60 { 20 } else { (20 + (second - 60) * 9).min(199) };
        let case = killed(app(load), "app", load).gauge(MEM_AVAILABLE, Bytes::from_gib(4));
        let finding = found(RULE, &case);
        let what = &finding.fixes[0].what;
        assert!(
            what.starts_with("A limit of 800 MiB lasts 67 s more at 8.9 MiB/s. See whether"),
            "{what}"
        );
        assert!(what.contains("Raise the limit to 800 MiB"), "{what}");
        let stood = killed(app(|_| 198), "app", |_| 150);
        let what = found(RULE, &stood).fixes[0].what.clone();
        assert!(what.starts_with("Raise the limit"), "{what}");
    }

    #[test]
    fn a_process_that_is_read_rarely_is_named_by_its_part_of_the_growth() {
        let rarely = |mib: fn(u64) -> u64| {
            let case = killed(app(leak), "app", mib).read_every(20, Entity::Process);
            found(RULE, &case).title.to_string()
        };
        assert!(rarely(leak).contains("python3 (29508) had grown in a line from 20 MiB"));
        assert!(rarely(|_| 20).contains("the programs of the cgroup had grown"));
    }

    #[test]
    fn without_a_process_that_grows_it_is_the_cgroup() {
        let finding = found(RULE, &app(leak));
        let course = "the programs of the cgroup had grown in a line from 20 MiB to 200 MiB";
        assert!(finding.title.contains(course), "{}", finding.title);
    }

    #[test]
    fn files_in_tmpfs_that_fill_the_limit_are_the_cause() {
        let case = |shared: u64| {
            killed(app(|_| 30), "app", |_| 3).gauge_of(
                Cgroup,
                APP,
                CGROUP_SHMEM,
                Bytes::from_mib(shared),
            )
        };
        let finding = found(RULE, &case(148));
        assert!(finding.cause.contains("tmpfs or shared segments (148 MiB)"), "{}", finding.cause);
        assert!(finding.fixes[0].what.starts_with("Delete files"), "{:?}", finding.fixes);
        assert!(finding.fixes.iter().all(|fix| !fix.what.contains("heap")));
        let little = found(RULE, &case(40));
        assert!(little.fixes[0].what.contains("heap"), "{:?}", little.fixes);
    }

    #[test]
    fn tmpfs_in_the_kernels_report_is_the_cause_too() {
        let mut report = Report::of_a_group(204_800, 204_800);
        if let Some(group) = &mut report.0.group {
            group.stat = vec![("rss".to_owned(), 3 << 20), ("shmem".to_owned(), 190 << 20)];
        }
        let finding = found(RULE, &Case::of_report(report));
        assert!(finding.fixes[0].what.starts_with("Delete files"), "{:?}", finding.fixes);
    }
}
