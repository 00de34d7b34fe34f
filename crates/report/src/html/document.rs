//! A self-contained HTML file: its head with the content security policy and the style, and its body.

use sha2::{Digest as _, Sha256};

use super::escape::{Html, tag};

/// The pages' style, made in `web/`.
pub(super) const STYLE: &str = include_str!("../../assets/page.css");

/// The head of a file.
pub(super) struct DocumentHead<'a> {
    pub(super) title: &'a str,
    /// Style added to that of all pages.
    pub(super) style: &'static str,
    /// The script that the body holds, if any.
    pub(super) script: Option<&'a str>,
    /// Whether a server sends it: its script may ask that server for data, its forms may go there.
    pub(super) is_served: bool,
}

/// Returns the whole file.
pub(super) fn draw(page: &DocumentHead<'_>, body: impl FnOnce(&mut Html)) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n");
    html.within(tag("head"), |html| head(html, page));
    html.raw("\n");
    html.within(tag("body"), body);
    html.raw("\n</html>\n");
    html.finish()
}

fn head(html: &mut Html, page: &DocumentHead<'_>) {
    html.raw("<meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.raw(
        "<meta name=\"color-scheme\" content=\"light dark\"><meta name=\"referrer\" \
         content=\"no-referrer\">",
    );
    let policy_tag = tag("meta").with("http-equiv", "Content-Security-Policy");
    html.open(&policy_tag.with_own("content", &policy(page)));
    html.tagged(tag("title"), page.title);
    html.raw("<style>").raw(STYLE).raw(page.style).raw("</style>");
}

/// Returns the content security policy, which allows the file's own style and script by hash, and nothing from elsewhere.
fn policy(page: &DocumentHead<'_>) -> String {
    let script =
        page.script.map_or_else(String::new, |script| format!(" script-src '{}';", hash(script)));
    let (connect, forms) =
        if page.is_served { (" connect-src 'self';", "'self'") } else { ("", "'none'") };
    format!(
        "default-src 'none'; style-src '{}';{script}{connect} img-src data:; base-uri 'none'; \
         form-action {forms}",
        hash(&[STYLE, page.style].concat()),
    )
}

/// Returns the hash by which a content security policy names an element's text.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("sha256-{}", data_encoding::BASE64.encode(&digest))
}
