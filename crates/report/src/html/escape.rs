//! The only writer of the page: markup comes from this program's source, everything else is text.
//!
//! Markup can only be a `&'static str`, so no name of a process can become a tag, an attribute or a class. Text is
//! first made plain ([`timeline::plain`]: control, hidden and reordering characters are written out, overlong text is
//! cut), then escaped for HTML. No text goes into an element that a browser reads as code; [`json`] is for those.

use std::fmt::{Display, Write as _};

use crate::plain::harmless;

/// Returns a heading in which no line begins with a percent sign.
pub(super) fn unbroken(heading: &str) -> String {
    heading.replace(" %", "\u{a0}%")
}

/// HTML under construction.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// Returns the HTML.
    pub fn finish(self) -> String {
        self.0
    }

    /// Adds markup of this program unchanged.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text from any origin, escaped.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.0.push_str(&plain(text));
        self
    }

    /// Adds text of several lines, for an element that keeps line breaks.
    pub(crate) fn lines(&mut self, text: &str) -> &mut Self {
        for (i, line) in text.lines().enumerate() {
            self.raw(if i > 0 { "\n" } else { "" }).text(line);
        }
        self
    }

    /// Adds an element with its contents.
    pub fn within(&mut self, tag: Tag, inside: impl FnOnce(&mut Self)) -> &mut Self {
        self.open(&tag);
        inside(self);
        self.0.push_str("</");
        self.0.push_str(tag.name);
        self.0.push('>');
        self
    }

    /// Adds an element that holds text.
    pub fn tagged(&mut self, tag: Tag, text: &str) -> &mut Self {
        self.within(tag, |html| {
            html.text(text);
        })
    }

    /// Adds an empty element, which is not closed.
    pub fn open(&mut self, tag: &Tag) -> &mut Self {
        self.0.push('<');
        self.0.push_str(tag.name);
        self.0.push_str(&tag.attributes);
        self.0.push('>');
        self
    }

    /// Adds JSON for the page's script, in an element that is not executed.
    pub(crate) fn json(&mut self, json: &str) -> &mut Self {
        self.0.push_str(&self::json(json));
        self
    }

    /// Adds base64, which needs no escaping; any other character is dropped.
    pub(crate) fn base64(&mut self, encoded: &str) -> &mut Self {
        let is_base64 = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
        self.0.extend(encoded.chars().filter(is_base64));
        self
    }
}

/// The start tag of an element: its name and attributes.
#[derive(Debug, Clone)]
pub struct Tag {
    name: &'static str,
    attributes: String,
}

/// A tag without attributes.
pub const fn tag(name: &'static str) -> Tag {
    Tag { name, attributes: String::new() }
}

impl Tag {
    /// A tag with one class or several.
    pub fn of(name: &'static str, class: &'static str) -> Self {
        tag(name).with("class", class)
    }

    /// A tag with a class and the class of a severity.
    pub fn standing(name: &'static str, class: &str, standing: &'static str) -> Self {
        tag(name).with("class", &format!("{class} {standing}"))
    }

    /// Adds an attribute with text from any origin.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        // Writing to a String cannot fail.
        let _ = write!(self.attributes, " {name}=\"{}\"", plain(value));
        self
    }

    /// Adds an attribute with text of this program, of any length; only quotes are escaped.
    pub fn with_own(mut self, name: &'static str, value: &str) -> Self {
        let value = value.replace('&', "&amp;").replace('"', "&quot;");
        let _ = write!(self.attributes, " {name}=\"{value}\"");
        self
    }

    /// Adds an attribute with a formatted value.
    pub fn showing(self, name: &'static str, value: impl Display) -> Self {
        self.with(name, &value.to_string())
    }
}

/// Returns text escaped for HTML, both in elements and in quoted attributes.
fn plain(text: &str) -> String {
    let text = harmless(text);
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// Returns JSON that is safe in a `script` element: nothing ends that element, and old JavaScript parsers accept it.
fn json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match c {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut html = Html::default();
        html.text(text);
        html.finish()
    }

    #[test]
    fn no_text_is_markup() {
        for (text, safe) in [
            ("hog", "hog"),
            (
                "</script><script>alert(1)</script>",
                "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;",
            ),
            ("a & \"b\" 'c'", "a &amp; &quot;b&quot; &#39;c&#39;"),
            ("nul\0", "nul\\x00"),
            ("evil\u{202e}gpj", "evil\\u{202e}gpj"),
            ("&lt;", "&amp;lt;"),
        ] {
            assert_eq!(written(text), safe);
        }
    }

    #[test]
    fn an_attribute_ends_where_we_end_it() {
        let mut html = Html::default();
        html.tagged(tag("i").with("title", "\" onmouseover=\"x"), "<b>");
        assert_eq!(html.finish(), "<i title=\"&quot; onmouseover=&quot;x\">&lt;b&gt;</i>");
    }

    #[test]
    fn json_stays_json_and_ends_no_element() {
        let text = "</script><!-- \u{2028} & \\";
        let encoded = json(&serde_json::to_string(text).unwrap());
        assert!(!encoded.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&encoded).unwrap(), text);
    }
}
