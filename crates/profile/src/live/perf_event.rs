//! The system call perf_event_open, its ioctls and its ring buffers: all of this crate's unsafe code.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings as sys;
use perf_event_open_sys::ioctls;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// What an event counts or samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSource {
    /// Cycles of the CPU, with as little skid as this many levels of precision give. Needs a PMU, which few virtual machines have.
    Cycles {
        /// 0 to 3.
        precision: u8,
    },
    /// A timer of the kernel: where there is no PMU.
    CpuClock,
    /// Switches between tasks, only counted.
    ContextSwitches,
    /// A tracepoint, by its number.
    Tracepoint(u64),
}

/// An event that is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventRequest {
    pub(super) source: EventSource,
    /// Samples a second, of clocks.
    pub(super) hz: u32,
    pub(super) has_chain: bool,
    /// Also records names and starts of tasks.
    pub(super) follows_tasks: bool,
    /// Bytes after which a reader is woken.
    pub(super) wakes_at: u32,
}

/// Whether the kernel takes settings that came with 3.7 and 4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KernelAge {
    Usual,
    Old,
}

/// An open event.
#[derive(Debug)]
pub(super) struct PerfEvent {
    fd: OwnedFd,
}

impl PerfEvent {
    /// Opens an event on a CPU for all tasks; it does not run yet.
    pub(super) fn open(request: EventRequest, cpu: u32) -> io::Result<Self> {
        match Self::open_as(request, cpu, KernelAge::Usual) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                Self::open_as(request, cpu, KernelAge::Old)
            }
            opened => opened,
        }
    }

    fn open_as(request: EventRequest, cpu: u32, age: KernelAge) -> io::Result<Self> {
        let mut attr = sys::perf_event_attr::default();
        attr.size = size_of_u32(&attr);
        attr.set_disabled(1);
        attr.set_exclude_hv(1);
        let mut sample = sys::PERF_SAMPLE_IDENTIFIER | sys::PERF_SAMPLE_TID | sys::PERF_SAMPLE_TIME;
        match request.source {
            EventSource::Cycles { precision } => {
                attr.type_ = sys::PERF_TYPE_HARDWARE;
                attr.config = sys::PERF_COUNT_HW_CPU_CYCLES.into();
                attr.set_precise_ip(precision.into());
            }
            EventSource::CpuClock => {
                attr.type_ = sys::PERF_TYPE_SOFTWARE;
                attr.config = sys::PERF_COUNT_SW_CPU_CLOCK.into();
            }
            EventSource::ContextSwitches => {
                attr.type_ = sys::PERF_TYPE_SOFTWARE;
                attr.config = sys::PERF_COUNT_SW_CONTEXT_SWITCHES.into();
            }
            EventSource::Tracepoint(id) => {
                attr.type_ = sys::PERF_TYPE_TRACEPOINT;
                attr.config = id;
                attr.__bindgen_anon_1.sample_period = 1;
                sample |= sys::PERF_SAMPLE_RAW;
            }
        }
        if matches!(request.source, EventSource::Cycles { .. } | EventSource::CpuClock) {
            attr.set_freq(1);
            attr.__bindgen_anon_1.sample_freq = request.hz.into();
            attr.set_exclude_idle(1);
        }
        if request.has_chain {
            sample |= sys::PERF_SAMPLE_CALLCHAIN;
        }
        if request.follows_tasks {
            attr.set_comm(1);
            attr.set_task(1);
        }
        if request.source != EventSource::ContextSwitches {
            attr.sample_type = sample.into();
            attr.set_watermark(1);
            attr.__bindgen_anon_2.wakeup_watermark = request.wakes_at;
        }
        if age == KernelAge::Usual {
            attr.set_exclude_callchain_user(1);
            attr.set_use_clockid(1);
            attr.clockid = rustix::time::ClockId::Monotonic as i32;
        }
        let cpu = i32::try_from(cpu).unwrap_or(i32::MAX);
        // SAFETY: `attr` is initialised, lives during the call, and `size` is its size: the kernel reads and writes no more. The event
        // only counts and samples; it writes to no memory of this process but the ring that is mapped below.
        let fd = unsafe {
            perf_event_open_sys::perf_event_open(
                &raw mut attr,
                -1,
                cpu,
                -1,
                sys::PERF_FLAG_FD_CLOEXEC.into(),
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel returned this descriptor just now, and nothing else owns it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Begins to count or to sample.
    pub(super) fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open event; the argument is a number.
        done(unsafe { ioctls::ENABLE(self.fd.as_raw_fd(), 0) })
    }

    /// Ends counting or sampling.
    pub(super) fn disable(&self) -> io::Result<()> {
        // SAFETY: as for `enable`.
        done(unsafe { ioctls::DISABLE(self.fd.as_raw_fd(), 0) })
    }

    /// The number that its records carry.
    pub(super) fn id(&self) -> io::Result<u64> {
        let mut id = 0_u64;
        // SAFETY: the kernel writes 8 bytes to `id`, which lives during the call.
        done(unsafe { ioctls::ID(self.fd.as_raw_fd(), &raw mut id) })?;
        Ok(id)
    }

    /// Lets its records go to the ring of another event of the same CPU.
    pub(super) fn write_to(&self, other: &Self) -> io::Result<()> {
        // SAFETY: both descriptors are open events; the argument is a number.
        done(unsafe { ioctls::SET_OUTPUT(self.fd.as_raw_fd(), other.fd.as_raw_fd()) })
    }

    /// Records only what a filter of tracepoints accepts.
    pub(super) fn filter(&self, filter: &CStr) -> io::Result<()> {
        // SAFETY: the kernel reads a text that ends with a zero, and does not write to it.
        done(unsafe { ioctls::SET_FILTER(self.fd.as_raw_fd(), filter.as_ptr().cast_mut()) })
    }

    /// What it counted.
    pub(super) fn count(&self) -> io::Result<u64> {
        let mut bytes = [0_u8; 8];
        rustix::io::read(&self.fd, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

impl AsFd for PerfEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn size_of_u32(attr: &sys::perf_event_attr) -> u32 {
    u32::try_from(size_of_val(attr)).unwrap_or(0)
}

/// The ring buffer of an event: the kernel writes records at its head, this process reads them at its tail.
#[derive(Debug)]
pub(super) struct PerfRing {
    base: *mut u8,
    page: usize,
    /// Bytes of records; a power of two.
    size: usize,
}

impl PerfRing {
    /// Maps a ring of at least so many bytes for an event, with all its pages.
    pub(super) fn map(event: &PerfEvent, bytes: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let size = bytes.max(page).next_power_of_two();
        // SAFETY: a new mapping at an address of the kernel's choice, of an event that is open. The kernel allocates and pins its
        // pages in this call.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                page + size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &event.fd,
                0,
            )
        }?;
        Ok(Self { base: base.cast(), page, size })
    }

    fn control(&self) -> *mut sys::perf_event_mmap_page {
        self.base.cast()
    }

    /// Copies each record that is there to `record` and hands it over. A record that runs over the end of the ring is put together.
    pub(super) fn drain(&mut self, record: &mut [u8; RECORD_MAX], mut take: impl FnMut(&[u8])) {
        // SAFETY: the first page of the mapping is this structure; both fields are aligned, live as long as the mapping, and are
        // accessed by the kernel and by this process only as whole words.
        let (head, tail) = unsafe {
            let control = self.control();
            (
                AtomicU64::from_ptr(&raw mut (*control).data_head),
                AtomicU64::from_ptr(&raw mut (*control).data_tail),
            )
        };
        // Acquire: what was written before the head moved is seen after it is read.
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        while at < end {
            let mut header = [0_u8; 8];
            self.copy(at, &mut header);
            let [.., low, high] = header;
            let length = usize::from(u16::from_ne_bytes([low, high]));
            // The kernel writes no shorter one; a ring that is not understood is given up.
            if length < header.len() {
                at = end;
                break;
            }
            if let Some(place) = record.get_mut(..length) {
                self.copy(at, place);
                take(place);
            }
            at += length as u64;
        }
        // Release: what was copied is read before the kernel may write over it.
        tail.store(at, Ordering::Release);
    }

    fn copy(&self, from: u64, to: &mut [u8]) {
        let mask = self.size as u64 - 1;
        #[allow(clippy::cast_possible_truncation)] // below the size of the ring
        let start = (from & mask) as usize;
        let first = to.len().min(self.size - start);
        let (before, after) = to.split_at_mut(first);
        // SAFETY: `start + first` is at most `size`, and `after` is shorter than the ring, as a record is (64 KiB at most, and never
        // larger than its ring). Both lie within the mapping, behind its first page. The kernel does not write between tail and
        // head, which is where this reads.
        unsafe {
            let data = self.base.add(self.page);
            std::ptr::copy_nonoverlapping(data.add(start), before.as_mut_ptr(), before.len());
            std::ptr::copy_nonoverlapping(data, after.as_mut_ptr(), after.len().min(start));
        }
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, and no reference into it is left.
        let _ = unsafe { munmap(self.base.cast(), self.page + self.size) };
    }
}

/// The length of a record has 16 bits.
pub(super) const RECORD_MAX: usize = 1 << 16;
