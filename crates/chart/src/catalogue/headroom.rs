//! How much room is left: free memory and its floor, and headroom.

use diagnose::headroom::{Course, Needs};
use diagnose::{Evidence, Missing, Need};
use timeline::signals::{MEM_AVAILABLE, MEM_FLOOR_HIGH, MEM_FREE, ZONE_LOW};

use super::builder::{ChartBuilder, curve, level, signals};
use crate::{Chart, ChartKind, ChartSeries, ChartUnit, Colour, Curve};

/// Chart of free memory, available memory, and the floor at which the kernel keeps free memory.
pub(super) fn free(cx: &Evidence<'_>) -> Chart {
    // The floor comes from the zones. Free and available memory are the host's own signals, and their dips must show
    // even if only those can be drawn.
    ChartBuilder::new(
        "free",
        "Free and its floor",
        "Logarithmic. Reclaim holds free memory between the two edges of the floor; what counts is \
         available.",
        ChartKind::Lines,
        ChartUnit::Bytes,
    )
    .log()
    .line(cx, level("available", "available", Colour::FileCache, signals![MEM_AVAILABLE]), |cx| {
        cx.gauge(MEM_AVAILABLE).map(|track| curve(&track))
    })
    .line(cx, level("free", "free", Colour::Nth(0), signals![MEM_FREE]), |cx| {
        cx.gauge(MEM_FREE).map(|track| curve(&track))
    })
    .moving_limit(
        cx,
        level("floor-low", "floor, where kswapd starts", Colour::Limit, signals![ZONE_LOW]),
        |cx| cx.floor().map(|floor| curve(&floor.low)),
    )
    .moving_limit(
        cx,
        level("floor-high", "floor, where kswapd stops", Colour::Limit, signals![MEM_FLOOR_HIGH]),
        |cx| cx.floor().map(|floor| curve(&floor.high)),
    )
    .band("floor-low", "floor-high")
    .done()
}

/// Chart of the memory that could be added, over time.
pub(super) fn headroom(cx: &Evidence<'_>) -> Chart {
    let builder = ChartBuilder::new(
        "headroom",
        "Headroom of the host",
        "What more would fit into RAM: available memory less the page cache that the workload \
         likely needs. Below 0 memory was short. A node or a group may have less.",
        ChartKind::Lines,
        ChartUnit::Bytes,
    )
    .of_entities();
    drawn(
        cx,
        builder,
        Needs::measure(cx, None),
        level("available", "available", Colour::FileCache, signals![MEM_AVAILABLE]),
    )
}

/// The same for a cgroup, below the limit around it that binds first.
pub(super) fn of_group(cx: &Evidence<'_>, path: &str) -> Chart {
    let needs = Needs::measure(cx, Some(path));
    let limit = needs.as_ref().and_then(Needs::limit);
    let below = limit.map(|limit| limit.words_throughout(cx));
    let title = match &below {
        Some(limit) => format!("Headroom below {limit}"),
        None => format!("Headroom of {path}: the host's"),
    };
    let builder = ChartBuilder::new(
        "group_headroom",
        title,
        "What more would fit: what reclaim leaves below the limit, less the page cache that the \
         cgroup likely needs. Below 0 it was short.",
        ChartKind::Lines,
        ChartUnit::Bytes,
    )
    .of_entities();
    let left = level("available", "left after dropping all cache", Colour::FileCache, Vec::new());
    drawn(cx, builder, needs, left)
}

fn drawn(
    cx: &Evidence<'_>,
    builder: ChartBuilder,
    needs: Option<Needs>,
    available: ChartSeries,
) -> Chart {
    let Some(needs) = needs else {
        return builder.lacks(cx, lacking(cx));
    };
    let Some(course) = needs.course(cx) else {
        return builder.lacks(cx, lacking(cx));
    };
    let kept: Vec<_> =
        courses(available).into_iter().filter(|(_, pick)| pick(&course).is_some()).collect();
    let picks: Vec<Pick> = kept.iter().map(|(_, pick)| *pick).collect();
    let series = kept.into_iter().map(|(series, _)| series).collect();
    builder.limit("nothing left", 0.0).together(
        series,
        Box::new(move |part| {
            let course = needs.course(part);
            let curve = |pick: &Pick| pick(course.as_ref()?).cloned();
            picks.iter().map(|pick| curve(pick).unwrap_or_default()).collect()
        }),
    )
}

/// Picks one curve of headroom's course, if the course has it.
type Pick = fn(&Course) -> Option<&Curve>;

fn courses(available: ChartSeries) -> [(ChartSeries, Pick); 4] {
    let room = |id, label, number| level(id, label, Colour::Nth(number), Vec::new());
    [
        (available, |course| Some(&course.available)),
        (room("likely", "headroom, likely", 0), |course| course.likely.as_ref()),
        (room("lower", "headroom, at least", 1), |course| course.lower.as_ref()),
        (room("upper", "headroom, at most", 2), |course| course.upper.as_ref()),
    ]
}

fn lacking(cx: &Evidence<'_>) -> Missing {
    cx.gauge(MEM_AVAILABLE)
        .err()
        .unwrap_or_else(|| Missing::because(vec![MEM_AVAILABLE.def().name], Need::SameTime))
}
