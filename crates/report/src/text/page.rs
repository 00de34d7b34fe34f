//! The sink of all text: lines of styled pieces, escaped, with or without colour.

use super::ansi::Style;
use super::wrap;
use super::{ColourMode, Screen};
use timeline::plain::escape;

/// On screens narrower than this, text has a line of its own below its label.
pub(super) const NARROW: usize = 60;

/// A piece of a line with its style.
pub type StyledText = (Style, String);

/// Returns a piece of a line.
pub fn piece(style: Style, text: impl Into<String>) -> StyledText {
    (style, text.into())
}

/// A line of pieces; no piece can move the cursor or has an escape sequence.
pub type StyledLine = Vec<StyledText>;

/// The lines written so far.
pub struct TextPage {
    colour: ColourMode,
    width: usize,
    lines: Vec<StyledLine>,
}

impl TextPage {
    /// An empty page.
    pub const fn new(screen: &Screen) -> Self {
        Self { colour: screen.colour, width: screen.width(), lines: Vec::new() }
    }

    /// Returns all lines, each with a line feed.
    pub fn finish(self) -> String {
        let mut out = String::new();
        for line in &self.lines {
            for (style, text) in line {
                self.write(&mut out, *style, text);
            }
            out.push('\n');
        }
        out
    }

    /// Returns all lines for a program that draws them itself.
    pub fn into_lines(self) -> Vec<StyledLine> {
        self.lines
    }

    /// Adds an empty line, unless the page is empty or ends with one.
    pub fn gap(&mut self) {
        if self.lines.last().is_some_and(|last| !last.is_empty()) {
            self.lines.push(Vec::new());
        }
    }

    /// Adds a line. Whatever the pieces contain, only escape sequences of this function reach the terminal.
    pub fn line(&mut self, pieces: &[StyledText]) {
        let last = pieces.iter().rposition(|(_, text)| !text.trim_end().is_empty());
        let end = last.map_or(0, |last| last + 1);
        let mut line: StyledLine =
            pieces[..end].iter().map(|(style, text)| (*style, escape(text).into_owned())).collect();
        if let Some((_, text)) = line.last_mut() {
            text.truncate(text.trim_end().len());
        }
        self.lines.push(line);
    }

    fn write(&self, out: &mut String, style: Style, text: &str) {
        match style.ansi_code().filter(|_| self.colour != ColourMode::Plain && !text.is_empty()) {
            Some(code) => out.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m")),
            None => out.push_str(text),
        }
    }

    /// Adds a block's heading, with an empty line above it.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        self.hanging(&[], 0, Style::Strong, text);
    }

    /// Adds `label:` and a text beside it, from the column `indent` on.
    pub(super) fn labelled(&mut self, label: &str, indent: usize, text: &str) {
        let head = [piece(Style::Faint, format!("{label}:"))];
        self.hanging(&head, indent, Style::Plain, text);
    }

    /// Adds text after `head`, wrapped, with further lines indented by `indent` cells.
    pub fn hanging(&mut self, head: &[StyledText], indent: usize, style: Style, text: &str) {
        let lines = wrap::wrap(text, self.width.saturating_sub(indent));
        let mut first = head.to_vec();
        let taken: usize = head.iter().map(|(_, text)| wrap::width(text)).sum();
        first.push(piece(Style::Plain, " ".repeat(indent.saturating_sub(taken))));
        let mut lines = lines.into_iter();
        first.push(piece(style, lines.next().unwrap_or_default()));
        self.line(&first);
        for line in lines {
            self.line(&[piece(Style::Plain, " ".repeat(indent)), (style, line)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(colour: ColourMode, pieces: &[StyledText]) -> String {
        let mut page = TextPage::new(&Screen { colour, ..Screen::default() });
        page.line(pieces);
        page.finish()
    }

    #[test]
    fn no_piece_can_bring_its_own_sequences() {
        let hostile = [piece(Style::Critical, "\u{1b}[2J"), piece(Style::Plain, "\u{7}")];
        assert_eq!(line(ColourMode::Plain, &hostile), "\\x1b[2J\\x07\n");
        assert_eq!(line(ColourMode::Ansi, &hostile), "\u{1b}[1;31m\\x1b[2J\u{1b}[0m\\x07\n");
    }

    #[test]
    fn lines_have_no_trailing_blanks() {
        let pieces =
            [piece(Style::Plain, "a "), piece(Style::Strong, " "), piece(Style::Faint, "")];
        assert_eq!(line(ColourMode::Ansi, &pieces), "a\n");
        assert_eq!(line(ColourMode::Plain, &[]), "\n");
    }
}
