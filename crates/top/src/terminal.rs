//! The terminal: raw while the view lasts, and as before after it, whatever ended it.

use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event as TerminalEvent};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style as CellStyle};
use report::ColourMode;
use report::text::top::TopFrame;
use report::text::{Style, StyledLine};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};

use crate::ViewEvent;
use crate::state::State;

/// How many colours a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Palette {
    /// None: weight and reverse only.
    None,
    Sixteen,
    All,
}

/// The open terminal.
pub(crate) struct Terminal {
    /// `None` while the process is suspended.
    inner: Option<DefaultTerminal>,
    palette: Palette,
    is_ascii: bool,
}

impl Terminal {
    /// Takes the terminal over. A panic gives it back before its message is written.
    pub(crate) fn open(colour: ColourMode) -> io::Result<Self> {
        let palette = palette(colour);
        Ok(Self { inner: Some(ratatui::try_init()?), palette, is_ascii: is_ascii() })
    }

    pub(crate) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        let (palette, is_ascii) = (self.palette, self.is_ascii);
        let Some(inner) = &mut self.inner else { return Ok(()) };
        inner.draw(|frame| {
            let area = frame.area();
            let drawn = state.draw(usize::from(area.width), usize::from(area.height));
            put(&drawn, frame.buffer_mut(), palette, is_ascii);
        })?;
        Ok(())
    }

    /// The next frame is drawn anew: the terminal may have lost what was on it.
    pub(crate) fn resized(&mut self) {
        // `clear` would ask the terminal where its cursor is, and wait for the answer.
        if let Some(inner) = &mut self.inner
            && let Ok(size) = inner.size()
        {
            let _ = inner.resize(Rect::from((Position::ORIGIN, size)));
        }
    }

    /// Gives the terminal back and stops this process, as the shell's Ctrl-Z does.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        self.inner = None;
        ratatui::try_restore()?;
        // To this thread, which does not go on before the process has stopped.
        signal_hook::low_level::raise(SIGTSTP)?;
        self.again()
    }

    /// Takes the terminal over again.
    pub(crate) fn again(&mut self) -> io::Result<()> {
        if self.inner.is_none() {
            self.inner = Some(ratatui::try_init()?);
        }
        self.resized();
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}

/// Reads keys in a thread of its own, until the terminal is gone.
pub(crate) fn read_keys(to: Sender<ViewEvent>) {
    std::thread::spawn(move || {
        while keys(&to).is_some() {}
        // Without keys nobody can end the view.
        let _ = to.send(ViewEvent::End);
    });
}

/// Waits for keys and passes them on; `None` if there will be no more.
fn keys(to: &Sender<ViewEvent>) -> Option<()> {
    let stdin = io::stdin();
    let mut input = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut input, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Some(()),
        Err(_) => return None,
    }
    // crossterm reads the end of a terminal that was closed again and again, for ever.
    if input[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return None;
    }
    while event::poll(Duration::ZERO).ok()? {
        if let TerminalEvent::Key(key) = event::read().ok()? {
            to.send(ViewEvent::Key(key)).ok()?;
        }
    }
    Some(())
}

/// Ends the view on a signal, so that the terminal is given back; draws it anew where its size is another one.
pub(crate) fn listen_to_signals(to: Sender<ViewEvent>) -> io::Result<()> {
    let mut signals =
        signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGCONT, SIGWINCH])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGCONT => ViewEvent::Continued,
                SIGWINCH => ViewEvent::Resized,
                _ => ViewEvent::End,
            };
            if to.send(event).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Puts a frame into a buffer; the selected line is reversed.
fn put(drawn: &TopFrame, buffer: &mut Buffer, palette: Palette, is_ascii: bool) {
    let area = buffer.area;
    for (line, y) in drawn.lines.iter().zip(area.top()..area.bottom()) {
        put_line(line, buffer, y, palette, is_ascii);
    }
    if let Some(y) = drawn.selected.and_then(|line| u16::try_from(line).ok())
        && y < area.height
    {
        for x in area.left()..area.right() {
            buffer[(x, area.top() + y)]
                .set_style(CellStyle::new().add_modifier(Modifier::REVERSED));
        }
    }
}

fn put_line(line: &StyledLine, buffer: &mut Buffer, y: u16, palette: Palette, is_ascii: bool) {
    let (mut x, right) = (buffer.area.left(), buffer.area.right());
    for (style, text) in line {
        let room = usize::from(right.saturating_sub(x));
        let style = cell_style(*style, palette);
        let plain = is_ascii.then(|| text.chars().map(in_ascii).collect::<String>());
        (x, _) = buffer.set_stringn(x, y, plain.as_deref().unwrap_or(text), room, style);
    }
}

fn cell_style(style: Style, palette: Palette) -> CellStyle {
    let plain = CellStyle::new();
    let coloured = |indexed: u8| match palette {
        Palette::None => plain,
        Palette::Sixteen => plain.fg(of_sixteen(indexed)),
        Palette::All => plain.fg(Color::Indexed(indexed)),
    };
    let word = |colour: Color| match palette {
        Palette::None => plain.add_modifier(Modifier::BOLD),
        _ => plain.fg(colour).add_modifier(Modifier::BOLD),
    };
    match style {
        Style::Plain => plain,
        Style::Strong => plain.add_modifier(Modifier::BOLD),
        Style::Faint => plain.add_modifier(Modifier::DIM),
        Style::Command if palette == Palette::None => plain,
        Style::Command => plain.fg(Color::Cyan),
        Style::Critical => word(Color::Red),
        Style::Warning => word(Color::Yellow),
        Style::Fine => word(Color::Green),
        Style::Unknown => word(Color::Blue),
        Style::Data(indexed) => coloured(indexed),
        Style::Halves(left, right) if palette == Palette::All => {
            coloured(left).bg(Color::Indexed(right))
        }
        Style::Halves(left, _) => coloured(left),
    }
}

/// The nearest of 16 colours to the colour of a term of memory.
const fn of_sixteen(indexed: u8) -> Color {
    match indexed {
        32 => Color::Blue,
        110 => Color::Cyan,
        36 => Color::Green,
        28 => Color::LightGreen,
        99 => Color::Magenta,
        147 => Color::LightBlue,
        166 => Color::Yellow,
        _ => Color::DarkGray,
    }
}

/// Whether there is colour was decided for all commands; how many colours there are, only a view has to know.
fn palette(colour: ColourMode) -> Palette {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let term = std::env::var("TERM").unwrap_or_default();
    if colour == ColourMode::Plain {
        Palette::None
    } else if is_set("COLORTERM") || term.contains("256") {
        Palette::All
    } else {
        Palette::Sixteen
    }
}

/// Whether the locale has ASCII only.
fn is_ascii() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        !(locale.contains("utf-8") || locale.contains("utf8"))
    })
}

/// What a terminal without Unicode shows for a character of a frame.
const fn in_ascii(c: char) -> char {
    match c {
        '▁' | '▂' => '_',
        '▃' | '▄' => '-',
        '▅' | '▆' => '=',
        '▇' | '█' => '#',
        '░' => ':',
        '▒' => '%',
        '▓' => 's',
        '·' | '•' => '.',
        '─' | '–' | '−' => '-',
        '│' | '┃' | '▏' => '|',
        '├' | '└' => '+',
        '▲' | '↑' => '^',
        '↓' => 'v',
        '←' => '<',
        '→' => '>',
        '⏎' => '=',
        '≈' => '~',
        '…' => '.',
        '“' | '”' => '"',
        c if c.is_ascii() => c,
        _ => '?',
    }
}
