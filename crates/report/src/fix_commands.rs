//! The changes of a fix as commands that can be pasted into a shell unchanged: what takes effect now, what keeps it over a
//! boot, what takes it back.
//!
//! Settings below /proc/sys are set by sysctl and kept by a file in sysctl.d, others are written to and kept by tmpfiles;
//! limits of a host's unit are set through systemd, those of another cgroup are written to. Names and values are safe in a
//! command already.

use diagnose::{
    FixChange, Inspection, Lasting, LimitChange, SettingChange, SettingValue, ShellCommand,
};
use timeline::Origin;
use units::{Bytes, Limit};

use crate::shell_words::quoted;

/// Commands of a fix, one a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FixCommands {
    /// What shows something or takes effect now; empty if there is none.
    pub now: String,
    /// Whether `now` only shows something.
    pub is_read_only: bool,
    /// What makes the change survive a boot; empty if there is none.
    pub persistent: String,
    /// What takes back what `now` changes; empty if there is nothing to take back, or if a part of it is unknown.
    pub undo: String,
}

impl FixCommands {
    /// The commands of a fix of a finding in a source from `origin`.
    pub fn new(fix: &diagnose::Fix, origin: &Origin) -> Self {
        let changes: Vec<ShellCommand> = fix.changes.iter().map(command).collect();
        let acting = || changes.iter().filter(|change| !change.now.is_empty());
        let is_undone = acting().all(|change| !change.undo.is_empty());
        let inspect = inspection(&fix.inspect, origin);
        // One limit may bound another: what was set last is taken back first.
        let undo = lines(acting().rev().filter(|_| is_undone).map(|change| &change.undo));
        Self {
            now: lines(std::iter::once(&inspect).chain(acting().map(|change| &change.now))),
            is_read_only: !inspect.is_empty() && acting().next().is_none(),
            persistent: lines(changes.iter().map(|change| &change.keep)),
            undo,
        }
    }
}

fn inspection(inspection: &Inspection, origin: &Origin) -> String {
    match inspection {
        Inspection::None => String::new(),
        Inspection::Commands(commands) => commands.clone(),
        Inspection::Growth { of } => {
            let source = match origin.name.as_str() {
                "" => String::new(),
                Origin::STANDARD_INPUT => " -".to_owned(),
                name => format!(" {}", quoted(name)),
            };
            let service = of.as_ref().map(|name| {
                // A name that begins with a hyphen is no option.
                let sign = if name.starts_with('-') { '=' } else { ' ' };
                format!(" --service{sign}{}", quoted(name))
            });
            format!("memtide growth{source}{}", service.unwrap_or_default())
        }
    }
}

fn lines<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    let texts: Vec<&str> = texts.map(String::as_str).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

fn command(change: &FixChange) -> ShellCommand {
    match change {
        FixChange::Setting(change) => setting(change),
        FixChange::Limit(change) => limit(change),
        FixChange::Command(command) => command.clone(),
    }
}

fn setting(change: &SettingChange) -> ShellCommand {
    let (is_now, is_kept) = match change.lasts {
        Lasting::UntilBoot => (true, false),
        Lasting::Kept => (true, true),
        Lasting::FromBoot => (false, true),
    };
    let when = |holds: bool, text: String| if holds { text } else { String::new() };
    ShellCommand {
        now: when(is_now, set(&change.to)),
        keep: when(is_kept, keep(&change.to)),
        undo: when(is_now, change.from.as_ref().map(set).unwrap_or_default()),
    }
}

fn is_sysctl(setting: &SettingValue) -> bool {
    setting.fact.file.starts_with("/proc/sys/")
}

fn set(setting: &SettingValue) -> String {
    let SettingValue { fact, value } = setting;
    match (is_sysctl(setting), value.contains(' ')) {
        (true, true) => format!("sysctl -w {}='{value}'", fact.name),
        (true, false) => format!("sysctl -w {}={value}", fact.name),
        (false, _) => format!("echo {value} > {}", fact.file),
    }
}

fn keep(setting: &SettingValue) -> String {
    let SettingValue { fact, value } = setting;
    if is_sysctl(setting) {
        format!("echo '{} = {value}' >> /etc/sysctl.d/99-zz-memtide.conf", fact.name)
    } else {
        format!("echo 'w {} - - - - {value}' >> /etc/tmpfiles.d/memtide.conf", fact.file)
    }
}

fn limit(change: &LimitChange) -> ShellCommand {
    let to = short(change.to);
    if let Some((unit, property)) = change.unit.as_deref().zip(change.file.property()) {
        // A name that systemd escaped has backslashes; it never has a quote.
        let quote = if unit.contains('\\') { "'" } else { "" };
        let set = |how: &str, value: &str| {
            format!("systemctl set-property {how}{quote}{unit}{quote} {property}={value}")
        };
        let from = change.from.map(|from| match from {
            Limit::Bytes(size) => size.get().to_string(),
            Limit::Unlimited => "infinity".to_owned(),
        });
        // A scope does not outlive the processes in it.
        let is_kept = !unit.ends_with(".scope");
        return ShellCommand {
            now: set("--runtime ", &to),
            keep: if is_kept { set("", &to) } else { String::new() },
            undo: from.map(|from| set("--runtime ", &from)).unwrap_or_default(),
        };
    }
    let path = change.path();
    let from = change.from.map(|from| change.file.written(from));
    ShellCommand {
        now: format!("echo {to} > {path}"),
        keep: String::new(),
        undo: from.map(|from| format!("echo {from} > {path}")).unwrap_or_default(),
    }
}

/// Whole MiB as `300M`, which systemd and the kernel take; other sizes in bytes.
fn short(size: Bytes) -> String {
    const MIB: u64 = 1 << 20;
    match size.get() % MIB {
        0 => format!("{}M", size.get() / MIB),
        _ => size.get().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnose::{Fix, LimitFile};
    use timeline::Fact;
    use timeline::facts::{
        DIRTY_BACKGROUND_BYTES, DIRTY_BACKGROUND_RATIO, DIRTY_BYTES, SWAPPINESS, TCP_MEM_LIMITS,
        THP_DEFRAG,
    };

    fn value(fact: Fact, value: &str) -> SettingValue {
        SettingValue { fact, value: value.to_owned() }
    }

    fn change(from: Option<SettingValue>, to: SettingValue, lasts: Lasting) -> FixChange {
        FixChange::Setting(SettingChange { from, to, lasts })
    }

    /// Now, kept, and taken back.
    fn commands(changes: impl Into<Vec<FixChange>>) -> [String; 3] {
        let fix = Fix { changes: changes.into(), ..Fix::default() };
        let commands = FixCommands::new(&fix, &Origin::default());
        assert!(!commands.is_read_only);
        [commands.now, commands.persistent, commands.undo]
    }

    #[test]
    fn a_sysctl_is_kept_by_a_drop_in_and_a_file_by_tmpfiles() {
        let change =
            |fact, from, to| change(Some(value(fact, from)), value(fact, to), Lasting::Kept);
        assert_eq!(
            commands([change(SWAPPINESS, "1", "60")]),
            [
                "sysctl -w vm.swappiness=60",
                "echo 'vm.swappiness = 60' >> /etc/sysctl.d/99-zz-memtide.conf",
                "sysctl -w vm.swappiness=1",
            ]
        );
        let [now, keep, undo] = commands([change(TCP_MEM_LIMITS, "1 2 3", "2 4 6")]);
        assert_eq!(now, "sysctl -w net.ipv4.tcp_mem='2 4 6'");
        assert_eq!(keep, "echo 'net.ipv4.tcp_mem = 2 4 6' >> /etc/sysctl.d/99-zz-memtide.conf");
        assert_eq!(undo, "sysctl -w net.ipv4.tcp_mem='1 2 3'");
        let file = "/sys/kernel/mm/transparent_hugepage/defrag";
        assert_eq!(
            commands([change(THP_DEFRAG, "always", "defer+madvise")]),
            [
                format!("echo defer+madvise > {file}"),
                format!("echo 'w {file} - - - - defer+madvise' >> /etc/tmpfiles.d/memtide.conf"),
                format!("echo always > {file}"),
            ]
        );
    }

    #[test]
    fn a_setting_has_the_lines_of_the_time_for_which_it_holds() {
        let of = |lasts| {
            commands([change(Some(value(SWAPPINESS, "1")), value(SWAPPINESS, "60"), lasts)])
                .map(|text| !text.is_empty())
        };
        assert_eq!(of(Lasting::Kept), [true, true, true]);
        assert_eq!(of(Lasting::UntilBoot), [true, false, true]);
        assert_eq!(of(Lasting::FromBoot), [false, true, false]);
    }

    #[test]
    fn several_settings_are_taken_back_together_or_not_at_all() {
        let ratio = Some(value(DIRTY_BACKGROUND_RATIO, "10"));
        let background = change(ratio, value(DIRTY_BACKGROUND_BYTES, "4096"), Lasting::Kept);
        let most = |from| change(from, value(DIRTY_BYTES, "8192"), Lasting::Kept);
        let known = commands([background.clone(), most(Some(value(DIRTY_BYTES, "9000")))]);
        assert_eq!(
            known[0],
            "sysctl -w vm.dirty_background_bytes=4096\nsysctl -w vm.dirty_bytes=8192"
        );
        assert_eq!(
            known[2],
            "sysctl -w vm.dirty_bytes=9000\nsysctl -w vm.dirty_background_ratio=10"
        );
        assert_eq!(commands([background, most(None)])[2], "");
    }

    #[test]
    fn what_only_shows_something_is_read_only_unless_a_change_follows() {
        let inspect = Inspection::Commands("sysctl vm.swappiness".to_owned());
        let fix = Fix { inspect, ..Fix::default() };
        let commands = FixCommands::new(&fix, &Origin::default());
        assert_eq!((commands.now.as_str(), commands.is_read_only), ("sysctl vm.swappiness", true));
        let later = change(None, value(SWAPPINESS, "60"), Lasting::FromBoot);
        let with = |change| {
            let fix = Fix { changes: vec![change], ..fix.clone() };
            FixCommands::new(&fix, &Origin::default())
        };
        assert!(with(later.clone()).is_read_only);
        assert!(with(later).persistent.contains("vm.swappiness = 60"));
        let now = with(change(None, value(SWAPPINESS, "60"), Lasting::UntilBoot));
        assert!(!now.is_read_only);
        assert_eq!(now.now, "sysctl vm.swappiness\nsysctl -w vm.swappiness=60");
        let nothing = FixCommands::new(&Fix::default(), &Origin::default());
        assert_eq!(nothing, FixCommands::default());
    }

    #[test]
    fn growth_is_asked_of_the_same_source_by_name() {
        let of = |of: Option<&str>, source: &str| {
            let inspect = Inspection::Growth { of: of.map(str::to_owned) };
            let origin = Origin { name: source.to_owned(), ..Origin::default() };
            let commands = FixCommands::new(&Fix { inspect, ..Fix::default() }, &origin);
            assert!(commands.is_read_only);
            commands.now
        };
        assert_eq!(of(None, ""), "memtide growth");
        assert_eq!(of(None, "/srv/a recording"), "memtide growth '/srv/a recording'");
        assert_eq!(of(Some("ledger"), "day"), "memtide growth day --service ledger");
        assert_eq!(of(Some("-it's"), ""), r"memtide growth --service='-it'\''s'");
        assert_eq!(of(None, Origin::STANDARD_INPUT), "memtide growth -");
    }

    #[test]
    fn a_unit_is_changed_through_systemd_and_a_scope_is_not_kept() {
        let of = |unit: &str, file, from| {
            commands([FixChange::Limit(LimitChange {
                cgroup: format!("/system.slice/{unit}"),
                unit: Some(unit.to_owned()),
                file,
                from,
                to: Bytes::from_mib(100),
            })])
        };
        assert_eq!(
            of("web.service", LimitFile::Max, Some(Limit::Bytes(Bytes::from_mib(80)))),
            [
                "systemctl set-property --runtime web.service MemoryMax=100M",
                "systemctl set-property web.service MemoryMax=100M",
                "systemctl set-property --runtime web.service MemoryMax=83886080",
            ]
        );
        let scope = of("machine-qemu\\x2d1.scope", LimitFile::High, Some(Limit::Unlimited));
        assert_eq!(
            scope,
            [
                "systemctl set-property --runtime 'machine-qemu\\x2d1.scope' MemoryHigh=100M",
                "",
                "systemctl set-property --runtime 'machine-qemu\\x2d1.scope' MemoryHigh=infinity",
            ]
        );
        assert_eq!(of("web.service", LimitFile::Max, None)[2], "");
    }

    #[test]
    fn another_cgroup_is_written_to_and_unlimited_is_the_word_of_its_version() {
        let of = |file, from| {
            commands([FixChange::Limit(LimitChange {
                cgroup: "/pods/web".to_owned(),
                unit: None,
                file,
                from,
                to: Bytes::from_mib(100),
            })])
        };
        assert_eq!(
            of(LimitFile::High, Some(Limit::Unlimited)),
            [
                "echo 100M > /sys/fs/cgroup/pods/web/memory.high",
                "",
                "echo max > /sys/fs/cgroup/pods/web/memory.high",
            ]
        );
        let undo = &of(LimitFile::MaxV1, Some(Limit::Unlimited))[2];
        assert_eq!(undo, "echo -1 > /sys/fs/cgroup/memory/pods/web/memory.limit_in_bytes");
        assert_eq!(of(LimitFile::Max, None)[2], "");
    }

    #[test]
    fn a_limit_that_bounds_another_is_raised_first_and_taken_back_last() {
        let of = |file| {
            FixChange::Limit(LimitChange {
                cgroup: "/web".to_owned(),
                unit: None,
                file,
                from: Some(Limit::Bytes(Bytes::from_mib(64))),
                to: Bytes::from_mib(80),
            })
        };
        let [now, keep, undo] = commands([of(LimitFile::MaxWithSwapV1), of(LimitFile::MaxV1)]);
        let at = "/sys/fs/cgroup/memory/web/memory";
        assert_eq!(
            now,
            format!("echo 80M > {at}.memsw.limit_in_bytes\necho 80M > {at}.limit_in_bytes")
        );
        assert_eq!(keep, "");
        assert_eq!(
            undo,
            format!(
                "echo 67108864 > {at}.limit_in_bytes\necho 67108864 > {at}.memsw.limit_in_bytes"
            )
        );
    }
}
