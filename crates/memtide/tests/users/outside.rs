//! The host: puts memtide and this program into a machine, and repeats what is printed there.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::score::{DONE, FAILED};

/// Longer than all of it takes, also under emulation on a busy host.
const WHOLE_MAX: Duration = Duration::from_secs(45 * 60);

pub(crate) fn play() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let began = Instant::now();
    let made = Command::new(root.join("scripts/systemd-vm.sh")).status();
    assert!(made.unwrap().success(), "there is no system to boot");
    println!("the system is there after {:.0} s", began.elapsed().as_secs_f64());
    let job = job();
    let mut machine = Command::new(root.join("scripts/systemd-vm.sh"))
        .arg(job.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (lines, printed) = channel();
    let output = machine.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let _ = lines.send(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
    });
    let (mut failed, mut is_whole) = (0, false);
    let began = Instant::now();
    loop {
        match printed.recv_timeout(WHOLE_MAX.saturating_sub(began.elapsed())) {
            Ok(line) => {
                failed += usize::from(line.starts_with(FAILED));
                is_whole |= line.starts_with(DONE);
                println!("{line}");
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let pid = rustix::process::Pid::from_child(&machine);
                // Not killed: it ends QEMU.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                break;
            }
        }
    }
    let _ = machine.wait();
    println!("the machine ran for {:.0} s", began.elapsed().as_secs_f64());
    if failed > 0 || !is_whole {
        println!(
            "{failed} failed{}",
            if is_whole { "" } else { ", and it did not come to its end" }
        );
        exit(1);
    }
}

/// The directory of the machine's job.
fn job() -> tempfile::TempDir {
    let job = tempfile::tempdir().unwrap();
    let at = |name: &str| job.path().join(name);
    let program = std::env::var_os("MEMTIDE_USERS_PROGRAM");
    let program = program.map_or_else(|| env!("CARGO_BIN_EXE_memtide").into(), PathBuf::from);
    std::fs::copy(program, at("memtide")).unwrap();
    std::fs::copy(std::env::current_exe().unwrap(), at("users")).unwrap();
    let only = std::env::var("MEMTIDE_USERS_ONLY").unwrap_or_default();
    let main =
        format!("#!/bin/sh\nMEMTIDE_USERS_ONLY={only} RUST_BACKTRACE=0 exec /job/users inside\n");
    std::fs::write(at("main"), main).unwrap();
    let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(at("main"), runs).unwrap();
    job
}
