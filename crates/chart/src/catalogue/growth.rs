//! Growth: what is larger than it was at the first sample, whoever holds it.

use diagnose::accounting::{Accounting, account};
use diagnose::{Evidence, slab};
use timeline::Entity;
use timeline::signals::SLAB_PAGES;
use units::{Bytes, Quantity, Span};

use super::memory::{self, Part};
use super::services::Owners;
use super::sketch::{Sketch, level, signals};
use crate::{Chart, ChartKind, ChartUnit, Colour, Curve, Series};

/// Lines at most.
const MOST: usize = 6;
/// In less time everything that starts has grown.
const SHORTEST: Span = Span::from_mins(1);
/// Less is noise on any host (`diagnose` takes no rise below that for one).
const NOISE: f64 = 16.0 * 1_048_576.0;

/// Something that grew.
struct Grown {
    series: Series,
    by: f64,
    what: What,
    /// Its size at the first sample.
    from: f64,
}

/// How its size is computed.
enum What {
    Term(&'static str),
    Owner(Owners, String),
    Cache(String),
}

/// The change of what grew most.
pub(super) fn chart(cx: &Evidence<'_>) -> Chart {
    let sketch = Sketch::new(
        "growth",
        "What grew",
        "Change since the first sample of what grew most. A part of memory, a service and a \
         slab cache may tell of the same pages.",
        ChartKind::Lines,
        ChartUnit::Bytes,
    )
    .of_entities()
    .quiet_up_to(NOISE);
    let look = cx.look();
    if look < SHORTEST {
        return sketch.absent(format!(
            "growth needs a minute at least, and this look lasts {look}: memtide record"
        ));
    }
    let mut grown = terms(cx);
    grown.extend(owners(cx));
    grown.extend(caches(cx));
    grown.retain(|grown| grown.by > 0.0);
    grown.sort_by(|a, b| {
        b.by.total_cmp(&a.by)
            .then_with(|| a.series.id.cmp(&b.series.id))
    });
    grown.truncate(MOST);
    if grown.is_empty() {
        return sketch.absent("nothing is larger than at the first sample".to_owned());
    }
    let series = grown.iter().map(|grown| grown.series.clone()).collect();
    sketch.together(series, Box::new(move |part| curves(part, &grown)))
}

fn curves(cx: &Evidence<'_>, grown: &[Grown]) -> Vec<Curve> {
    let samples = 0..cx.timeline.len();
    let accounts: Vec<_> = samples.map(|index| account(cx, index).ok()).collect();
    let curves = grown.iter().map(|grown| grown.curve(cx, &accounts));
    curves.collect()
}

impl Grown {
    fn curve(&self, cx: &Evidence<'_>, accounts: &[Option<Accounting>]) -> Curve {
        let sizes: Curve = match &self.what {
            What::Term(id) => accounts
                .iter()
                .map(|accounting| memory::size(accounting.as_ref()?, id))
                .collect(),
            What::Owner(owners, name) => {
                let names = std::slice::from_ref(name);
                let curves = owners.sums.curves(cx, names);
                curves.into_iter().next().unwrap_or_default()
            }
            What::Cache(name) => match cx.timeline.entity(Entity::Slab, name) {
                Some(cache) => (0..cx.timeline.len())
                    .map(|index| slab::size(cx, cache, index).map(Bytes::as_f64))
                    .collect(),
                None => Curve::new(),
            },
        };
        let change = |size: f64| size - self.from;
        sizes.into_iter().map(|size| size.map(change)).collect()
    }
}

/// Parts of memory, but for what is free.
fn terms(cx: &Evidence<'_>) -> Vec<Grown> {
    let ends = account(cx, 0)
        .ok()
        .zip(account(cx, cx.timeline.len().saturating_sub(1)).ok());
    let Some((first, last)) = ends else {
        return Vec::new();
    };
    let is_free = |part: &Part| matches!(part.colour, Colour::Free | Colour::Pcp);
    let parts = memory::parts().into_iter().filter(|part| !is_free(part));
    parts
        .filter_map(|part| {
            let from = memory::size(&first, part.id)?;
            Some(Grown {
                by: memory::size(&last, part.id)? - from,
                series: level(part.id, part.label, part.colour, part.signals),
                what: What::Term(part.id),
                from,
            })
        })
        .collect()
}

fn owners(cx: &Evidence<'_>) -> Vec<Grown> {
    let Ok(owners) = Owners::of(cx) else {
        return Vec::new();
    };
    let mut sums = owners.sums.largest(cx);
    sums.sort_by(|a, b| (b.last - b.first).total_cmp(&(a.last - a.first)));
    let largest = sums.into_iter().take(MOST).enumerate();
    largest
        .map(|(n, sum)| Grown {
            series: level(
                format!("owner-{n}"),
                sum.name.clone(),
                Colour::Nth(n),
                owners.signals.clone(),
            ),
            by: sum.last - sum.first,
            from: sum.first,
            what: What::Owner(owners.clone(), sum.name),
        })
        .collect()
}

fn caches(cx: &Evidence<'_>) -> Vec<Grown> {
    let last = cx.timeline.len().saturating_sub(1);
    let ends = cx.timeline.entities(Entity::Slab).filter_map(|cache| {
        let read = (0..=last).find(|index| slab::size(cx, cache, *index).is_some())?;
        let from = slab::size(cx, cache, read)?.as_f64();
        Some((slab::size(cx, cache, last)?.as_f64() - from, from, cache))
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_by(|a, b| b.0.total_cmp(&a.0));
    let largest = ends.into_iter().take(MOST).enumerate();
    largest
        .map(|(n, (by, from, cache))| Grown {
            series: level(
                format!("slab-{n}"),
                format!("slab {}", cache.key),
                Colour::Nth(MOST + n),
                signals![SLAB_PAGES],
            ),
            by,
            from,
            what: What::Cache(cache.key.clone()),
        })
        .collect()
}
