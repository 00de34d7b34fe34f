//! Programs with a malloc heap of known content: `tests/target/target.c`, compiled here or in a root of another
//! distribution.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use heap::{Heap, HeapError, LiveMemory, TargetMemory};
use probe::{Mappings, Root};
use units::PageSize;

/// The compiled program.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("cc", &[], "heap-target"))
}

/// Compiles the program.
pub(crate) fn compile(compiler: &str, flags: &[&str], name: &str) -> PathBuf {
    compile_source(compiler, "target.c", flags, name)
}

/// Compiles another program of this folder.
pub(crate) fn compile_source(compiler: &str, source: &str, flags: &[&str], name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/target");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let status = Command::new(compiler)
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(folder.join(source))
        .args(flags)
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{compiler} cannot compile {source}: scripts/setup.sh test installs gcc and libc6-dev, and \
         scripts/setup.sh heap musl-tools"
    );
    program
}

/// A running target.
pub(crate) struct Target {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    pub(crate) ready: String,
    pid: u32,
}

/// malloc's own figures of one arena.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ArenaInfo {
    pub(crate) fast: u64,
    pub(crate) rest: u64,
    pub(crate) system: u64,
}

impl Target {
    pub(crate) fn start(arguments: &str) -> Self {
        Self::of(Command::new(program()).args(arguments.split_whitespace()))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut target = Self { child, commands, answers, ready: String::new(), pid: 0 };
        target.ready = target.line();
        assert!(target.ready.starts_with("ready"), "{}", target.ready);
        let mut words = target.ready.split_whitespace().skip(1);
        target.pid = words.find_map(|word| word.parse().ok()).unwrap();
        target
    }

    /// A target in a PID namespace of its own: the only child of the command, by its PID here.
    pub(crate) fn contained(command: &mut Command) -> Self {
        let mut target = Self::of(command);
        let parent = target.child.id();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        target.pid = children.unwrap().trim().parse().unwrap();
        target
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn ask(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").unwrap();
        self.line()
    }

    /// Ends the program.
    pub(crate) fn end(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The threads' own counts of live bytes as they are in memory: of a running target, or of one that a signal stopped.
    pub(crate) fn live_now(&self, memory: &LiveMemory) -> u64 {
        let [at, stride, threads] =
            ["counters", "stride", "threads"].map(|key| figure(&self.ready, key));
        let parts: Vec<_> =
            (0..threads).map(|index| at + index * stride..at + index * stride + 8).collect();
        let mut words = vec![0; parts.len() * 8];
        assert_eq!(memory.read_parts(&parts, &mut words), words.len());
        let words = words.as_chunks::<8>().0;
        words.iter().map(|word| u64::from_le_bytes(*word)).sum()
    }

    /// The line of `mallinfo2`, and per arena from `malloc_info`, which counts each free chunk of a bin one byte too
    /// large.
    pub(crate) fn info(&mut self) -> (String, Vec<ArenaInfo>) {
        let all = self.ask("info");
        let mut arenas = Vec::new();
        loop {
            let line = self.line();
            if line.contains("malloc_info end") || line.is_empty() {
                return (all, arenas);
            }
            let number = |key: &str| -> u64 {
                let rest = line.split_once(&format!("{key}=\"")).map_or("0", |(_, rest)| rest);
                rest.split('"').next().unwrap().parse().unwrap()
            };
            if line.starts_with("<heap nr") {
                arenas.push(ArenaInfo::default());
            }
            let in_heap = !line.starts_with("</malloc");
            let Some(arena) = arenas.last_mut().filter(|_| in_heap) else {
                continue;
            };
            // The totals over all arenas follow the last heap.
            if line.contains("type=\"fast\"") && arena.system == 0 {
                arena.fast = number("size");
            } else if line.contains("type=\"rest\"") && arena.system == 0 {
                arena.rest = number("size") - (number("count").saturating_sub(1));
            } else if line.contains("<system type=\"current\"") && arena.system == 0 {
                arena.system = number("size");
            }
        }
    }

    pub(crate) fn heap(&self) -> Result<Heap, HeapError> {
        let memory = self.memory();
        heap::read(&memory.1, &memory.0, 4096)
    }

    pub(crate) fn memory(&self) -> (Mappings, LiveMemory) {
        memory_of(self.pid())
    }
}

pub(crate) fn memory_of(pid: u32) -> (Mappings, LiveMemory) {
    let root = Root::default();
    let mappings = Mappings::read(&root, pid).unwrap();
    let memory = LiveMemory::open(&root, pid, PageSize::USUAL).unwrap();
    (mappings, memory)
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number behind `key=` in an answer.
pub(crate) fn figure(answer: &str, key: &str) -> u64 {
    let words = answer.split_whitespace();
    let mut found =
        words.filter_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
    found.next().unwrap_or_else(|| panic!("no {key} in {answer}"))
}
