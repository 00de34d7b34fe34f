//! CPU time of kernel threads by the beginning of their name: kswapd, kcompactd. There is one thread for each NUMA node.

use timeline::signals::{CPU_SYSTEM, PROC_CPU, PROC_PARENT, PROC_STIME, PROC_UTIME};
use timeline::{Entity, EntitySeries, Stretch, Track};
use units::{Count, PerSecond, Ratio, Ticks};

use crate::evidence::{Evidence, Missing};
use crate::trigger::{Expr, Reading, computed, computed_within, rate};

/// kthreadd, the parent of kernel threads.
pub(crate) const KTHREADD: Count = Count::new(2);

/// kswapd, the background reclaimer; there is a thread for each NUMA node.
pub(crate) const KSWAPD: &str = "kswapd";

/// What a fix must reach: below this share of a CPU a thread that reclaims or compacts does no harm. An engineering choice.
pub(crate) const CPU_GOAL: Ratio = Ratio::from_percent(10.0);

/// The CPU of the busiest kswapd.
pub(crate) fn kswapd_cpu() -> Reading<Ratio> {
    computed_within("kswapd's CPU", |cx| busiest(cx, KSWAPD), at_most)
}

/// The same as `top` prints it.
pub(crate) fn kswapd_cpu_in_top() -> Reading<Ratio> {
    computed("kswapd's CPU in top", |cx| {
        let threads = printed(cx, KSWAPD).into_iter().map(|(_, cpus)| cpus);
        threads.reduce(larger).ok_or_else(|| cx.lacks_signal(PROC_CPU.id()))
    })
}

/// Returns the kswapd that is busiest in `top`, and its CPU.
pub(crate) fn busiest_in_top<'a>(
    cx: &Evidence<'a>,
    stretch: &Stretch,
) -> Option<(&'a EntitySeries, Ratio)> {
    let threads = printed(cx, KSWAPD).into_iter();
    threads
        .filter_map(|(thread, cpus)| Some((thread, cpus.mean_in(stretch)?)))
        .max_by(|(_, a), (_, b)| a.get().total_cmp(&b.get()))
}

/// Returns the CPU that the busiest of these threads uses, over time.
///
/// # Errors
/// [`Missing`] if no such thread was measured.
pub(crate) fn busiest(cx: &Evidence<'_>, name: &str) -> Result<Track<Ratio>, Missing> {
    let threads = threads(cx, name).into_iter().map(|(_, cpus)| cpus);
    threads.reduce(larger).ok_or_else(|| Missing::file(PROC_STIME.def()))
}

/// Returns the thread that uses most CPU in a stretch, with its CPU over time.
pub(crate) fn busiest_in<'a>(
    cx: &Evidence<'a>,
    name: &str,
    stretch: &Stretch,
) -> Option<(&'a EntitySeries, Track<Ratio>)> {
    let by_use = |(_, cpus): &(_, Track<Ratio>)| cpus.mean_in(stretch).unwrap_or_default();
    let threads = threads(cx, name).into_iter();
    threads.max_by(|a, b| by_use(a).get().total_cmp(&by_use(b).get()))
}

/// Returns what no thread's CPU exceeds: all system CPU time. Kernels that count CPU time by ticks are wrong by 3 % over
/// half a second (250 ticks per second), and by less over longer times.
pub(crate) fn at_most() -> Expr {
    /// USER_HZ, which is 100 on all current architectures.
    const TICKS: f64 = 100.0;
    const TOLERANCE: f64 = 1.1;
    let cpu: Reading<PerSecond<Ticks>> = rate(CPU_SYSTEM).times(TOLERANCE / TICKS);
    cpu.expr
}

fn threads<'a>(cx: &Evidence<'a>, name: &str) -> Vec<(&'a EntitySeries, Track<Ratio>)> {
    let processes = cx.timeline.entities(Entity::Process);
    processes
        .filter(|process| process.label.starts_with(name) && is_kernel_thread(cx, process))
        .filter_map(|thread| {
            let mut ticks = cx.rate_of(thread, PROC_STIME).ok()?;
            if let Ok(user) = cx.rate_of(thread, PROC_UTIME) {
                ticks = ticks.plus(&user);
            }
            Some((thread, ticks.to_cpus(cx.facts.user_hz())))
        })
        .collect()
}

/// The same threads with the share of a CPU that `top` printed.
fn printed<'a>(cx: &Evidence<'a>, name: &str) -> Vec<(&'a EntitySeries, Track<Ratio>)> {
    let processes = cx.timeline.entities(Entity::Process);
    processes
        .filter(|process| process.label.starts_with(name) && is_kernel_thread(cx, process))
        .filter_map(|thread| {
            let share = cx.gauge_of(thread, PROC_CPU).ok()?;
            Some((thread, share.scaled(1e-6).cast()))
        })
        .collect()
}

/// Whether it is a kernel thread; any process can use the name of one.
fn is_kernel_thread(cx: &Evidence<'_>, process: &EntitySeries) -> bool {
    let parent = cx.timeline.last_of(process, PROC_PARENT);
    parent.is_none_or(|parent| parent == KTHREADD)
}

fn larger(a: Track<Ratio>, b: Track<Ratio>) -> Track<Ratio> {
    let both = a.zip(&b, f64::max);
    both.or_else(&a).or_else(&b)
}
