//! `memtide lab shell` that is ended from outside: the terminal is as it was, and neither a machine nor its files are left.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;

use crate::lab::{has_machine, machines_in, qemus_with};
use crate::terminal::{Terminal, end_of, signal as send, wait_for};

/// Starts a shell on a terminal with this directory for temporary files.
fn start_shell(terminal: &Terminal, temporary: &Path) -> Child {
    terminal.run(&["lab", "shell"], |command| command.env("TMPDIR", temporary))
}

/// When a shell gets its signal.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// So many milliseconds after its start.
    After(u64),
    /// When the directory of its files is there.
    Made,
    /// When the machine runs that shows how the guest's instructions can run.
    Tried,
    /// When the machine has made the terminal its own.
    Raw,
    /// When it has a prompt.
    Prompt,
}

impl Moment {
    fn wait(self, terminal: &Terminal, temporary: &Path) {
        let before = terminal.setting();
        match self {
            Self::After(millis) => std::thread::sleep(Duration::from_millis(millis)),
            Self::Made => wait_for(|| machines_in(temporary) > 0),
            Self::Tried => wait_for(|| qemus_with(temporary) > 0),
            Self::Raw => wait_for(|| terminal.setting() != before),
            Self::Prompt => wait_for(|| terminal.shown().contains("lab# ")),
        }
    }
}

fn signalled(signal: Signal, moment: Moment) {
    let case = format!("{signal:?} {moment:?}");
    let directory = tempfile::tempdir().unwrap();
    let terminal = Terminal::open();
    let before = terminal.setting();
    let mut shell = start_shell(&terminal, directory.path());
    moment.wait(&terminal, directory.path());
    send(&shell, signal);
    let status = end_of(&mut shell);
    assert_eq!(qemus_with(directory.path()), 0, "{case}");
    assert_eq!(machines_in(directory.path()), 0, "{case}");
    assert_eq!(terminal.setting(), before, "{case}");
    // One that had hardly started had nothing to remove.
    if status.signal().is_none() {
        assert_eq!(status.code(), Some(3), "{case}");
        wait_for(|| terminal.shown().contains("interrupted"));
        let shown = terminal.shown();
        assert!(shown.contains("it was interrupted"), "{case}: {shown}");
    }
}

#[test]
fn a_signal_before_there_is_a_machine_leaves_nothing() {
    if !has_machine() {
        return;
    }
    let moments = [
        Moment::After(0),
        Moment::After(20),
        Moment::After(100),
        Moment::Made,
        Moment::After(500),
        Moment::Tried,
    ];
    std::thread::scope(|scope| {
        for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
            scope.spawn(move || moments.map(|moment| signalled(signal, moment)));
        }
    });
}

#[test]
fn a_signal_while_the_machine_has_the_terminal_sets_it_back() {
    if !has_machine() {
        return;
    }
    std::thread::scope(|scope| {
        for (signal, moment) in [
            (Signal::TERM, Moment::Prompt),
            (Signal::HUP, Moment::Prompt),
            (Signal::INT, Moment::Raw),
            (Signal::QUIT, Moment::Raw),
        ] {
            scope.spawn(move || signalled(signal, moment));
        }
    });
}

#[test]
fn a_shell_that_is_killed_leaves_a_usable_terminal_and_files_that_the_next_removes() {
    if !has_machine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let terminal = Terminal::open();
    let before = terminal.setting();
    let mut shell = start_shell(&terminal, directory.path());
    Moment::Prompt.wait(&terminal, directory.path());
    assert_ne!(terminal.setting(), before, "{}", terminal.shown());
    shell.kill().unwrap();
    shell.wait().unwrap();
    wait_for(|| qemus_with(directory.path()) == 0);
    assert_eq!(qemus_with(directory.path()), 0);
    assert_eq!(terminal.setting(), before);
    assert_eq!(machines_in(directory.path()), 1);
    let mut next = start_shell(&terminal, directory.path());
    Moment::Tried.wait(&terminal, directory.path());
    send(&next, Signal::TERM);
    end_of(&mut next);
    assert_eq!(machines_in(directory.path()), 0);
}
