//! Mapped files with their part of the page cache.

use units::{Bytes, Count};

use super::panel;
use crate::html::escape::{Html, Tag, tag};
use crate::model::explain::{ExplainReport, MappedFileEntry};
use crate::phrases::{ABSENT, explain as phrases};

/// At most this many files; the rest is summed up.
const FILES_MAX: usize = 12;

pub(super) fn draw(html: &mut Html, report: &ExplainReport) {
    if !report.files.is_empty() {
        let help = "Pages of files in RAM, shared with every process that maps them.";
        panel(html, "explain-files", "Mapped files", help, |html| {
            files(html, report);
        });
    }
}

fn files(html: &mut Html, report: &ExplainReport) {
    let all = &report.files;
    let (shown, rest) = all.split_at(all.len().min(FILES_MAX));
    html.within(Tag::of("div", "wide"), |html| {
        html.within(Tag::of("table", "files"), |html| {
            html.raw(
                "<thead><tr><th scope=\"col\">file</th><th scope=\"col\">RSS</th><th \
                 scope=\"col\">PSS</th><th scope=\"col\">in page cache</th><th \
                 scope=\"col\">length</th><th scope=\"col\">mapped by</th></tr></thead>",
            );
            html.within(tag("tbody"), |html| {
                for file in shown {
                    row(html, file, report);
                }
            });
        });
    });
    if !rest.is_empty() {
        let rss = rest.iter().map(|file| file.rss_bytes).sum::<Bytes>();
        let more = Count::new(rest.len() as u64).named("more file", "more files");
        let text = format!("And {more} with {} in RAM.", rss);
        html.tagged(Tag::of("p", "help"), &text);
    }
}

fn row(html: &mut Html, file: &MappedFileEntry, report: &ExplainReport) {
    let size =
        |bytes: Option<Bytes>| bytes.map_or_else(|| ABSENT.to_owned(), |bytes| bytes.to_string());
    html.within(tag("tr"), |html| {
        html.within(tag("th").with("scope", "row"), |html| {
            html.tagged(tag("code"), &file.name);
            if file.is_deleted {
                html.raw(" <span class=\"aside\">deleted</span>");
            }
        });
        html.tagged(tag("td"), &size(Some(file.rss_bytes)));
        html.tagged(tag("td"), &size(Some(file.pss_bytes)));
        html.tagged(tag("td"), &size(file.cached_bytes));
        html.tagged(tag("td"), &size(file.length_bytes));
        let users = phrases::file_users(file, report);
        html.tagged(Tag::of("td", "users"), users.as_deref().unwrap_or(ABSENT));
    });
}
