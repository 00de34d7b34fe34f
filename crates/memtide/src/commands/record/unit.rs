//! The systemd unit of the recorder, as text: its permissions, and the file that needs each.

use std::path::{Path, PathBuf};

/// The first line of a unit that memtide may change and remove.
pub(super) const MARK: &str = "# Written by `memtide record --install`";

/// The systemd instance that runs the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SystemdInstance {
    /// The system's: started at boot, runs as root with few rights.
    System,
    /// One user's: runs while that user is logged in, or always with lingering.
    User,
}

/// The contents of a unit.
#[derive(Debug)]
pub(super) struct SystemdUnit {
    pub(super) owner: SystemdInstance,
    /// The memtide that records, as an absolute path.
    pub(super) program: PathBuf,
    /// Where it records.
    pub(super) directory: PathBuf,
    /// Options that differ from the defaults, each with its value.
    pub(super) options: Vec<String>,
}

impl SystemdUnit {
    /// Returns the unit file's text.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{MARK}, and removed by `memtide record --uninstall`.\n\
             # Changes here are lost with the next --install; `systemctl edit memtide` keeps them apart.\n\n\
             [Unit]\n\
             Description=memtide, flight recorder of this host's memory\n"
        );
        match self.owner {
            SystemdInstance::System => text.push_str(
                "# Early, to see the boot; only the disk must be there.\nDefaultDependencies=no\n\
                 Conflicts=shutdown.target\nBefore=shutdown.target\nAfter=local-fs.target systemd-remount-fs.service\n",
            ),
            SystemdInstance::User => {}
        }
        text.push_str(&format!("RequiresMountsFor={}\n", quoted(&self.directory)));
        text.push_str(&self.service());
        text.push_str(match self.owner {
            SystemdInstance::System => "\n[Install]\nWantedBy=multi-user.target\n",
            SystemdInstance::User => "\n[Install]\nWantedBy=default.target\n",
        });
        text
    }

    fn service(&self) -> String {
        let command: Vec<String> = [quoted(&self.program), "record".to_owned(), "--to".to_owned()]
            .into_iter()
            .chain([quoted(&self.directory)])
            .chain(self.options.iter().cloned())
            .collect();
        let mut text = format!("\n[Service]\nType=notify\nExecStart={}\n", command.join(" "));
        text.push_str(COMMON);
        if self.takes_profiles() {
            text.push_str(PROFILES);
        }
        if self.owner == SystemdInstance::System {
            text.push_str(&self.place());
            text.push_str(RIGHTS);
        }
        text
    }

    /// Whether it profiles the kernel at times.
    pub(super) fn takes_profiles(&self) -> bool {
        self.options.iter().any(|option| option == "--profile-when")
    }

    /// Returns the directories that it may write, and its view of the file system.
    fn place(&self) -> String {
        let mut text = match self.directory.strip_prefix("/var/lib") {
            Ok(name) if name.components().count() == 1 => format!(
                "\n# The only place to write to.\nStateDirectory={}\nStateDirectoryMode=0700\n",
                escaped(&name.to_string_lossy())
            ),
            _ => format!(
                "\n# The only place to write to.\nReadWritePaths={}\n",
                quoted(&self.directory)
            ),
        };
        text.push_str(PLACE);
        text
    }
}

/// Settings of both root's and users' recorders.
const COMMON: &str = "\
# To have it judge itself each minute and tell a command: memtide record --install --check 1m --on-finding CMD
# SIGHUP makes a file of what is recorded so far. A minimal host has no /bin/kill.
ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
Restart=on-failure
RestartSec=30s
# No sample for so long is no busy host any more.
WatchdogSec=10min
TimeoutStopSec=30s
# Only the recorder is asked to end; a child that seals is not waited for, as the next start goes on with it.
KillMode=mixed
# The OOM killer may kill that child; the recorder goes on.
OOMPolicy=continue
UMask=0077

# It is to sample on time when nothing else runs any more: before others, in locked memory, spared by the OOM killer.
Nice=-5
OOMScoreAdjust=-500
LimitMEMLOCK=infinity
# The recorder takes some 10 MiB, the child that seals an hour some 100 for a few seconds.
MemoryMax=384M
MemoryLow=16M
TasksMax=32

NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictRealtime=yes
# It takes openat2 away as well.
RestrictSUIDSGID=yes
SystemCallArchitectures=native
# process_vm_readv: malloc heaps, with --explain. bpf: the BPF task iterator. setpriority: the child that seals gives way.
SystemCallFilter=@system-service process_vm_readv
SystemCallFilter=~@resources @privileged @aio @keyring process_vm_writev userfaultfd
SystemCallFilter=bpf setpriority
SystemCallErrorNumber=EPERM
# systemd itself; nothing goes to a network.
RestrictAddressFamilies=AF_UNIX
IPAddressDeny=any
";

/// What a recorder needs that profiles the kernel.
const PROFILES: &str = "\
# perf_event_open: --profile-when.
SystemCallFilter=perf_event_open
";

/// The file system of the system's recorder. Some common hardening settings are absent on purpose. What systemd mounts for
/// the others is not taken for the host's: that is read of PID 1.
const PLACE: &str = "\
ProtectSystem=strict
# systemd leaves these writable beside it, /run with ProtectControlGroups=.
ReadOnlyPaths=/run -/dev/shm -/dev/mqueue -/dev/hugepages
# Read-only rather than hidden: the names of users' containers are in their homes.
ProtectHome=read-only
# Of devices it gets the kernel log only: OOM kills with the kernel's report.
PrivateDevices=yes
BindReadOnlyPaths=-/dev/kmsg
DevicePolicy=closed
DeviceAllow=/dev/kmsg r
ProtectKernelLogs=no
# All of /proc: every process and all of the host's memory is what it is for.
ProcSubset=all
ProtectProc=default
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectClock=yes
ProtectHostname=yes
RestrictNamespaces=yes
# It mounts nothing; what is mounted later is shown to it all the same.
PrivateMounts=yes
KeyringMode=private
# No PrivateNetwork=: an empty network has no net.ipv4.tcp_mem, and other counters in /proc/net.
";

/// The capabilities that it retains.
const RIGHTS: &str = "
# Capabilities that it retains:
#   CAP_SYS_PTRACE       /proc/PID/smaps_rollup and io of other users' processes; with --explain their malloc heaps
#   CAP_DAC_READ_SEARCH  io and pagemap of other users' processes, names of containers in their homes
#   CAP_SYSLOG           /dev/kmsg where kernel.dmesg_restrict=1; names of kernel functions, with --profile-when
#   CAP_BPF CAP_PERFMON  the BPF task iterator (Linux 5.8; without it, /proc); --profile-when
# Not CAP_IPC_LOCK, CAP_SYS_NICE and CAP_SYS_RESOURCE: the lines above give what they are for.
CapabilityBoundingSet=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_SYSLOG CAP_BPF CAP_PERFMON
";

/// A path as systemd reads it in a list of words.
fn quoted(path: &Path) -> String {
    word(&path.to_string_lossy())
}

/// A word as systemd reads it in a list of words.
pub(super) fn word(text: &str) -> String {
    let text = escaped(text);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%$".contains(c);
    if text.chars().all(is_plain) {
        text
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// Escapes characters that systemd would expand: `%` begins a specifier, `$` a variable.
fn escaped(text: &str) -> String {
    text.replace('%', "%%").replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(owner: SystemdInstance, directory: &str) -> String {
        let unit = SystemdUnit {
            owner,
            program: PathBuf::from("/usr/bin/memtide"),
            directory: PathBuf::from(directory),
            options: vec!["--every".to_owned(), "5s".to_owned()],
        };
        unit.text()
    }

    #[test]
    fn the_systems_unit_says_what_each_right_is_for() {
        let text = unit(SystemdInstance::System, "/var/lib/memtide");
        assert!(text.starts_with(MARK));
        for line in [
            "ExecStart=/usr/bin/memtide record --to /var/lib/memtide --every 5s",
            "Type=notify",
            "StateDirectory=memtide",
            "ProcSubset=all",
            "ProtectKernelLogs=no",
            "StateDirectoryMode=0700",
            "UMask=0077",
            "IPAddressDeny=any",
            "PrivateDevices=yes",
            "BindReadOnlyPaths=-/dev/kmsg",
            "ReadOnlyPaths=/run -/dev/shm -/dev/mqueue -/dev/hugepages",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let rights = text.lines().find(|line| line.starts_with("CapabilityBoundingSet=")).unwrap();
        for right in rights.split(['=', ' ']).skip(1) {
            let has_reason = text.lines().any(|line| line.starts_with('#') && line.contains(right));
            assert!(has_reason, "{right} has no reason");
        }
    }

    #[test]
    fn only_a_recorder_that_profiles_may_ask_the_kernel_for_samples() {
        let mut unit = SystemdUnit {
            owner: SystemdInstance::System,
            program: PathBuf::from("/usr/bin/memtide"),
            directory: PathBuf::from("/var/lib/memtide"),
            options: Vec::new(),
        };
        let asks = "SystemCallFilter=perf_event_open\n";
        assert!(!unit.text().contains(asks));
        unit.options = vec!["--profile-when".to_owned(), word("psi.memory>10%")];
        let text = unit.text();
        assert!(text.contains(asks), "{text}");
        assert!(text.contains(" --profile-when \"psi.memory>10%%\"\n"), "{text}");
    }

    #[test]
    fn a_place_of_ones_own_is_opened_for_writing_and_odd_names_are_quoted() {
        let text = unit(SystemdInstance::System, "/srv/a b/100%");
        assert!(text.contains("ReadWritePaths=\"/srv/a b/100%%\"\n"), "{text}");
        assert!(text.contains("--to \"/srv/a b/100%%\""), "{text}");
        assert!(!text.contains("StateDirectory="));
    }

    #[test]
    fn a_users_unit_has_nothing_that_only_root_may_set() {
        let text = unit(SystemdInstance::User, "/home/u/.local/state/memtide");
        for absent in [
            "CapabilityBoundingSet",
            "ProtectSystem",
            "DeviceAllow",
            "PrivateDevices",
            "multi-user",
        ] {
            assert!(!text.contains(absent), "{absent}");
        }
        assert!(text.contains("WantedBy=default.target"));
    }
}
