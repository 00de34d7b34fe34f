//! Writes what the server of a page sends, for the tests of the page's script: `page_data SOURCE DIR [SINCE [UNTIL]]`.
//!
//! `DIR/embedded.html` is the page of that part of the source as one file, `DIR/page.html` the same page without the data
//! of its charts, which it asks for at `data`, and `DIR/data` the answer to that.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use answers::{PageSource, time_expr};
use diagnose::headroom::Question;
use report::Screen;
use report::html::{DataAddress, ServedPage, page_data, report, served_report};
use timeline::TimeRange;
use units::Span;

/// How long a page waits before it asks again: briefly, as tests wait for it.
const EVERY: Span = Span::from_millis(200);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, directory, range @ ..] = arguments.as_slice() else {
        panic!("usage: page_data SOURCE DIR [SINCE [UNTIL]]");
    };
    let point = |at: usize| range.get(at).map(|text| time_expr::parse(text).unwrap());
    let range = TimeRange { since: point(0), until: point(1) };
    let (path, directory) = (Path::new(source), Path::new(directory));
    let source = answers::open_screened(path, range, &mut |_| ()).unwrap();
    let of = PageSource { source: &source, path, range, group: None, at: None };
    let (page, problems) = answers::page(of, &Question::default());
    assert!(problems.is_empty(), "{problems:?}");
    let screen = Screen::default();
    let data = DataAddress { url: "data", every: Some(EVERY) };
    let served = ServedPage { data, ..ServedPage::default() };
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("embedded.html"), report(&page, &screen)).unwrap();
    fs::write(directory.join("page.html"), served_report(&page, &screen, &served)).unwrap();
    fs::write(directory.join("data"), page_data(&page, &screen).to_body()).unwrap();
}
