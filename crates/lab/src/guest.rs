//! The machine from inside, as a scenario uses it: what it may set, start, read and report.

mod container;
mod doctor;
mod files;
mod part;
mod program;
mod recording;

use std::cell::RefCell;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use timeline::Sample;
use timeline::signals::{Kind, MEM_AVAILABLE, SWAP_FREE, SWAP_TOTAL, Signal};
use units::{Bytes, PageSize, Pages, Quantity as _, Span};

pub use container::GuestContainer;
pub use part::Part;
pub use program::MemtideCommand;

pub(crate) use files::{GuestFiles, TOOL_PLACES};

use doctor::Doctor;
use recording::GuestRecording;

use crate::message::{GuestMessage, GuestProfile, Job, TreatmentOrder, uptime_s};
use crate::mounts;
use crate::reading::KernelReader;
use crate::setting::ScenarioSettings;

/// The machine, as a scenario uses it.
#[derive(Debug)]
pub struct Guest {
    settings: ScenarioSettings,
    is_cgroup_v1: bool,
    messages: File,
    kernel: RefCell<KernelReader>,
    /// Why the scenario failed, apart from its own errors.
    failure: Option<String>,
    recording: GuestRecording,
    /// The finding that is treated, once the recording has begun.
    treated: Option<TreatmentOrder>,
    doctor: Option<Doctor>,
    /// Commands that run before the recording begins.
    first: String,
    is_profiled: bool,
    profile: Option<MemtideCommand>,
}

impl Guest {
    /// The machine before its scenario begins; its samples go into `capture`.
    pub(crate) fn new(job: Job, messages: File, capture: File) -> Self {
        Self {
            treated: job.treated,
            doctor: None,
            first: job.first,
            is_profiled: job.is_profiled,
            profile: None,
            settings: job.settings,
            is_cgroup_v1: job.is_cgroup_v1,
            messages,
            kernel: RefCell::new(KernelReader::open()),
            failure: None,
            recording: GuestRecording::new(capture, Span::from_secs_f64(job.every_s)),
        }
    }

    /// Ends the recording; what could not be measured or sampled is an error.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        if let Some(doctor) = self.doctor.take() {
            doctor.take_back();
        }
        let profiled = self.profile.take().map_or(Ok(()), |profile| {
            let report = profile.interrupted_json()?;
            let profile = GuestProfile::of(&report).ok_or("its profile has no answer")?;
            self.send(&GuestMessage::Profiled(profile));
            Ok(())
        });
        let recorded = self.recording.end().and(profiled);
        self.failure.take().map_or(recorded, Err)
    }

    pub(crate) fn send(&mut self, message: &GuestMessage) {
        message.send(&mut self.messages);
    }

    /// Begins the recording. Settings are made before: a capture holds those of its begin.
    pub fn record(&mut self) {
        let files = GuestFiles { is_cgroup_v1: self.is_cgroup_v1 };
        let first = std::mem::take(&mut self.first);
        if let Err(why) = files.run(&first) {
            self.failure.get_or_insert(why);
        }
        self.recording.begin();
        if self.is_profiled {
            match self.memtide(&["profile", "--for", "1h", "--format", "json"]) {
                Ok(profile) => self.profile = Some(profile),
                Err(why) => {
                    self.failure.get_or_insert(why);
                }
            }
        }
        let port = self.messages.try_clone();
        if let (Some(order), Ok(port), None) = (&self.treated, port, &self.doctor) {
            self.doctor = Doctor::begin(order.rule.clone(), files, port).ok();
        }
    }

    /// Something new begins.
    pub fn phase(&mut self, text: impl Into<String>) {
        self.send(&GuestMessage::Phase { at_s: uptime_s(), text: text.into() });
    }

    /// Reports a number. NaN and infinity end the scenario as failed.
    pub fn measured(&mut self, name: &str, value: f64) {
        if !value.is_finite() {
            self.failure.get_or_insert_with(|| format!("{name} could not be measured"));
            return;
        }
        self.send(&GuestMessage::Measured { name: name.to_owned(), value });
    }

    /// Reports whether something is so, as 1 or 0.
    pub fn measured_whether(&mut self, name: &str, is_so: bool) {
        self.measured(name, f64::from(u8::from(is_so)));
    }

    /// Reports a point of a curve.
    pub fn point(&mut self, curve: &str, x: f64, y: f64) {
        self.send(&GuestMessage::Point { curve: curve.to_owned(), x, y });
    }

    /// A setting of the scenario.
    ///
    /// # Errors
    /// Where the scenario does not declare it.
    pub fn setting(&self, name: &str) -> Result<f64, String> {
        let value = self.settings.get(name).copied();
        value.ok_or_else(|| format!("the scenario has no setting {name}"))
    }

    /// A setting that counts something.
    ///
    /// # Errors
    /// As [`Self::setting`].
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
    pub fn count(&self, name: &str) -> Result<u32, String> {
        Ok(self.setting(name)?.round() as u32)
    }

    /// Whether a setting is not zero.
    ///
    /// # Errors
    /// As [`Self::setting`].
    pub fn is_set(&self, name: &str) -> Result<bool, String> {
        Ok(self.setting(name)? != 0.0)
    }

    /// Starts a part of a workload: `memtide lab PART …`.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn start(&self, part: &[&str]) -> Result<Part, String> {
        Part::start(part, self.stretch(), Stdio::piped(), Command::spawn)
    }

    /// Starts a part that works beside others: nobody reads what it prints.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn launch(&self, part: &[&str]) -> Result<Part, String> {
        Part::start(part, self.stretch(), Stdio::null(), Command::spawn)
    }

    /// Whether a finding is treated while the load goes on.
    pub fn is_treated(&self) -> bool {
        self.treated.is_some()
    }

    /// How often something is done that a scenario does this often: more often where loads work longer.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
    pub fn times(&self, count: u32) -> u32 {
        (f64::from(count) * self.stretch()).round() as u32
    }

    /// How many times as long as the scenario says its loads work.
    fn stretch(&self) -> f64 {
        self.treated.as_ref().map_or(1.0, |order| order.stretch)
    }

    /// Plays a part to its end.
    ///
    /// # Errors
    /// Where it cannot be started, or fails.
    pub fn run(&self, part: &[&str]) -> Result<(), String> {
        let is_well = self.launch(part)?.wait()?;
        is_well.then_some(()).ok_or_else(|| format!("{} was killed", part.join(" ")))
    }

    /// Starts this program with other arguments: `memtide ARGUMENTS`.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn memtide(&self, arguments: &[&str]) -> Result<MemtideCommand, String> {
        MemtideCommand::start(arguments, Command::spawn)
    }

    /// Makes a container of this cgroup's directory.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn container(&self, cgroup: &str) -> Result<GuestContainer, String> {
        GuestContainer::start(cgroup, self.is_cgroup_v1, self.stretch())
    }

    /// Whether the machine has the memory controller of cgroup v1.
    pub fn is_cgroup_v1(&self) -> bool {
        self.is_cgroup_v1
    }

    /// Mounts an ext4 disk.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn mount(&self, disk: &str, place: &str) -> Result<(), String> {
        mounts::mount_disk(disk, place)
    }

    /// Mounts a tmpfs of this size.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn mount_tmpfs(&self, place: &str, size: Bytes) -> Result<(), String> {
        mounts::mount_at("tmpfs", place, Some(&format!("size={}", size.get())))
    }

    /// Mounts a disk anew: nothing of it is cached any more, nor remembered as evicted.
    ///
    /// # Errors
    /// Where the kernel refuses it, as while a file of it is open.
    pub fn remount(&self, disk: &str, place: &str) -> Result<(), String> {
        mounts::unmount(place)?;
        mounts::mount_disk(disk, place)
    }

    /// Writes all dirty pages.
    pub fn sync(&self) {
        rustix::fs::sync();
    }

    /// Makes a cgroup with these settings, `memory.max` written as that of v2; gives its directory.
    ///
    /// # Errors
    /// Where the kernel refuses it, or the setting is one of v2 only.
    pub fn cgroup(&self, name: &str, settings: &[(&str, &str)]) -> Result<String, String> {
        let directory = format!("/sys/fs/cgroup/{name}");
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {directory}: {error}"))?;
        for (file, value) in settings {
            let file = match *file {
                "memory.max" if self.is_cgroup_v1 => "memory.limit_in_bytes",
                file => file,
            };
            self.write(&format!("{directory}/{file}"), value)?;
        }
        Ok(directory)
    }

    /// Makes a cgroup below others, which are made where they are missing: `tenant/service/task`. As [`Self::cgroup`].
    ///
    /// # Errors
    /// As [`Self::cgroup`].
    pub fn nested_cgroup(&self, path: &str, settings: &[(&str, &str)]) -> Result<String, String> {
        for (end, _) in path.match_indices('/') {
            let parent = path.get(..end).unwrap_or_default();
            let control = format!("/sys/fs/cgroup/{parent}/cgroup.subtree_control");
            let is_new = !Path::new(&format!("/sys/fs/cgroup/{parent}")).exists();
            self.cgroup(parent, &[])?;
            if is_new && !self.is_cgroup_v1 {
                self.write(&control, "+memory +io")?;
            }
        }
        self.cgroup(path, settings)
    }

    /// Reads a signal of the host, in its unit: bytes, pages, a count.
    ///
    /// # Errors
    /// Where this kernel lacks it.
    pub fn host<K: Kind>(&self, signal: Signal<K>) -> Result<f64, String> {
        self.kernel.borrow_mut().host(signal)
    }

    /// Reads a signal of a node, a cgroup, a slab cache, …, by its key.
    ///
    /// # Errors
    /// Where there is none of this key, or this kernel lacks the signal.
    pub fn row<K: Kind>(&self, key: &str, signal: Signal<K>) -> Result<f64, String> {
        self.kernel.borrow_mut().row(key, signal)
    }

    /// Reads all of the host at once, for several signals of one time.
    pub fn sample(&self) -> Sample {
        self.kernel.borrow_mut().read().clone()
    }

    /// Reads what is available, in MiB.
    ///
    /// # Errors
    /// Where this kernel lacks it.
    pub fn available_mib(&self) -> Result<f64, String> {
        Ok(mib(self.host(MEM_AVAILABLE)?))
    }

    /// Reads how much swap is used, in MiB.
    ///
    /// # Errors
    /// Where this kernel lacks it.
    pub fn swap_used_mib(&self) -> Result<f64, String> {
        Ok(mib(self.host(SWAP_TOTAL)? - self.host(SWAP_FREE)?))
    }

    /// Writes a kernel setting: `write("/proc/sys/vm/swappiness", "1")`.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn write(&self, path: &str, value: &str) -> Result<(), String> {
        std::fs::write(path, value)
            .map_err(|error| format!("cannot write {value} to {path}: {error}"))
    }

    /// Writes a setting of `vm`: `vm("swappiness", 1.0)`.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn vm(&self, name: &str, value: f64) -> Result<(), String> {
        self.write(&format!("/proc/sys/vm/{name}"), &format!("{value:.0}"))
    }

    /// Makes a disk a swap area and uses it.
    ///
    /// # Errors
    /// Where the disk cannot be written or used.
    pub fn swap_on(&self, disk: &str) -> Result<(), String> {
        mounts::swap_on(disk)
    }

    /// Makes a zram device of this size a swap area and uses it.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn swap_on_zram(&self, size: Bytes) -> Result<(), String> {
        mounts::swap_on_zram(size)
    }

    /// Waits; while a recording runs as much longer as loads work longer.
    pub fn sleep(&self, seconds: f64) {
        let stretch = if self.doctor.is_some() { self.stretch() } else { 1.0 };
        std::thread::sleep(std::time::Duration::from_secs_f64(seconds * stretch));
    }
}

/// Bytes as MiB.
pub(crate) fn mib(bytes: f64) -> f64 {
    bytes / 1_048_576.0
}

/// Pages as MiB.
pub(crate) fn pages_mib(pages: f64) -> f64 {
    mib(Pages::from_f64(pages).to_bytes(PageSize::USUAL).as_f64())
}
