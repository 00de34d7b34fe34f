//! Draws the rules' documentation on a terminal: the subset of Markdown that it uses, wrapped. No general renderer.
//!
//! Headings, paragraphs, lists and fenced blocks are recognised; anything else is a paragraph. Code spans keep their
//! backticks, so that commands are recognisable without colour.

use super::ansi::Style;
use super::page::{TextPage, piece};
use super::wrap::width;

/// Draws `text`, indented.
pub(super) fn draw(page: &mut TextPage, text: &str, indent: usize) {
    let mut paragraph = Paragraph::default();
    let mut fenced = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            paragraph.end(page, indent);
            fenced = !fenced;
        } else if fenced {
            page.line(&[piece(Style::Command, format!("{:indent$}  {line}", ""))]);
        } else if trimmed.is_empty() {
            paragraph.end(page, indent);
            page.gap();
        } else if let Some(heading) = heading(trimmed) {
            paragraph.end(page, indent);
            page.heading(heading);
        } else {
            if let Some((mark, rest)) = list_item(trimmed) {
                paragraph.end(page, indent);
                let depth = line.len() - line.trim_start().len();
                paragraph.mark = format!("{:depth$}{mark}", "");
                paragraph.add(rest);
            } else {
                paragraph.add(trimmed);
            }
        }
    }
    paragraph.end(page, indent);
}

/// Text of one paragraph or list item, which may span lines.
#[derive(Default)]
struct Paragraph {
    mark: String,
    text: String,
}

impl Paragraph {
    fn add(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(line);
    }

    fn end(&mut self, page: &mut TextPage, indent: usize) {
        let Self { mark, text } = std::mem::take(self);
        if text.is_empty() {
            return;
        }
        if mark.is_empty() {
            page.hanging(&[], indent, Style::Plain, &text);
        } else {
            let head = format!("{:indent$}{mark} ", "");
            let text_indent = width(&head);
            page.hanging(&[piece(Style::Faint, head)], text_indent, Style::Plain, &text);
        }
    }
}

fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    (rest.len() < line.len()).then(|| rest.trim())
}

/// Returns the marker of a list item (`-`, `*`, `1.`) and its text.
fn list_item(line: &str) -> Option<(&str, &str)> {
    let (mark, rest) = line.split_once(' ')?;
    let number = mark.strip_suffix('.').unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (mark == "-" || mark == "*" || is_number).then_some((mark, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Screen;

    #[test]
    fn headings_lists_and_paragraphs_are_told_apart() {
        let mut page = TextPage::new(&Screen::of_width(40));
        let text = "One\nparagraph.\n\n## Heading\n- an item that goes on\n  below its own beginning\n  - one in it\n1. first\n\
                    ```\nls -l\n```\n";
        draw(&mut page, text, 3);
        let lines = [
            "   One paragraph.",
            "",
            "Heading",
            "   - an item that goes on below its own",
            "     beginning",
            "     - one in it",
            "   1. first",
            "     ls -l",
        ];
        assert_eq!(page.finish(), lines.join("\n") + "\n");
    }
}
