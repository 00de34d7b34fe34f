//! A process whose heap lies behind a userfaultfd(2): this program, started again. Needs root, or
//! `vm.unprivileged_userfaultfd`, as the reader's faults are the kernel's.

#![allow(unsafe_code)]
#![allow(clippy::cast_possible_truncation)] // addresses of this machine

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// What the pages of the heap are while nobody has asked for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In neither RAM nor swap.
    Absent,
    /// The same, but the page map shows them as in swap: they are write-protected (6.4).
    LikeSwapped,
    /// In RAM, and again and again not.
    Vanishing,
    /// Half of them are absent, half in RAM, and again and again elsewhere.
    Moving,
}

/// When a page comes that somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    Never,
    /// After a second and a half at most.
    Late,
    AtOnce,
}

/// All that there are.
pub(crate) fn kinds() -> Vec<(Layout, Pages)> {
    let layouts = [Layout::Absent, Layout::LikeSwapped, Layout::Vanishing, Layout::Moving];
    let pages = [Pages::Never, Pages::Late, Pages::AtOnce];
    let of = |layout| pages.map(|pages| (layout, pages));
    layouts.into_iter().flat_map(of).collect()
}

const CHILD: &str = "MEMTIDE_TEST_SILENT";
/// The beginning of a line that says why there is no such process here.
const NO: &str = "no: ";

/// A process of one kind, ended when it is dropped.
pub(crate) struct SilentProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl SilentProcess {
    /// Starts it; the error says what this machine lacks.
    pub(crate) fn start(layout: Layout, pages: Pages) -> Result<Self, String> {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "silent_processes::silent_process"])
            .args(["--ignored", "--nocapture"])
            .env(CHILD, format!("{layout:?} {pages:?}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { child, output };
        loop {
            let line = process.line();
            if line == "ready\n" {
                return Ok(process);
            }
            if let Some(why) = line.strip_prefix(NO) {
                return Err(why.trim_end().to_owned());
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        assert!(length > 0, "it ended");
        line
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How many pages were asked for so far.
    pub(crate) fn asked(&mut self) -> u64 {
        self.child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        self.line().trim_end().parse().unwrap()
    }
}

impl Drop for SilentProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PAGE: usize = 4096;
/// Pages that were asked for.
static ASKED: AtomicU64 = AtomicU64::new(0);
/// Threads that have begun: what beginning takes is allocated and freed.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static MAY_GO_ON: AtomicBool = AtomicBool::new(false);

#[repr(C)]
#[derive(Default)]
struct UffdApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Default)]
struct UffdRegister {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Default)]
struct UffdCopy {
    to: u64,
    from: u64,
    length: u64,
    mode: u64,
    copied: i64,
}

#[repr(C)]
#[derive(Default)]
struct UffdProtect {
    start: u64,
    length: u64,
    mode: u64,
}

/// A message: the address of a fault is its third word.
type UffdMessage = [u64; 4];

const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_WAKE: u64 = 0x8010_aa02;
const UFFDIO_COPY: u64 = 0xc028_aa03;
const UFFDIO_WRITEPROTECT: u64 = 0xc018_aa06;
const API: u64 = 0xaa;
/// Of a registration: pages that are missing, and those that are write-protected.
const MISSING: u64 = 1;
const WRITE_PROTECTED: u64 = 2;
const FEATURES_OF_PROTECTION: u64 = 1 | 1 << 13;
/// Of a copy: who waits for the page goes on waiting.
const DONT_WAKE: u64 = 1;

/// Addresses of the heap behind a userfaultfd, and what they had before.
#[derive(Clone, Copy)]
struct Region {
    uffd: i32,
    start: u64,
    length: usize,
    /// As a number: threads share it.
    saved: u64,
}

impl Region {
    fn ioctl<T>(&self, request: u64, argument: &mut T) -> Result<(), std::io::Error> {
        // SAFETY: each request is used with the structure that the kernel's header defines for it.
        let done = unsafe { libc::ioctl(self.uffd, request as libc::Ioctl, argument) };
        (done == 0).then_some(()).ok_or_else(std::io::Error::last_os_error)
    }

    fn advise(&self, advice: i32) {
        let start = std::ptr::with_exposed_provenance_mut(self.start as usize);
        // SAFETY: the region is this process's own, and nothing but the readers of other processes uses it.
        unsafe { libc::madvise(start, self.length, advice) };
    }

    /// Puts the pages back that are missing.
    fn restore(&self, offset: usize, length: usize, mode: u64) {
        let mut at = offset;
        while at < offset + length {
            let mut copy = UffdCopy {
                to: self.start + at as u64,
                from: self.saved + at as u64,
                length: (offset + length - at) as u64,
                mode,
                copied: 0,
            };
            if self.ioctl(UFFDIO_COPY, &mut copy).is_ok() {
                return;
            }
            // It stops at a page that is there.
            at += usize::try_from(copy.copied).unwrap_or(0).max(PAGE);
        }
    }

    /// Serves faults for ever.
    fn serve(&self, pages: Pages) {
        let mut random = Random(7);
        loop {
            let mut ready = libc::pollfd { fd: self.uffd, events: libc::POLLIN, revents: 0 };
            let mut message: UffdMessage = [0; 4];
            let length = size_of::<UffdMessage>();
            // SAFETY: poll and read write to these variables only.
            let got = unsafe {
                libc::poll(&raw mut ready, 1, -1);
                libc::read(self.uffd, message.as_mut_ptr().cast(), length)
            };
            if got != length as isize {
                continue;
            }
            ASKED.fetch_add(1, SeqCst);
            let wait = match pages {
                Pages::Never => continue,
                Pages::Late => random.below(1500),
                Pages::AtOnce => 0,
            };
            std::thread::sleep(Duration::from_millis(wait));
            let offset = (message[2] - self.start) as usize / PAGE * PAGE;
            self.restore(offset, PAGE, 0);
            let mut page = [self.start + offset as u64, PAGE as u64];
            let _ = self.ioctl(UFFDIO_WAKE, &mut page);
        }
    }

    /// Takes the pages away and puts them back, for ever. Who waits for one waits on, where they never come.
    fn vanish(&self, pages: Pages) {
        let mode = if pages == Pages::Never { DONT_WAKE } else { 0 };
        let mut random = Random(11);
        loop {
            std::thread::sleep(Duration::from_micros(random.below(3000)));
            self.advise(libc::MADV_DONTNEED);
            std::thread::sleep(Duration::from_micros(random.below(1000)));
            self.restore(0, self.length, mode);
        }
    }

    /// Moves the second half away and back, for ever.
    fn travel(&self) {
        let half = self.length / PAGE / 2 * PAGE;
        let here =
            std::ptr::with_exposed_provenance_mut::<libc::c_void>(self.start as usize + half);
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let mut random = Random(13);
        // SAFETY: the half is used by nobody here, and goes to a place that was reserved for it.
        unsafe {
            let anywhere = std::ptr::null_mut();
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let there = libc::mmap(anywhere, half, libc::PROT_NONE, private, -1, 0);
            loop {
                libc::mremap(here, half, half, flags, there);
                std::thread::sleep(Duration::from_micros(random.below(1000)));
                libc::mremap(there, half, half, flags, here);
                std::thread::sleep(Duration::from_micros(random.below(2000)));
            }
        }
    }
}

/// Numbers that differ.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// The process: it has a heap of many chunks, half of them freed, of which most lies behind a userfaultfd.
pub(crate) fn main() {
    let Ok(kind) = std::env::var(CHILD) else {
        return;
    };
    let kinds = kinds();
    let named = |(layout, pages): &(Layout, Pages)| format!("{layout:?} {pages:?}") == kind;
    let (layout, pages) = *kinds.iter().find(|one| named(one)).unwrap();
    let region = match region(layout) {
        Ok(region) => region,
        Err(why) => return write(&format!("\n{NO}{why}\n")),
    };
    wait_for_questions(region, layout, pages);
}

/// Makes the heap, and a userfaultfd that nothing is registered with.
fn region(layout: Layout) -> Result<Region, String> {
    let is_protected = layout == Layout::LikeSwapped;
    // SAFETY: a system call with flags alone.
    let uffd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
    if uffd < 0 {
        let why = std::io::Error::last_os_error();
        return Err(format!(
            "userfaultfd: {why}: run the tests as root, or sysctl vm.unprivileged_userfaultfd=1"
        ));
    }
    let mut chunks = Vec::new();
    // SAFETY: each chunk is written within its size, and freed once.
    unsafe {
        let small = (0..20_000).map(|index| 24 + index % 60 * 16);
        let large = (0..400).map(|index| 2000 + index * 16);
        for size in small.chain(large) {
            let chunk = libc::malloc(size).cast::<u8>();
            chunk.write_bytes(0x41, 8);
            chunks.push(chunk);
        }
        // So that the last one is not joined with the top.
        libc::malloc(5000);
        for chunk in chunks.iter().step_by(2) {
            libc::free(chunk.cast());
        }
    }
    let page_behind = |chunk: *mut u8| chunk.expose_provenance().next_multiple_of(PAGE);
    let start = page_behind(chunks[100]);
    let length = page_behind(chunks[chunks.len() - 2]) - PAGE - start;
    // SAFETY: these pages are this process's own, and readable.
    let content = unsafe {
        let start = std::ptr::with_exposed_provenance::<u8>(start);
        std::slice::from_raw_parts(start, length)
    };
    let saved = content.to_vec().leak();
    let region = Region {
        uffd: i32::try_from(uffd).unwrap(),
        start: start as u64,
        length,
        saved: saved.as_ptr().expose_provenance() as u64,
    };
    let mut api = UffdApi {
        api: API,
        features: if is_protected { FEATURES_OF_PROTECTION } else { 0 },
        ioctls: 0,
    };
    match region.ioctl(UFFDIO_API, &mut api) {
        Ok(()) => Ok(region),
        Err(why) => Err(format!("this kernel cannot protect pages that are absent: {why}")),
    }
}

/// Puts the heap behind the userfaultfd, and says how many of its pages were asked for.
fn wait_for_questions(region: Region, layout: Layout, pages: Pages) {
    let begin = || {
        BEGUN.fetch_add(1, SeqCst);
        while !MAY_GO_ON.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    std::thread::spawn(move || {
        begin();
        region.serve(pages);
    });
    std::thread::spawn(move || {
        begin();
        match layout {
            Layout::Vanishing => region.vanish(pages),
            Layout::Moving => region.travel(),
            Layout::Absent | Layout::LikeSwapped => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
        }
    });
    while BEGUN.load(SeqCst) < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // From here on this thread allocates and frees nothing: what its heap has for it comes from the userfaultfd.
    let mut register = UffdRegister {
        start: region.start,
        length: region.length as u64,
        mode: MISSING,
        ioctls: 0,
    };
    match layout {
        Layout::LikeSwapped => register.mode |= WRITE_PROTECTED,
        Layout::Moving => register.length = (region.length / PAGE / 2 * PAGE) as u64,
        Layout::Absent | Layout::Vanishing => {}
    }
    region.ioctl(UFFDIO_REGISTER, &mut register).unwrap();
    match layout {
        Layout::Absent => region.advise(libc::MADV_DONTNEED),
        Layout::LikeSwapped => {
            region.advise(libc::MADV_DONTNEED);
            let mut protect =
                UffdProtect { start: region.start, length: region.length as u64, mode: 1 };
            region.ioctl(UFFDIO_WRITEPROTECT, &mut protect).unwrap();
        }
        Layout::Moving => {
            Region { length: region.length / PAGE / 2 * PAGE, ..region }.advise(libc::MADV_DONTNEED)
        }
        Layout::Vanishing => {}
    }
    MAY_GO_ON.store(true, SeqCst);
    write("\nready\n");
    loop {
        let mut question = 0_u8;
        // SAFETY: one byte is read into one.
        if unsafe { libc::read(0, (&raw mut question).cast(), 1) } <= 0 {
            std::process::abort();
        }
        let mut digits = [b'\n'; 21];
        let mut left = ASKED.load(SeqCst);
        let mut first = digits.len() - 1;
        loop {
            first -= 1;
            digits[first] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        write(std::str::from_utf8(&digits[first..]).unwrap());
    }
}

/// Writes a text to standard output without allocating.
fn write(text: &str) {
    // SAFETY: the text is as long as it says.
    unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
}
