//! What a key does.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::worker::{Move, WorkerRequest};

/// What is to be done after a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AfterKey {
    /// The screen is drawn again.
    Nothing,
    /// The worker is asked.
    Ask(WorkerRequest),
    /// The process is suspended, as Ctrl-Z does.
    Suspend,
    /// The view ends.
    End,
}

/// A key by its meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum KeyMeaning {
    /// A panel by its index.
    Panel(usize),
    /// So many panels on.
    NextPanel(isize),
    /// So many rows or lines down.
    Down(isize),
    /// So many times what is visible.
    Page(isize),
    First,
    Last,
    Open,
    Back,
    Help,
    /// To the next column to sort by, or the one before.
    Sort(isize),
    SortBySize,
    Filter,
    /// Units below another unit are left out, or shown again.
    Fold,
    Freeze,
    Go(Move),
    Save,
    Suspend,
    Quit,
}

/// Every key with its meaning, in the order of the help: keys of htop, less and below.
pub(crate) const HELP: [(&str, &str); 17] = [
    ("1 2 3 4, Tab", "findings, units, processes, where"),
    ("↑ ↓ j k, PgUp PgDn, g G", "move in the list, scroll a page"),
    ("Enter", "open the row: evidence and fix, limits and pressure, figures"),
    ("Esc, Backspace", "back; clear the filter"),
    ("s S, M", "sort by the next or the previous column, by memory"),
    ("/", "show only rows with this in their name"),
    ("f", "fold: leave out units below another unit"),
    ("← →, t T", "a sample back, a sample on"),
    ("[ ]", "a minute back, a minute on"),
    ("{ }", "an hour back, an hour on"),
    ("n N", "to the next incident, to the one before"),
    ("<", "to the first sample"),
    ("0, >", "to the last sample; a live view goes on from there"),
    ("space", "freeze a live view, or go on"),
    ("w", "write the minutes up to this moment to a capture"),
    ("? h F1", "this page"),
    ("q, Ctrl-C", "end; with a page open, back"),
];

/// Returns what a key means; `None` if nothing.
pub(crate) fn command(key: KeyEvent) -> Option<KeyMeaning> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(KeyMeaning::Quit),
            KeyCode::Char('z') => Some(KeyMeaning::Suspend),
            KeyCode::Char('f') => Some(KeyMeaning::Page(1)),
            KeyCode::Char('b') => Some(KeyMeaning::Page(-1)),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char(digit @ '1'..='4') => KeyMeaning::Panel(digit as usize - '1' as usize),
        KeyCode::Tab => KeyMeaning::NextPanel(1),
        KeyCode::BackTab => KeyMeaning::NextPanel(-1),
        KeyCode::Down | KeyCode::Char('j') => KeyMeaning::Down(1),
        KeyCode::Up | KeyCode::Char('k') => KeyMeaning::Down(-1),
        KeyCode::PageDown => KeyMeaning::Page(1),
        KeyCode::PageUp => KeyMeaning::Page(-1),
        KeyCode::Home | KeyCode::Char('g') => KeyMeaning::First,
        KeyCode::End | KeyCode::Char('G') => KeyMeaning::Last,
        KeyCode::Enter => KeyMeaning::Open,
        KeyCode::Esc | KeyCode::Backspace => KeyMeaning::Back,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => KeyMeaning::Help,
        KeyCode::Char('s') | KeyCode::F(6) => KeyMeaning::Sort(1),
        KeyCode::Char('S') => KeyMeaning::Sort(-1),
        KeyCode::Char('M') => KeyMeaning::SortBySize,
        KeyCode::Char('/' | '\\') | KeyCode::F(3 | 4) => KeyMeaning::Filter,
        KeyCode::Char('f') => KeyMeaning::Fold,
        KeyCode::Char(' ') => KeyMeaning::Freeze,
        KeyCode::Right | KeyCode::Char('t') => KeyMeaning::Go(Move::Samples(1)),
        KeyCode::Left | KeyCode::Char('T') => KeyMeaning::Go(Move::Samples(-1)),
        KeyCode::Char(']') => KeyMeaning::Go(Move::Minutes(1)),
        KeyCode::Char('[') => KeyMeaning::Go(Move::Minutes(-1)),
        KeyCode::Char('}') => KeyMeaning::Go(Move::Minutes(60)),
        KeyCode::Char('{') => KeyMeaning::Go(Move::Minutes(-60)),
        KeyCode::Char('n') => KeyMeaning::Go(Move::Incident { is_next: true }),
        KeyCode::Char('N') => KeyMeaning::Go(Move::Incident { is_next: false }),
        KeyCode::Char('<') => KeyMeaning::Go(Move::Start),
        KeyCode::Char('0' | '>') => KeyMeaning::Go(Move::End),
        KeyCode::Char('w') => KeyMeaning::Save,
        KeyCode::Char('q') | KeyCode::F(10) => KeyMeaning::Quit,
        _ => return None,
    })
}
