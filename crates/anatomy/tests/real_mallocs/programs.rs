//! Programs that are compiled and started, and what is there to start them with.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use anatomy::{
    EffectiveAllocator, ElfMachine, FoundLibrary, PreloadProspect, RunPlace, effective_allocator,
    find_library, preload_prospect,
};
use heap::Heap;
use probe::Root;
use tempfile::TempDir;
use units::PageSize;

pub(crate) const JEMALLOC: (&str, &str) = ("libjemalloc.so.2", "libjemalloc2");
pub(crate) const TCMALLOC: (&str, &str) = ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4");
pub(crate) const MIMALLOC: (&str, &str) = ("libmimalloc.so.2", "libmimalloc2.0");

/// A folder of programs that every user may run.
pub(crate) struct Programs(TempDir);

impl Programs {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles the program that allocates.
    pub(crate) fn allocating(&self, flags: &[&str]) -> PathBuf {
        self.compile("cc", "allocating.c", "allocating", flags).unwrap()
    }

    /// Compiles a program; `None` if the compiler refuses.
    pub(crate) fn compile(
        &self,
        compiler: &str,
        source: &str,
        name: &str,
        flags: &[&str],
    ) -> Option<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_mallocs/programs");
        let program = self.path(name);
        let mut command = Command::new(compiler);
        command.args(["-O1", "-pthread", "-w", "-o"]).arg(&program).arg(folder.join(source));
        let status = command.args(flags).status().ok()?;
        status.success().then_some(program)
    }

    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }
}

/// A process that is ready.
pub(crate) struct Running {
    child: Child,
    /// That which said so: a wrapper is another.
    pub(crate) pid: u32,
}

impl Running {
    /// Starts a program that prints a line with `ready`, and perhaps its PID.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::start_until(command, "ready")
    }

    pub(crate) fn start_until(command: &mut Command, ready: &str) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let line = output.lines().map_while(Result::ok).find(|line| line.contains(ready));
        let line = line.expect("it did not start");
        let pid = line.strip_prefix("ready ").and_then(|pid| pid.parse().ok());
        Self { pid: pid.unwrap_or(child.id()), child }
    }

    /// The process that was started: of a wrapper, the wrapper.
    pub(crate) fn first_pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn seen(&self) -> EffectiveAllocator {
        seen(self.pid)
    }

    /// Arenas of glibc's malloc.
    pub(crate) fn arenas(&self) -> usize {
        heap(self.pid).arenas.len()
    }

    /// Lets it end by itself; returns whether it ended well, and its complaints.
    pub(crate) fn end(mut self) -> (bool, String) {
        drop(self.child.stdin.take());
        let complaints: Option<ChildStderr> = self.child.stderr.take();
        let text = std::io::read_to_string(complaints.unwrap()).unwrap();
        (self.child.wait().unwrap().success(), text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn seen(pid: u32) -> EffectiveAllocator {
    effective_allocator(&Root::default(), pid, page()).unwrap()
}

fn heap(pid: u32) -> Heap {
    heap::read_process(&Root::default(), pid, page()).unwrap()
}

fn page() -> PageSize {
    probe::host_facts::page_size().unwrap()
}

/// This machine, for the user of this test.
pub(crate) fn here() -> RunPlace {
    RunPlace {
        root: Root::default(),
        search_path: std::env::var_os("PATH").unwrap(),
        user: rustix::process::getuid().as_raw(),
        group: rustix::process::getgid().as_raw(),
    }
}

pub(crate) fn prospect(program: &Path) -> PreloadProspect {
    preload_prospect(program, &here()).unwrap()
}

/// A library of this machine; where tests must not be skipped, it has to be there.
pub(crate) fn library((soname, package): (&str, &str)) -> Option<FoundLibrary> {
    let found = find_library(&Root::default(), soname, ElfMachine::HOST);
    found.map_err(|why| skip(&format!("{why} ({package})"))).ok()
}

/// Whether a program of a package is there; where tests must not be skipped, it has to be.
pub(crate) fn has(program: &str, package: &str) -> bool {
    let found = preload_prospect(program.as_ref(), &here()).is_ok();
    if !found {
        skip(&format!("there is no {program} ({package})"));
    }
    found
}

/// A package is missing.
fn skip(why: &str) {
    let is_wanted = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!is_wanted, "{why}: sh scripts/setup.sh test");
    eprintln!("skipped: {why}: sh scripts/setup.sh test");
}
