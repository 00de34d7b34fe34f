//! What programs in user space say of kills for memory: killers such as systemd-oomd and earlyoom, and those that only
//! pass on what the kernel did, such as the kubelet, container runtimes and systemd.
//!
//! The kernel writes none of it; its own report, where a source has it, says more and is a
//! [`KernelReport`](crate::KernelReport).

use units::{Bytes, WallClock};

/// A program that speaks of a kill.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Messenger {
    /// The kernel, in a line that is no report.
    Kernel,
    /// systemd-oomd.
    Oomd,
    Earlyoom,
    Nohang,
    /// PM2, the process manager of Node.js.
    Pm2,
    /// The killer of Talos Linux.
    Talos,
    /// The kubelet, or another part of Kubernetes.
    Kubernetes,
    /// Docker, Podman, containerd.
    Runtime,
    Systemd,
    /// Slurm, LSF and other batch systems.
    Batch,
    /// Android's lowmemorykiller and lmkd.
    Android,
    /// A hosting platform: Cloud Run, Heroku, ECS.
    Platform,
}

impl Messenger {
    /// Its name in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "the kernel",
            Self::Oomd => "systemd-oomd",
            Self::Earlyoom => "earlyoom",
            Self::Nohang => "nohang",
            Self::Pm2 => "PM2",
            Self::Talos => "the OOM controller of Talos",
            Self::Kubernetes => "Kubernetes",
            Self::Runtime => "the container runtime",
            Self::Systemd => "systemd",
            Self::Batch => "the batch system",
            Self::Android => "Android's low-memory killer",
            Self::Platform => "the hosting platform",
        }
    }
}

/// What a program says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// A program in user space killed a process or a cgroup, or was about to.
    Kill,
    /// The kubelet evicted a pod for memory.
    Eviction,
    /// Memory passed a threshold of the killer: the kubelet reclaims memory, the node has the condition MemoryPressure,
    /// systemd-oomd is about to kill.
    Pressure,
    /// The kernel killed in a container's cgroup.
    Container,
    /// The kernel, or a killer in user space, killed a process of a unit.
    Unit,
    /// The kernel killed for lack of memory on the node.
    Node,
    /// TCP refused memory to a socket, as all sockets together were over net.ipv4.tcp_mem: nothing was killed.
    Sockets,
    /// A memory module had errors, or the kernel took a page out of use after one: nothing was killed.
    Module,
}

/// Errors of a memory module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModuleErrors {
    /// The module corrected them itself.
    pub corrected: u64,
    /// Data were lost, or a page was taken out of use.
    pub uncorrected: u64,
}

/// One message about a kill.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KillNotice {
    /// Who says it.
    pub messenger: Messenger,
    pub kind: NoticeKind,
    /// The unit, pod, container or cgroup; empty where it is not named.
    pub target: String,
    /// The name of the process; empty where it is not named.
    pub process: String,
    /// The PID of the process.
    pub pid: Option<u32>,
    /// The threshold or the reason, in the messenger's words; empty where there is none.
    pub reason: String,
    /// What the target used.
    pub used: Option<Bytes>,
    /// Its request or limit.
    pub limit: Option<Bytes>,
    /// The errors of a memory module that it reports.
    pub errors: ModuleErrors,
    /// When, if the message has a full date.
    pub wall: Option<WallClock>,
    /// The line, cut to [`TEXT_MAX`](Self::TEXT_MAX) characters.
    pub text: String,
}

impl KillNotice {
    /// At most 300 characters of a line.
    pub const TEXT_MAX: usize = 300;

    /// A notice without details.
    pub fn new(messenger: Messenger, kind: NoticeKind) -> Self {
        Self {
            messenger,
            kind,
            target: String::new(),
            process: String::new(),
            pid: None,
            reason: String::new(),
            used: None,
            limit: None,
            errors: ModuleErrors::default(),
            wall: None,
            text: String::new(),
        }
    }

    /// Whether something was killed or evicted; pressure alone ends nothing.
    pub fn ended_something(&self) -> bool {
        !matches!(self.kind, NoticeKind::Pressure | NoticeKind::Sockets | NoticeKind::Module)
    }

    /// What it is about, as `java (812)`; the process rather than what it is in; empty where neither is named.
    pub fn subject(&self) -> String {
        match (self.process.as_str(), self.pid) {
            ("", _) => self.target.clone(),
            (name, Some(pid)) => format!("{name} ({pid})"),
            (name, None) => name.to_owned(),
        }
    }
}
