//! A terminal that memtide runs on: what is shown on it, and keys that are pressed.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fcntl_getfl, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Both ends of a terminal, and what was shown on it.
pub(crate) struct Terminal {
    /// The end of the program.
    device: File,
    /// The end of the person.
    screen: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let screen = screen.unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let device = open(&*ptsname(&screen, Vec::new()).unwrap(), flags, Mode::empty()).unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let screen = File::from(screen);
        let (mut reader, all) = (screen.try_clone().unwrap(), Arc::clone(&shown));
        // Ends when nobody has the other end.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = reader.read(&mut buffer) {
                all.lock().unwrap().extend(&buffer[..len]);
            }
        });
        Self { device: device.into(), screen, shown }
    }

    /// A terminal of so many columns and lines.
    pub(crate) fn of_size(columns: u16, lines: u16) -> Self {
        let terminal = Self::open();
        terminal.resize(columns, lines);
        terminal
    }

    /// Gives it another size. A program that it does not control needs a SIGWINCH as well.
    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let size = Winsize { ws_col: columns, ws_row: lines, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.device, size).unwrap();
    }

    /// How it is set, and whether reads from it block.
    pub(crate) fn setting(&self) -> (String, OFlags) {
        let modes = rustix::termios::tcgetattr(&self.device).unwrap();
        (format!("{modes:?}"), fcntl_getfl(&self.device).unwrap())
    }

    /// Everything that was written to it.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Forgets what was written to it: a program that draws all of it anew need not have what was there.
    pub(crate) fn forget(&self) {
        self.shown.lock().unwrap().clear();
    }

    /// What stands on it now, as a person sees it.
    pub(crate) fn picture(&self, columns: u16, lines: u16) -> String {
        let size = [lines, columns].map(|size| NonZeroU16::new(size).unwrap());
        let mut parser = vt100::Parser::new(size[0], size[1], 0);
        parser.process(&self.shown.lock().unwrap());
        parser.screen().contents()
    }

    /// Presses keys, one after the other.
    pub(crate) fn press(&self, keys: &str) {
        (&self.screen).write_all(keys.as_bytes()).unwrap();
    }

    /// Runs memtide on it.
    pub(crate) fn run(
        &self,
        arguments: &[&str],
        set: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Child {
        let end = || Stdio::from(self.device.try_clone().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_memtide"));
        command.args(arguments).stdin(end()).stdout(end()).stderr(end());
        set(&mut command).spawn().unwrap()
    }
}

/// Waits for a condition; one that does not come in time may be one that passed.
pub(crate) fn wait_for(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for a program to end.
pub(crate) fn end_of(program: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = program.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > Duration::from_secs(120) {
            let _ = program.kill();
            panic!("the program did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a program.
pub(crate) fn signal(program: &Child, signal: Signal) {
    kill_process(Pid::from_child(program), signal).unwrap();
}
