//! Cgroups, in the files of the host's cgroup version.

use probe::CgroupFiles;
use timeline::facts::CgroupMode;
use timeline::signals::{CGROUP_IO_PRESSURE, CGROUP_MEMORY_PRESSURE};
use timeline::{EntityRow, SignalId};

use super::{PairLine, Texts, host, push};

const UNIFIED: &str = "/sys/fs/cgroup/**/";

/// Writes the files of a cgroup.
pub(super) fn write(group: &EntityRow, mode: CgroupMode, texts: &mut Texts) {
    let group_path = group.key.trim_end_matches('/');
    let (mount, unified) = match mode {
        CgroupMode::V1 => ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"),
        CgroupMode::V2 => ("/sys/fs/cgroup", "/sys/fs/cgroup"),
    };
    let mut last = ("", String::new());
    for (signal, raw) in group.row.iter() {
        let line = match mode {
            CgroupMode::V1 => in_v1(signal, raw),
            CgroupMode::V2 => in_v2(signal, raw),
        };
        let Some((name, line)) = line else { continue };
        // Most readings are of the file of the one before.
        if name != last.0 {
            last = (name, format!("{mount}{group_path}/{name}"));
        }
        push(texts, &last.1, line);
    }
    // A host with both versions has these files in the unified hierarchy.
    for file in [CGROUP_MEMORY_PRESSURE, CGROUP_IO_PRESSURE] {
        if let Some(name) = file.strip_prefix(UNIFIED) {
            let path = format!("{unified}{group_path}/{name}");
            host::pressure(&group.row, file, &path, texts);
        }
    }
}

fn in_v1(signal: SignalId, raw: u64) -> Option<(&'static str, String)> {
    /// The kernel's "no limit" with pages of 4 KiB.
    const NO_LIMIT: u64 = 0x7fff_ffff_ffff_f000;
    let (name, field) = CgroupFiles::place_in_v1(signal)?;
    let line = match field {
        "" => format!("{}\n", raw.min(NO_LIMIT)),
        field => format!("{field} {raw}\n"),
    };
    Some((name, line))
}

fn in_v2(signal: SignalId, raw: u64) -> Option<(&'static str, String)> {
    let def = signal.def();
    let name = def.file.strip_prefix(UNIFIED)?;
    let line = match name {
        "memory.stat" | "memory.events" => PairLine(def, raw).to_string(),
        "memory.pressure" | "io.pressure" => return None,
        // The largest number stands for no limit.
        _ if raw == u64::MAX => "max\n".to_owned(),
        _ => format!("{raw}\n"),
    };
    Some((name, line))
}
