//! The data of a page's charts: in the page itself, or at an address of the server that sent the page.

use units::Span;

use diagnose::Evidence;
use timeline::Timeline;

use super::escape::{Html, tag};
use super::{Page, Scene};
use crate::model::page::{LevelMeta, PageMeta};
use crate::picture::Picture;

/// The data of a page's charts.
#[derive(Debug, Clone, PartialEq)]
pub struct PageData {
    /// Which curves there are, where findings and events lie, and how the packed numbers are laid out.
    pub meta: PageMeta,
    /// The numbers, as [`::chart::pack`] packs them.
    pub packed: Vec<u8>,
}

/// An address that a page asks for the data of its charts (`web/src/source.ts`).
///
/// It is asked with GET, when the page opens and again and again. The answer has the status 200 and [`PageData::to_body`]
/// of all the charts have by then, never a difference to an earlier answer; its content type does not matter. The `ETag` of
/// an answer is sent with the next request, and 304 says that there is nothing new. The page draws
/// it in the places that it was written with: a chart without a place is not drawn, one that the answer lacks is hidden, and
/// all text stays as it was written. A page that was written without charts asks once.
///
/// Second 0 may be a later moment than in the answer before, so a server may forget old samples; findings are known again
/// by their rule, and by their order where a rule has several. The reader's view, cursor and selection stay. After an answer
/// of another status, one that is damaged, or none within 30 s, the page says so, with the first line of a plain text, keeps
/// what it shows, and asks again.
#[derive(Debug, Clone, Copy, Default)]
pub struct DataAddress<'a> {
    /// The address, absolute or relative to the page's, on the server that sent the page. Its first answer is the data
    /// that the page's text was written with.
    pub url: &'a str,
    /// How long the page waits before it asks again; `None`: it asks once.
    pub every: Option<Span>,
}

impl PageData {
    pub(super) fn of(scene: &Scene<'_>) -> Self {
        let nothing = Picture::default();
        let picture = if scene.has_charts() { scene.picture } else { &nothing };
        let packed = ::chart::pack(&picture.charts, &picture.drawing);
        let events = &scene.page.events.events;
        let meta = PageMeta::new(scene.report, picture, events, &packed.scales, &scene.clock);
        Self { meta, packed: packed.bytes }
    }

    /// Returns what a server answers at a [`DataAddress`]: the meta as one line of JSON, which a newline ends, then the
    /// packed numbers as bytes. Both are one answer, as they have to be of one moment.
    pub fn to_body(&self) -> Vec<u8> {
        let mut body = self.json().into_bytes();
        body.push(b'\n');
        body.extend_from_slice(&self.packed);
        body
    }

    fn json(&self) -> String {
        // Serialising these values cannot fail.
        serde_json::to_string(&self.meta).unwrap_or_default()
    }
}

/// Returns every sample of a part of a page's source as curves of its charts, for a script that zooms: a line of JSON, then
/// packed numbers; `clock` has the times of the samples that the page was made of. `None` if the part is no part of it, or
/// too large.
pub fn closer_data(page: &Page, part: &Evidence<'_>, clock: &Timeline) -> Option<Vec<u8>> {
    let drawing = page.picture.closer(part, clock)?;
    let level = drawing.levels.first()?;
    let second = |at: Option<&Span>| at.map_or(0.0, |at| at.as_secs_f64());
    let packed = ::chart::pack(&page.picture.charts, &drawing);
    let head = CloserMeta {
        format: "memtide-closer/1",
        level: LevelMeta {
            from_s: second(level.times.first()),
            to_s: second(level.times.last()),
            rows: level.times.len(),
        },
        scales: packed.scales,
    };
    let mut body = serde_json::to_vec(&head).unwrap_or_default();
    body.push(b'\n');
    body.extend_from_slice(&packed.bytes);
    Some(body)
}

/// The head of [`closer_data`].
#[derive(serde::Serialize)]
struct CloserMeta {
    format: &'static str,
    level: LevelMeta,
    /// What a number stands for, for each series of each chart of the page; empty for a chart without a value in this part,
    /// of which there are no numbers either.
    scales: Vec<Vec<f64>>,
}

/// Writes the script's data on a source, or where it gets them.
pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let of = scene.which.id_suffix();
    if let Some(served) = scene.served {
        let mut block = tag("script")
            .with("type", "application/json")
            .with("id", &format!("memtide-page{of}"))
            .with("data-url", served.data.url);
        if let Some(every) = served.data.every {
            block = block.showing("data-every", every.as_secs_f64());
        }
        for (name, address) in [
            ("data-closer", served.closer),
            ("data-text", served.text),
            ("data-changes", served.changes),
        ] {
            if let Some(address) = address {
                block = block.with(name, address);
            }
        }
        html.within(block, |_| {}).raw("\n");
        return;
    }
    let data = PageData::of(scene);
    html.raw("<script type=\"application/json\" id=\"memtide-page")
        .raw(of)
        .raw("\">")
        .json(&data.json())
        .raw("</script>\n");
    html.raw("<script type=\"application/octet-stream\" id=\"memtide-data")
        .raw(of)
        .raw("\">")
        .base64(&data_encoding::BASE64.encode(&data.packed))
        .raw("</script>\n");
}
