//! `memtide lab shell` that is ended from outside: the terminal is as it was, and neither a machine nor its files are left.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fcntl_getfl, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::lab::{has_machine, machines_in, qemus_with};

/// A terminal, and what was shown on it.
struct Terminal {
    /// The end of the program.
    device: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn open() -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let screen = screen.unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let device = open(&*ptsname(&screen, Vec::new()).unwrap(), flags, Mode::empty()).unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, all) = (File::from(screen), Arc::clone(&shown));
        // Ends when nobody has the other end.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = screen.read(&mut buffer) {
                all.lock().unwrap().extend(&buffer[..len]);
            }
        });
        Self { device: device.into(), shown }
    }

    /// How it is set, and whether reads from it block.
    fn setting(&self) -> (String, OFlags) {
        let modes = rustix::termios::tcgetattr(&self.device).unwrap();
        (format!("{modes:?}"), fcntl_getfl(&self.device).unwrap())
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Starts a shell on it with this directory for temporary files.
    fn shell(&self, temporary: &Path) -> Child {
        let end = || Stdio::from(self.device.try_clone().unwrap());
        Command::new(env!("CARGO_BIN_EXE_memtide"))
            .args(["lab", "shell"])
            .env("TMPDIR", temporary)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap()
    }
}

/// Waits for a condition; one that does not come in time may be one that passed.
fn wait_for(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
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

fn end_of(shell: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = shell.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > Duration::from_secs(120) {
            let _ = shell.kill();
            panic!("the shell did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signalled(signal: Signal, moment: Moment) {
    let case = format!("{signal:?} {moment:?}");
    let directory = tempfile::tempdir().unwrap();
    let terminal = Terminal::open();
    let before = terminal.setting();
    let mut shell = terminal.shell(directory.path());
    moment.wait(&terminal, directory.path());
    kill_process(Pid::from_child(&shell), signal).unwrap();
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
    let mut shell = terminal.shell(directory.path());
    Moment::Prompt.wait(&terminal, directory.path());
    assert_ne!(terminal.setting(), before, "{}", terminal.shown());
    shell.kill().unwrap();
    shell.wait().unwrap();
    wait_for(|| qemus_with(directory.path()) == 0);
    assert_eq!(qemus_with(directory.path()), 0);
    assert_eq!(terminal.setting(), before);
    assert_eq!(machines_in(directory.path()), 1);
    let mut next = terminal.shell(directory.path());
    Moment::Tried.wait(&terminal, directory.path());
    kill_process(Pid::from_child(&next), Signal::TERM).unwrap();
    end_of(&mut next);
    assert_eq!(machines_in(directory.path()), 0);
}
