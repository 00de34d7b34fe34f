//! Bytes that are sent, with their kind and their name.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::live_page::{JudgedPage, PagePart};

/// An answer, shared by all who ask the same.
#[derive(Debug, Clone)]
pub(crate) enum ServedAnswer {
    /// Bytes of one kind.
    Whole(Body),
    /// A page, of which each part is made when it is first asked for.
    Page(Arc<PageAnswer>),
}

/// Bytes of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) content_type: &'static str,
    pub(crate) bytes: Bytes,
    /// Its name: other bytes have another.
    pub(crate) tag: String,
    /// The version of the source that it is of.
    pub(crate) version: u64,
}

/// A page and its parts.
#[derive(Debug)]
pub(crate) struct PageAnswer {
    pub(crate) judged: JudgedPage,
    html: OnceLock<Body>,
    data: OnceLock<Body>,
    text: OnceLock<Body>,
}

const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";
const BINARY: &str = "application/octet-stream";

impl Body {
    pub(crate) fn new(content_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let digest = Sha256::digest(&bytes);
        let tag = format!("\"{}\"", HEXLOWER.encode(digest.get(..12).unwrap_or_default()));
        Self { content_type, bytes, tag, version: 0 }
    }

    pub(crate) fn json(text: String) -> Self {
        Self::new(JSON, text + "\n")
    }

    pub(crate) fn html(text: String) -> Self {
        Self::new(HTML, text)
    }

    pub(crate) fn binary(bytes: Vec<u8>) -> Self {
        Self::new(BINARY, bytes)
    }
}

impl PageAnswer {
    pub(crate) fn new(judged: JudgedPage) -> Self {
        Self { judged, html: OnceLock::new(), data: OnceLock::new(), text: OnceLock::new() }
    }

    /// Returns a part, made now if nobody has asked for it yet.
    pub(crate) fn part(&self, part: PagePart) -> &Body {
        match part {
            PagePart::Html => self.html.get_or_init(|| Body::html(self.judged.html())),
            PagePart::Data => self.data.get_or_init(|| Body::binary(self.judged.data())),
            PagePart::Text => self.text.get_or_init(|| Body::html(self.judged.text())),
        }
    }

    /// The name of the data that were sent; `None` if nobody has them.
    pub(crate) fn data_tag(&self) -> Option<&str> {
        self.data.get().map(|body| body.tag.as_str())
    }
}

impl ServedAnswer {
    /// About how many bytes it keeps.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Whole(body) => body.bytes.len(),
            Self::Page(page) => {
                let made = [&page.html, &page.data, &page.text];
                let made = made.into_iter().filter_map(OnceLock::get).map(|body| body.bytes.len());
                made.sum::<usize>() + page.judged.size()
            }
        }
    }
}
