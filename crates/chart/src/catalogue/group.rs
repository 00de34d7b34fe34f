//! One cgroup as its own host: its memory below its limits, its headroom, its waits, refaults, swap and limit hits.

use diagnose::{Evidence, Missing};
use timeline::signals::{
    CGROUP_ANON, CGROUP_CURRENT, CGROUP_EVENTS_HIGH, CGROUP_EVENTS_MAX, CGROUP_EVENTS_OOM_KILL,
    CGROUP_FILE, CGROUP_HIGH, CGROUP_MAX, CGROUP_PSI_IO_FULL, CGROUP_PSI_IO_SOME,
    CGROUP_PSI_MEMORY_FULL, CGROUP_PSI_MEMORY_SOME, CGROUP_REFAULT_ANON, CGROUP_REFAULT_FILE,
    CGROUP_SHMEM, CGROUP_SWAP_CURRENT, CGROUP_SWAP_MAX,
};
use timeline::{Counter, Entity, EntitySeries, Gauge, Signal, SignalId, Track};
use units::{Bytes, Limit, Micros, Pages};

use super::builder::{ChartBuilder, curve, level, rate};
use super::groups::{lacking, moving};
use super::headroom;
use crate::{Chart, ChartKind, ChartSeries, ChartUnit, Colour, Curve};

/// Returns the charts of a cgroup that its source can draw.
pub(super) fn charts(cx: &Evidence<'_>, path: &str) -> Vec<Chart> {
    let group = GroupCharts { cx, path };
    let charts = [
        group.memory(),
        headroom::of_group(cx, path),
        group.waiting(
            ("group_pressure", "Waiting for memory"),
            [CGROUP_PSI_MEMORY_SOME, CGROUP_PSI_MEMORY_FULL],
        ),
        group.refaults(),
        group.limit_hits(),
        group.swap(),
        group.waiting(
            ("group_io_wait", "Waiting for I/O"),
            [CGROUP_PSI_IO_SOME, CGROUP_PSI_IO_FULL],
        ),
    ];
    charts.into_iter().filter(|chart| chart.absent.is_none()).collect()
}

struct GroupCharts<'a> {
    cx: &'a Evidence<'a>,
    path: &'a str,
}

impl GroupCharts<'_> {
    /// What is charged to it, with its limits.
    fn memory(&self) -> Chart {
        let builder = self
            .builder(
                "group_memory",
                "What is charged to it",
                "Reclaim takes page cache first; the rest only goes to swap. At its limit the \
                 cgroup evicts its own pages, whatever the host has.",
                ChartKind::Stack,
                ChartUnit::Bytes,
            )
            .overview();
        let level = |id: &str, label: &str, colour, signal: Signal<Gauge<Bytes>>| {
            self.named(level(id, label, colour, vec![signal.id()]))
        };
        // What is charged in all is the height of the stack, and no part of it.
        let rest = super::builder::level("rest", "kernel and other", Colour::Others, Vec::new());
        let builder = builder
            .line(self.cx, self.named(rest.inputs(vec![CGROUP_CURRENT.id()])), {
                self.of(|cx, group| {
                    let parts =
                        cx.gauge_of(group, CGROUP_ANON)?.plus(&cx.gauge_of(group, CGROUP_FILE)?);
                    Ok(curve(&cx.gauge_of(group, CGROUP_CURRENT)?.minus(&parts)))
                })
            })
            .line(self.cx, level("shared", "shared memory, tmpfs", Colour::Shared, CGROUP_SHMEM), {
                self.of(|cx, group| Ok(curve(&cx.gauge_of(group, CGROUP_SHMEM)?)))
            })
            .line(self.cx, level("anon", "anonymous", Colour::Anon, CGROUP_ANON), {
                self.of(|cx, group| Ok(curve(&cx.gauge_of(group, CGROUP_ANON)?)))
            })
            .line(self.cx, level("cache", "page cache", Colour::FileCache, CGROUP_FILE), {
                self.of(|cx, group| {
                    let files = cx.gauge_of(group, CGROUP_FILE)?;
                    let shared = cx.gauge_of(group, CGROUP_SHMEM);
                    Ok(curve(&shared.map_or_else(|_| files.clone(), |shared| files.minus(&shared))))
                })
            });
        self.limited(builder, &[(CGROUP_HIGH, "memory.high"), (CGROUP_MAX, "its limit")]).done()
    }

    fn waiting(&self, (id, title): (&str, &str), signals: [Signal<Counter<Micros>>; 2]) -> Chart {
        let [some, full] = signals;
        let share = |signal: Signal<Counter<Micros>>| {
            self.of(move |cx, group| Ok(curve(&cx.rate_of(group, signal)?.to_share())))
        };
        let help = "Share of time, of the cgroup's own tasks (PSI). All tasks: nothing could run.";
        self.builder(id, title, help, ChartKind::Lines, ChartUnit::Share)
            .top(Some(1.0))
            .line(self.cx, self.rate("some", "some task", Colour::PsiSome, some.id()), share(some))
            .line(self.cx, self.rate("full", "all tasks", Colour::PsiFull, full.id()), share(full))
            .done()
    }

    fn refaults(&self) -> Chart {
        let pages = |signal: Signal<Counter<Pages>>| {
            self.of(move |cx, group| Ok(curve(&cx.rate_of(group, signal)?)))
        };
        let help = "Pages that were evicted from the cgroup and soon needed again: its limit is \
                    smaller than what is in use.";
        let file =
            self.rate("file", "file pages read again", Colour::FileCache, CGROUP_REFAULT_FILE.id());
        let anon = self.rate(
            "anon",
            "process pages swapped in again",
            Colour::Anon,
            CGROUP_REFAULT_ANON.id(),
        );
        let title = "Evicted too early (refaults)";
        self.builder("group_refaults", title, help, ChartKind::Lines, ChartUnit::PagesPerSecond)
            .line(self.cx, file, pages(CGROUP_REFAULT_FILE))
            .line(self.cx, anon, pages(CGROUP_REFAULT_ANON))
            .done()
    }

    fn limit_hits(&self) -> Chart {
        let events = [
            ("max", "at its limit", Colour::Direct, CGROUP_EVENTS_MAX),
            ("high", "throttled above memory.high", Colour::Kswapd, CGROUP_EVENTS_HIGH),
            ("kills", "killed", Colour::PsiFull, CGROUP_EVENTS_OOM_KILL),
        ];
        let help = "How often the cgroup had to reclaim because it was at a limit, and the kernel's \
                    kills in it.";
        let builder = self.builder(
            "group_limit",
            "Limit hits",
            help,
            ChartKind::Lines,
            ChartUnit::CountPerSecond,
        );
        events
            .into_iter()
            .fold(builder, |builder, (id, label, colour, signal)| {
                let hits = self.of(move |cx, group| Ok(curve(&cx.rate_of(group, signal)?)));
                builder.line(self.cx, self.rate(id, label, colour, signal.id()), hits)
            })
            .done()
    }

    fn swap(&self) -> Chart {
        let signals = vec![CGROUP_SWAP_CURRENT.id()];
        let used = self.named(level("used", "in swap", Colour::SwapIn, signals));
        let help = "What the cgroup has in swap: harmless while it does not move.";
        let builder =
            self.builder("group_swap", "Swap used", help, ChartKind::Lines, ChartUnit::Bytes);
        let builder = builder.line(self.cx, used, {
            self.of(|cx, group| {
                let used = cx.gauge_of(group, CGROUP_SWAP_CURRENT)?;
                Some(curve(&used)).filter(|_| has_some(&used)).ok_or_else(lacking)
            })
        });
        self.limited(builder, &[(CGROUP_SWAP_MAX, "memory.swap.max")]).done()
    }

    fn builder(
        &self,
        id: &str,
        title: &str,
        help: &'static str,
        kind: ChartKind,
        unit: ChartUnit,
    ) -> ChartBuilder {
        ChartBuilder::new(id, format!("{title}: {}", self.path), help, kind, unit).of_entities()
    }

    /// Adds the limits that it has.
    fn limited(
        &self,
        builder: ChartBuilder,
        limits: &[(Signal<Gauge<Limit>>, &'static str)],
    ) -> ChartBuilder {
        limits.iter().fold(builder, |builder, (limit, label)| {
            let (limit, id) = (*limit, limit.def().name);
            let series = self.named(level(id, *label, Colour::Limit, vec![limit.id()]));
            let drawn = self.of(move |cx, group| {
                let curve = moving(cx, group, limit);
                let has_any = curve.iter().any(Option::is_some);
                Some(curve).filter(|_| has_any).ok_or_else(lacking)
            });
            builder.moving_limit(self.cx, series, drawn)
        })
    }

    fn rate(&self, id: &str, label: &str, colour: Colour, signal: SignalId) -> ChartSeries {
        self.named(rate(id, label, colour, vec![signal]))
    }

    fn named(&self, series: ChartSeries) -> ChartSeries {
        ChartSeries { group: Some(self.path.to_owned()), ..series }
    }

    /// A curve of the cgroup, from any part of the source.
    fn of(
        &self,
        curve: impl Fn(&Evidence<'_>, &EntitySeries) -> Result<Curve, Missing> + Send + Sync + 'static,
    ) -> impl Fn(&Evidence<'_>) -> Result<Curve, Missing> + Send + Sync + 'static {
        let path = self.path.to_owned();
        move |cx| {
            let group = cx.timeline.entity(Entity::Cgroup, &path);
            curve(cx, group.ok_or_else(lacking)?)
        }
    }
}

fn has_some(track: &Track<Bytes>) -> bool {
    track.max().is_some_and(|(most, _)| most > Bytes::ZERO)
}
