//! The data of a page's charts: in the page itself, or at an address of the server that sent the page.

use units::Span;

use super::Scene;
use super::escape::{Html, tag};
use crate::model::page::PageMeta;
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
/// of all the charts have by then, never a difference to an earlier answer; its content type does not matter. The page draws
/// it in the places that it was written with: a chart without a place is not drawn, one that the answer lacks is hidden, and
/// all text stays as it was written. A page that was written without charts asks once.
///
/// Second 0 may be a later moment than in the answer before, so a server may forget old samples; findings are known again
/// by their rule, and by their order where a rule has several. The reader's view, cursor and selection stay. After an answer
/// of another status, one that is damaged, or none within 30 s, the page says so, keeps what it shows, and asks again.
#[derive(Debug, Clone, Copy)]
pub struct DataAddress<'a> {
    /// The address, absolute or relative to the page's, on the server that sent the page. Its first answer is the data
    /// that the page's text was written with.
    pub url: &'a str,
    /// How long the page waits before it asks again.
    pub every: Span,
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

/// Writes the script's data on a source, or where it gets them.
pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let of = scene.which.id_suffix();
    if let Some(address) = scene.address {
        let block = tag("script")
            .with("type", "application/json")
            .with("id", &format!("memtide-page{of}"))
            .with("data-url", address.url)
            .showing("data-every", address.every.as_secs_f64());
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
