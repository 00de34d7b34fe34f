//! Growth: anything that is larger than at the first sample, whatever owns it.

use diagnose::accounting::{Accounting, Standing, TermKind, account};
use diagnose::baselines;
use diagnose::{Evidence, Missing, slab};
use timeline::Entity;
use timeline::signals::SLAB_PAGES;
use units::{Bytes, Quantity, Span};

use super::builder::{ChartBuilder, level, signals};
use super::memory::{self, StackPart};
use super::services::{MemoryOwners, RankedOwners};
use crate::{Chart, ChartKind, ChartSeries, ChartUnit, Colour, Curve};

/// At most 6 lines.
const CACHES_MAX: usize = 6;
/// A shorter recording shows no growth: everything that starts grows.
const DURATION_MIN: Span = Span::from_mins(1);

/// A part or an owner of memory that grew.
struct GrownOwner {
    series: ChartSeries,
    by: f64,
    what: What,
    /// Its size at the first sample.
    from: f64,
}

/// The way to compute its size.
enum What {
    Term(TermKind),
    Owner(String),
    Cache(String),
}

/// Chart of the changes of what grew most.
pub(super) fn chart(cx: &Evidence<'_>, held: &Result<RankedOwners, Missing>) -> Chart {
    let builder = ChartBuilder::new(
        "growth",
        "What grew",
        "Change since the first sample of what grew most. A part of memory, a service and a slab \
         cache may count the same pages.",
        ChartKind::Lines,
        ChartUnit::Bytes,
    )
    .of_entities()
    .of_changes()
    .quiet_up_to(baselines::GROWTH);
    let look = cx.recorded();
    if look < DURATION_MIN {
        return builder.absent(format!(
            "{look} is too short to show growth, which needs a minute: memtide record"
        ));
    }
    let mut grown = terms(cx);
    let held = held.as_ref().ok();
    grown.extend(held.map(owners).unwrap_or_default());
    grown.extend(caches(cx));
    grown.retain(|grown| grown.by > 0.0);
    grown.sort_by(|a, b| b.by.total_cmp(&a.by).then_with(|| a.series.id.cmp(&b.series.id)));
    grown.truncate(CACHES_MAX);
    if grown.is_empty() {
        return builder.absent("nothing is larger than at the first sample".to_owned());
    }
    let series = grown.iter().map(|grown| grown.series.clone()).collect();
    let owners = held.map(|held| held.owners.clone());
    builder.together(series, Box::new(move |part| curves(part, &grown, owners.as_ref())))
}

fn curves(cx: &Evidence<'_>, grown: &[GrownOwner], owners: Option<&MemoryOwners>) -> Vec<Curve> {
    let is_term = |grown: &GrownOwner| matches!(grown.what, What::Term(_));
    let samples = if grown.iter().any(is_term) { 0..cx.timeline.len() } else { 0..0 };
    let accounts: Vec<_> = samples.map(|index| account(cx, index).ok()).collect();
    let names = grown.iter().filter_map(|grown| match &grown.what {
        What::Owner(name) => Some(name.clone()),
        _ => None,
    });
    let names: Vec<String> = names.collect();
    let owned = owners.filter(|_| !names.is_empty()).map(|owners| owners.sums.curves(cx, &names));
    let mut owned = owned.unwrap_or_default().into_iter();
    let curves = grown.iter().map(|grown| match &grown.what {
        What::Owner(_) => grown.change(owned.next().unwrap_or_default()),
        _ => grown.change(grown.sizes(cx, &accounts)),
    });
    curves.collect()
}

impl GrownOwner {
    /// Returns the differences of its sizes from the first one.
    fn change(&self, sizes: Curve) -> Curve {
        let change = |size: f64| size - self.from;
        sizes.into_iter().map(|size| size.map(change)).collect()
    }

    fn sizes(&self, cx: &Evidence<'_>, accounts: &[Option<Accounting>]) -> Curve {
        match &self.what {
            What::Term(kind) => accounts
                .iter()
                .map(|accounting| accounting.as_ref()?.size(*kind).map(Bytes::as_f64))
                .collect(),
            What::Owner(_) => Curve::new(),
            What::Cache(name) => match cx.timeline.entity(Entity::Slab, name) {
                Some(cache) => (0..cx.timeline.len())
                    .map(|index| slab::size(cx, cache, index).map(Bytes::as_f64))
                    .collect(),
                None => Curve::new(),
            },
        }
    }
}

/// Returns the parts of memory, except free memory.
fn terms(cx: &Evidence<'_>) -> Vec<GrownOwner> {
    let ends = account(cx, 0).ok().zip(account(cx, cx.timeline.len().saturating_sub(1)).ok());
    let Some((first, last)) = ends else {
        return Vec::new();
    };
    let is_free = |part: &StackPart| part.kind.standing() == Standing::Free;
    let parts = memory::parts().into_iter().filter(|part| !is_free(part));
    parts
        .filter_map(|part| {
            let from = first.size(part.kind)?.as_f64();
            Some(GrownOwner {
                by: last.size(part.kind)?.as_f64() - from,
                series: level(part.kind.id(), part.label, part.colour, part.signals),
                what: What::Term(part.kind),
                from,
            })
        })
        .collect()
}

fn owners(held: &RankedOwners) -> Vec<GrownOwner> {
    let mut sums = held.sums.clone();
    sums.sort_by(|a, b| (b.last - b.first).total_cmp(&(a.last - a.first)));
    let largest = sums.into_iter().take(CACHES_MAX).enumerate();
    largest
        .map(|(n, sum)| GrownOwner {
            series: level(
                format!("owner-{n}"),
                sum.name.clone(),
                Colour::Nth(n),
                held.owners.signals.clone(),
            ),
            by: sum.last - sum.first,
            from: sum.first,
            what: What::Owner(sum.name),
        })
        .collect()
}

fn caches(cx: &Evidence<'_>) -> Vec<GrownOwner> {
    let last = cx.timeline.len().saturating_sub(1);
    let ends = cx.timeline.entities(Entity::Slab).filter_map(|cache| {
        let read = (0..=last).find(|index| slab::size(cx, cache, *index).is_some())?;
        let from = slab::size(cx, cache, read)?.as_f64();
        Some((slab::size(cx, cache, last)?.as_f64() - from, from, cache))
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_by(|a, b| b.0.total_cmp(&a.0));
    let largest = ends.into_iter().take(CACHES_MAX).enumerate();
    largest
        .map(|(n, (by, from, cache))| GrownOwner {
            series: level(
                format!("slab-{n}"),
                format!("slab {}", cache.key),
                Colour::Nth(CACHES_MAX + n),
                signals![SLAB_PAGES],
            ),
            by,
            from,
            what: What::Cache(cache.key.clone()),
        })
        .collect()
}
