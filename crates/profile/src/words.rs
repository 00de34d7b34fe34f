//! Sentences of a profile: of the JSON contract and of the screen.

use timeline::cgroup::ROOT;
use timeline::plain::escape;
use units::{Bytes, Count, Ratio, Span};

use crate::cgroup_stalls::{CgroupStalls, MetLimit, MetLimitKind};
use crate::collected::{BlockedHow, CpuUnit, NotMeasured};
use crate::kernel_work::KernelWork;
use crate::limits::{HOT_SAMPLES_MIN, HOT_SHARE};
use crate::model::{EpisodeSummary, HotBy, NameShare, ProfileReport, PurposeShare, ReasonRow};
use crate::purpose::Purpose;
use crate::reason::{Reason, ReasonGroup};

/// Below this share of all CPUs a host is idle.
const IDLE_BELOW: f64 = 0.01;
/// A price from this share of the busy CPU on is worth a sentence.
const PRICE_WORTH_SAYING: f64 = 0.10;
/// What stands for a cgroup in a remedy of the table.
const CGROUP_PLACE: &str = "NAME";
/// From this share of the busy CPU on zeroing is worth a line.
const ZEROING_WORTH_SAYING: f64 = 0.05;
/// What is rounded to 100 %.
const ALL_OF_IT: f64 = 0.995;
/// A thread's name stands in the headline where it has so much of a reason.
const COMM_WORTH_SAYING: f64 = 0.9;
/// Of a purpose below this share of a reason the headline does not speak.
const PURPOSE_WORTH_SAYING: f64 = 0.10;

/// `33 %` in a sentence.
pub(crate) fn percent(share: f64) -> String {
    Ratio::new(share).to_string()
}

/// `33 %`, rounded: an interval of a percent makes digits behind the point a lie.
fn whole_percent(share: f64) -> String {
    if share >= 0.1 {
        Ratio::from_percent((share * 100.0).round()).to_string()
    } else {
        percent(share)
    }
}

/// Formats a mean number of tasks: `3.44`.
pub(crate) fn tasks(number: f64) -> String {
    // The sum of no waits is -0 in floating point.
    let number = number.max(0.0);
    if number >= 10.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The first lines of the answer.
pub(crate) fn headline(report: &ProfileReport) -> String {
    if let Some(first) = report.hot.first() {
        return hot_headline(report, first);
    }
    if are_backtraces(report) {
        let number = report.cpu.as_ref().and_then(|cpu| cpu.samples);
        return backtraces(report, number.unwrap_or(0.0));
    }
    if is_idle(report) {
        return "The machine was idle: nothing to explain. --when waits for the right moment."
            .to_owned();
    }
    calm_headline(report)
}

fn hot_headline(report: &ProfileReport, first: &ReasonRow) -> String {
    let means = if first.reason.is_file_wait() {
        "what they read was in memory before and was evicted (refaults)"
    } else {
        &first.means
    };
    let who = first
        .comms
        .first()
        .filter(|one| one.of_reason >= COMM_WORTH_SAYING && !first.reason.is_background());
    let in_whom = who.map(|one| format!(" in {}", escape(&one.name))).unwrap_or_default();
    let at_limit = matches!(first.reason, Reason::MemcgMax | Reason::MemcgHigh);
    let cgroup = first
        .cgroups
        .first()
        .filter(|one| at_limit && one.of_reason >= COMM_WORTH_SAYING && one.name != ROOT);
    let of_cgroup = cgroup.map(|one| format!(" ({})", escape(&one.name))).unwrap_or_default();
    let mut text = format!(
        "{}{of_cgroup}{in_whom} {}: {means}.",
        sentence(&first.label),
        costs(report, first)
    );
    let purposes: Vec<String> = first
        .purposes
        .iter()
        .filter(|one| one.of_reason >= PURPOSE_WORTH_SAYING)
        .take(2)
        .enumerate()
        .map(|(at, one)| {
            let was = if at == 0 { " of it was started" } else { "" };
            let part = whole_percent(one.of_reason);
            let part = if one.of_reason > ALL_OF_IT { "All".to_owned() } else { part };
            format!("{part}{was} by {}", purpose(one))
        })
        .collect();
    if !purposes.is_empty() {
        text.push_str(&format!(" {}.", purposes.join(", ")));
    }
    let base: f64 = first.works.iter().map(|work| work.share).sum();
    let most = first.works.first().filter(|work| work.share > base / 2.0);
    if let Some(work) = most.filter(|work| work.work == KernelWork::SlabShrink) {
        text.push_str(&format!(" Most of it is {}: dentries and inodes.", work.work.means()));
    }
    if let Some(share) = report.swap_share.filter(|share| *share >= PRICE_WORTH_SAYING) {
        text.push_str(&format!(" Swapping takes {} in all.", whole_percent(share)));
    }
    let others: Vec<String> = report
        .hot
        .iter()
        .skip(1)
        .map(|row| {
            let by = row.share.filter(|_| row.hot_by.contains(&HotBy::Share));
            by.map_or_else(
                || row.label.clone(),
                |share| format!("{} {}", row.label, whole_percent(share)),
            )
        })
        .collect();
    if !others.is_empty() {
        text.push_str(&format!(" Also hot: {}.", others.join(", ")));
    }
    text
}

/// A profile in a few words, for a list: `61 % of busy CPU in node reclaim in java`.
pub(crate) fn in_brief(report: &ProfileReport) -> String {
    let Some(first) = report.hot.first() else {
        let trouble = report.reasons.iter().filter(|row| row.group == ReasonGroup::Trouble);
        let share: f64 = trouble.filter_map(|row| row.share).sum();
        return match &report.cpu {
            Some(_) if is_nameless(report) => "kernel functions have no names".to_owned(),
            Some(_) => format!("nothing hot, {} of busy CPU in memory trouble", percent(share)),
            None => "nothing hot".to_owned(),
        };
    };
    let by = |one: HotBy| first.hot_by.contains(&one);
    let label = &first.label;
    let mut text = match (first.share, first.stalled_tasks, &first.episodes) {
        (Some(share), ..) if by(HotBy::Share) => {
            format!("{} of busy CPU in {label}", whole_percent(share))
        }
        (_, Some(stalled), _) if by(HotBy::StalledTasks) => {
            format!("{} tasks waiting for {label}", tasks(stalled))
        }
        (.., Some(times)) => {
            format!(
                "{} in {} of {label}",
                Span::from_secs_f64(times.total_s),
                counted(times.count, "episode")
            )
        }
        _ => label.clone(),
    };
    let is_most = |one: &&NameShare| one.of_reason >= COMM_WORTH_SAYING;
    if let Some(who) = first.comms.first().filter(is_most).filter(|_| !first.reason.is_background())
    {
        text.push_str(&format!(" in {}", escape(&who.name)));
    }
    if let Some(cgroup) = first.cgroups.first().filter(is_most).filter(|one| one.name != ROOT) {
        text.push_str(&format!(" ({})", escape(&cgroup.name)));
    }
    text
}

/// What a hot reason costs, as the rest of a sentence.
fn costs(report: &ProfileReport, row: &ReasonRow) -> String {
    let mut parts = Vec::new();
    let by = |one: HotBy| row.hot_by.contains(&one);
    if let Some(share) = row.share.filter(|_| by(HotBy::Share)) {
        parts.push(format!("takes {} of the busy CPU", whole_percent(share)));
    }
    if let Some(stalled) = row.stalled_tasks.filter(|_| by(HotBy::StalledTasks)) {
        let is_polled =
            report.blocked.as_ref().is_some_and(|blocked| blocked.how == BlockedHow::Polled);
        let about = if is_polled { "about " } else { "" };
        parts.push(format!("keeps {about}{} tasks waiting on average", tasks(stalled)));
    }
    if let Some(times) = row.episodes.as_ref().filter(|_| by(HotBy::Episodes)) {
        parts.push(format!(
            "took {} in {} ({})",
            Span::from_secs_f64(times.total_s),
            counted(times.count, "episode"),
            longest(times)
        ));
    }
    parts.join(" and ")
}

fn longest(times: &EpisodeSummary) -> String {
    format!("the longest {}", Span::from_secs_f64(times.max_s))
}

/// `1 episode`, `41,220 episodes`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", Count::new(number))
}

/// `page cache for write()`.
pub(crate) fn purpose(one: &PurposeShare) -> String {
    let mut text = one.purpose.label().to_owned();
    match one.entry.as_str() {
        "-" | "irq" => {}
        "page-fault" if one.purpose == Purpose::AnonymousMemory => {}
        "page-fault" => text.push_str(" for page faults"),
        "kthread" => text.push_str(" for kernel threads"),
        "return-to-user" => text.push_str(" on the return to user mode"),
        call => text.push_str(&format!(" for {call}()")),
    }
    if let Some(function) = one.function.as_ref().filter(|_| one.purpose == Purpose::SocketBuffers)
    {
        text.push_str(&format!(" ({function})"));
    }
    text
}

/// Whether nothing ran and nothing waited.
pub(crate) fn is_idle(report: &ProfileReport) -> bool {
    let is_quiet =
        report.cpu.as_ref().is_some_and(|cpu| cpu.busy_share.is_some_and(|busy| busy < IDLE_BELOW));
    let waits = report.blocked.as_ref().and_then(|blocked| blocked.tasks).unwrap_or(0.0);
    is_quiet && waits < 0.1
}

/// Whether it has single backtraces, which have no shares.
pub(crate) fn are_backtraces(report: &ProfileReport) -> bool {
    report.cpu.as_ref().is_some_and(|cpu| cpu.unit == CpuUnit::Backtraces)
}

/// What backtraces are of.
fn backtraces(report: &ProfileReport, number: f64) -> String {
    let named: Vec<String> = report
        .reasons
        .iter()
        .filter(|row| row.samples.is_some_and(|samples| samples > 0.0))
        .take(3)
        .map(|row| {
            let work = row.work.map(|work| format!(" ({})", work.means())).unwrap_or_default();
            // Of several, how many.
            let times = row.samples.filter(|samples| *samples < number);
            let several = times.map(|times| format!("{times:.0} × ")).unwrap_or_default();
            format!("{several}{}{work}", row.label)
        })
        .collect();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few
    let number = number.round() as u64;
    let what = counted(number, "backtrace");
    format!("{what}: {}. So few say what happened, not how often.", named.join("; "))
}

/// Whether so much has no name that trouble may hide in it.
pub(crate) fn is_nameless(report: &ProfileReport) -> bool {
    nameless_share(report).is_some()
}

/// The share of the busy CPU in the kernel without names, where trouble may hide in it.
fn nameless_share(report: &ProfileReport) -> Option<f64> {
    report.cpu.as_ref()?.nameless_share.filter(|share| *share >= HOT_SHARE)
}

fn calm_headline(report: &ProfileReport) -> String {
    if let Some(why) = not_judged(report) {
        return why;
    }
    let work = calm_work(report);
    if report.cpu.is_none() && report.origin.files.is_empty() {
        return without_cpu(report, &work);
    }
    if let Some(reread) = report.reread_bytes.filter(|_| report.origin.scope.is_none()) {
        return reread_meanwhile(report, Bytes::new(reread), &work);
    }
    let first = match (&report.cpu, &report.origin.scope) {
        (Some(_), None) => "Memory is not what makes this host slow",
        (Some(_), Some(_)) => "Memory is not what makes it slow",
        (None, _) => "No trouble with memory is seen",
    };
    format!("{first}: reclaim, compaction and swapping {work}.{}", largest_work(report))
}

fn is_trouble(row: &&ReasonRow) -> bool {
    row.group == ReasonGroup::Trouble
}

/// Why there is no judgement: too few samples, or what took the time has no name.
fn not_judged(report: &ProfileReport) -> Option<String> {
    if let Some(share) = nameless_share(report) {
        return Some(format!(
            "{} of the busy CPU is in kernel functions without names: whether it is for memory is unknown.",
            whole_percent(share)
        ));
    }
    let samples = report.cpu.as_ref().and_then(|cpu| cpu.samples);
    if let Some(few) = samples.filter(|few| *few < HOT_SAMPLES_MIN && report.blocked.is_none()) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few
        let few = counted(few.round() as u64, "sample");
        return Some(format!("{few}: too few to judge, {HOT_SAMPLES_MIN:.0} are needed."));
    }
    let is_large = |row: &&ReasonRow| row.share.is_some_and(|share| share >= HOT_SHARE);
    if let Some(row) = report.reasons.iter().filter(is_trouble).find(is_large) {
        let number = samples.unwrap_or(0.0);
        return Some(format!(
            "{number:.0} samples are too few to judge: {} {} of them, and {HOT_SAMPLES_MIN:.0} samples of it are needed.",
            row.label,
            percent(row.share.unwrap_or(0.0))
        ));
    }
    let mut migration = report.reasons.iter().filter(|row| row.reason == Reason::Migration);
    migration.find(is_large).map(|row| {
        format!(
            "Moving of pages takes {} of the busy CPU: compaction, or NUMA balancing. What started it is not in \
             the stacks.",
            whole_percent(row.share.unwrap_or(0.0))
        )
    })
}

/// So few tasks wait that none does.
const NO_TASK: f64 = 0.005;

/// Tasks that wait for what is trouble.
fn troubled_tasks(report: &ProfileReport) -> f64 {
    report.reasons.iter().filter(is_trouble).filter_map(|row| row.stalled_tasks).sum()
}

/// What trouble costs: `take 0.3 % of the busy CPU and keep no task waiting`.
fn calm_work(report: &ProfileReport) -> String {
    let trouble = || report.reasons.iter().filter(is_trouble);
    let mut parts = Vec::new();
    if report.cpu.is_some() {
        let share: f64 = trouble().filter_map(|row| row.share).sum();
        parts.push(format!("take {} of the busy CPU", percent(share)));
    }
    let waits = troubled_tasks(report);
    match &report.blocked {
        Some(blocked) if blocked.tasks.is_some() && waits < NO_TASK => {
            parts.push("keep no task waiting".to_owned());
        }
        Some(blocked) if blocked.tasks.is_some() => {
            parts.push(format!("keep {} tasks waiting", tasks(waits)));
        }
        Some(_) => {
            let of_all: f64 = trouble().filter_map(|row| row.blocked_share).sum();
            parts.push(format!("are {} of the waiting", percent(of_all)));
        }
        None => {}
    }
    parts.join(" and ")
}

/// What the waiting alone shows.
fn without_cpu(report: &ProfileReport, work: &str) -> String {
    let unknown = report.reasons.iter().filter(|row| row.reason == Reason::OtherKernel);
    let unknown: f64 = unknown.filter_map(|row| row.stalled_tasks).sum();
    let seen = if unknown >= NO_TASK {
        format!("{} tasks wait, for what only root can see", tasks(unknown))
    } else if troubled_tasks(report) < NO_TASK {
        "none of the waiting that was seen is for memory".to_owned()
    } else {
        format!("reclaim, compaction and swapping {work}")
    };
    format!("CPU samples could not be taken; {seen}.")
}

/// No all-clear: programs waited for what was evicted, too short to be caught.
fn reread_meanwhile(report: &ProfileReport, reread: Bytes, work: &str) -> String {
    let limits = report.cgroups.iter().flat_map(|one| &one.limits);
    let met = limits.max_by_key(|limit| limit.hits).map_or_else(String::new, |limit| {
        let hits = Count::new(limit.hits);
        format!(" Cgroup {} met its limit {hits} times.", escape(&limit.cgroup))
    });
    format!(
        "{reread} of files that had been evicted were read again meanwhile; of the waiting for them little was \
         caught: reclaim, compaction and swapping {work}.{met} A longer profile (--for 30s) catches more."
    )
}

/// What takes most, where it is worth a sentence: the price of a setting, or what programs ask for.
fn largest_work(report: &ProfileReport) -> String {
    let largest = |group: ReasonGroup| {
        let mut rows = report.reasons.iter().filter(|row| row.group == group);
        rows.find_map(|row| Some((row, row.share.filter(|it| *it >= PRICE_WORTH_SAYING)?)))
    };
    if let Some((row, share)) = largest(ReasonGroup::PriceOfASetting) {
        return format!(
            " {} takes {}, the price of a setting: {}.",
            sentence(&row.label),
            whole_percent(share),
            row.means
        );
    }
    largest(ReasonGroup::Ordinary).map_or_else(String::new, |(row, share)| {
        let share = whole_percent(share);
        format!(" The largest memory work, {} ({share}), is what programs ask for.", row.label)
    })
}

/// What differs from a base.
pub(crate) fn difference_headline(report: &ProfileReport) -> String {
    let Some(difference) = &report.difference else {
        return headline(report);
    };
    let clear = difference
        .reasons
        .iter()
        .filter(|one| matches!(one.group, ReasonGroup::Trouble | ReasonGroup::PriceOfASetting));
    let changes: Vec<String> = clear
        .take(3)
        .map(|one| {
            let shares = one.base_share.zip(one.share);
            let waits = one.base_stalled_tasks.zip(one.stalled_tasks);
            match (shares, waits) {
                (Some((before, after)), _) if (after - before).abs() > 0.01 => format!(
                    "{} {} → {} of the busy CPU",
                    one.label,
                    percent(before),
                    percent(after)
                ),
                (_, Some((before, after))) => {
                    format!("{} {} → {} waiting tasks", one.label, tasks(before), tasks(after))
                }
                _ => one.label.clone(),
            }
        })
        .collect();
    if changes.is_empty() {
        "No reason of trouble differs from the base by more than chance.".to_owned()
    } else {
        format!("Against the base: {}.", changes.join("; "))
    }
}

/// What zeroing costs that a read would do without: pages of files and of swap are filled anyway.
pub(crate) fn needless_zeroing(rows: &[ReasonRow]) -> Option<String> {
    let fills = |row: &&ReasonRow| {
        matches!(
            row.reason,
            Reason::FileRead | Reason::FileFault | Reason::FileWrite | Reason::SwapIn
        )
    };
    let works =
        rows.iter().filter(fills).filter(|row| row.samples.is_some()).flat_map(|row| &row.works);
    let zeroing = works.filter(|work| work.work == KernelWork::Zeroing);
    let share: f64 = zeroing.map(|work| work.share).sum();
    (share >= ZEROING_WORTH_SAYING).then(|| {
        format!(
            "{} of the busy CPU zeroes pages that are then filled from files or swap: the kernel runs with \
             init_on_alloc=1, which Debian and Ubuntu set.",
            whole_percent(share)
        )
    })
}

/// A cgroup that waited for so much of the time, or took so much of the busy CPU for reclaim, is worth a line.
const CGROUP_WORTH_A_LINE: f64 = 0.001;
/// The host's lack of memory is worth a sentence from so much of the time of its threads on.
const HOST_LACK_WORTH_SAYING: f64 = 0.01;
/// What grew less takes nothing from others that they would notice.
const GROWTH_WORTH_SAYING: i64 = 16 << 20;

/// Cgroups that waited for memory, or that cost CPU time for it.
pub(crate) fn stalled_cgroups(report: &ProfileReport) -> Vec<&CgroupStalls> {
    let seconds = report.origin.seconds.unwrap_or(0.0);
    let is_worth_a_line = |row: &&CgroupStalls| {
        let takes = row.limit_share.unwrap_or(0.0) + row.host_share.unwrap_or(0.0);
        let is_alone = row.cgroup == ROOT && row.stalled_s() <= 0.0;
        let is_slow = row.stalled_s() > seconds * CGROUP_WORTH_A_LINE;
        !is_alone && (is_slow || takes > CGROUP_WORTH_A_LINE * 10.0)
    };
    report.cgroups.iter().filter(is_worth_a_line).collect()
}

/// What a cgroup is called.
pub(crate) fn cgroup_name(row: &CgroupStalls) -> String {
    escape(row.name.as_deref().unwrap_or(&row.cgroup)).into_owned()
}

/// `its own memory.max (60 MiB) was met 1,203 times`.
pub(crate) fn met_limit(row: &CgroupStalls, limit: &MetLimit) -> String {
    let file = match limit.limit {
        MetLimitKind::Max => "memory.max",
        MetLimitKind::High => "memory.high",
    };
    let is_own = limit.cgroup == row.cgroup;
    let of = if is_own {
        format!("its own {file}")
    } else {
        format!("{file} of {}", escape(&limit.cgroup))
    };
    let size = limit.bytes.map(|bytes| format!(" ({})", Bytes::new(bytes))).unwrap_or_default();
    format!("{of}{size} was met {}", times(limit.hits))
}

fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", Count::new(number)) }
}

/// Who waits because the host lacks memory, and who grew meanwhile.
pub(crate) fn host_lack(rows: &[CgroupStalls], seconds: Option<f64>) -> Option<String> {
    let waited: f64 = rows.iter().map(|row| row.host_s).sum();
    let first = rows.iter().max_by(|one, other| one.host_s.total_cmp(&other.host_s))?;
    if waited < seconds? * HOST_LACK_WORTH_SAYING {
        return None;
    }
    let mut grew: Vec<(&CgroupStalls, i64)> = rows
        .iter()
        .filter(|row| row.cgroup != ROOT)
        .filter_map(|row| Some((row, row.grew_bytes?)))
        .filter(|(_, grew)| *grew >= GROWTH_WORTH_SAYING)
        .collect();
    grew.sort_by_key(|(_, grew)| std::cmp::Reverse(*grew));
    let grew: Vec<String> = grew
        .into_iter()
        .take(2)
        .map(|(row, grew)| format!("{} by {}", cgroup_name(row), Bytes::new(grew.unsigned_abs())))
        .collect();
    let who = format!(
        "The host lacks memory: {} waited {} for it",
        cgroup_name(first),
        Span::from_secs_f64(first.host_s)
    );
    Some(if grew.is_empty() {
        format!("{who}; no cgroup with running threads grew by 16 MiB meanwhile.")
    } else {
        format!("{who}. Meanwhile grew {}.", grew.join(", "))
    })
}

/// What could not be measured; what one cause hides is one.
pub(crate) fn not_measured(report: &ProfileReport) -> Vec<(String, &NotMeasured)> {
    let mut all: Vec<(String, &NotMeasured)> = Vec::new();
    for one in &report.not_measured {
        let known =
            all.iter_mut().find(|(_, known)| known.why == one.why && known.help == one.help);
        match known {
            Some((whats, _)) => whats.push_str(&format!(", {}", one.what)),
            None => all.push((one.what.clone(), one)),
        }
    }
    all
}

/// How the profile came about, in a line.
pub(crate) fn origin(report: &ProfileReport) -> String {
    let origin = &report.origin;
    let mut parts = vec![match origin.files.as_slice() {
        [] => origin.form.clone(),
        files => format!("{} · {}", files.join(", "), origin.form),
    }];
    if let Some(seconds) = origin.seconds {
        parts.push(Span::from_secs_f64(seconds).to_string());
    }
    if let Some(cpus) = origin.cpus {
        parts.push(counted(u64::from(cpus), "CPU"));
    }
    match (origin.hz, &origin.event) {
        (Some(hz), Some(event)) => parts.push(format!("{event} at {hz:.0} Hz")),
        (Some(hz), None) => parts.push(format!("{hz:.0} Hz")),
        (None, Some(event)) => parts.push(event.clone()),
        (None, None) => {}
    }
    if let Some(cpu) = &report.cpu {
        let samples = cpu.samples.filter(|_| cpu.unit != CpuUnit::Backtraces);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count
        let number = samples.map(|samples| counted(samples.round() as u64, "sample"));
        let busy = cpu.busy_share.map(|busy| format!("CPUs {} busy", percent(busy)));
        parts.extend(number.into_iter().chain(busy));
    }
    if let Some(lost) = origin.lost.filter(|lost| *lost > 0) {
        parts.push(format!("{} lost", Count::new(lost)));
    }
    if let Some(scope) = &origin.scope {
        parts.push(scope.clone());
    }
    if let Some(kernel) = &origin.kernel {
        parts.push(format!("Linux {kernel}"));
    }
    parts.join(" · ")
}

/// Whether what a row says of CPU time is small print.
pub(crate) fn is_shown(row: &ReasonRow, least: f64) -> bool {
    let share = row.share.unwrap_or(0.0);
    let waits = row.stalled_tasks.unwrap_or(0.0);
    let of_waits = if row.stalled_tasks.is_none() { row.blocked_share.unwrap_or(0.0) } else { 0.0 };
    let has_episodes = row.episodes.is_some() && row.group == ReasonGroup::Trouble;
    !row.hot_by.is_empty() || share >= least || waits >= 0.01 || of_waits >= least || has_episodes
}

/// What to type about the hot reasons, each once, and the rule that explains it.
pub(crate) fn remedies(report: &ProfileReport) -> Vec<(String, Option<String>)> {
    let mut all: Vec<(String, Option<String>)> = Vec::new();
    let has_huge_pages =
        report.settings.get("transparent_hugepage").is_none_or(|setting| setting != "never");
    for row in &report.hot {
        // Without huge pages it is another allocation that needs many pages side by side.
        let is_general = row.reason == Reason::DirectCompact && !has_huge_pages;
        let general = "memtide check".to_owned();
        let Some(remedy) = row.remedy.as_ref().map(|own| if is_general { &general } else { own })
        else {
            continue;
        };
        if row.reason.is_background() && report.hot.len() > 1 {
            continue;
        }
        // Of a cgroup's limit: of which.
        let cgroup = row.cgroups.first().filter(|one| one.name != "/");
        let remedy = &match cgroup {
            Some(one) if remedy.ends_with(CGROUP_PLACE) => {
                remedy.replace(CGROUP_PLACE, &report::quoted(&escape(&one.name)))
            }
            _ => remedy.clone(),
        };
        if !all.iter().any(|(known, _)| known == remedy) {
            all.push((remedy.clone(), row.rule.clone()));
        }
    }
    // Pages that a cgroup or a host lacks are found by check; a process that waits for its files, too.
    if all.is_empty() && !report.hot.is_empty() {
        let rule = report.hot.first().and_then(|row| row.rule.clone());
        all.push(("memtide check".to_owned(), rule));
    }
    all
}

/// Settings that explain a reason, as they were: `vm.zone_reclaim_mode = 1`.
pub(crate) fn settings_of(report: &ProfileReport, reason: Reason) -> Vec<String> {
    let wanted: &[&str] = match reason {
        Reason::NodeReclaim => &["vm.zone_reclaim_mode"],
        Reason::Kswapd | Reason::DirectReclaim => {
            &["vm.min_free_kbytes", "vm.watermark_scale_factor"]
        }
        Reason::SwapIn => &["vm.swappiness"],
        Reason::DirtyThrottle => &["vm.dirty_ratio", "vm.dirty_bytes"],
        Reason::Kcompactd => &["vm.compaction_proactiveness"],
        Reason::DirectCompact | Reason::ThpFault | Reason::Khugepaged => {
            &["transparent_hugepage", "transparent_hugepage/defrag"]
        }
        _ => &[],
    };
    let known = wanted.iter().filter_map(|name| report.settings.get_key_value(*name));
    known.map(|(name, value)| format!("{name} = {value}")).collect()
}
