//! Processes: the files below `/proc/PID`.

use probe::ProcessFiles;
use timeline::signals::{
    HEAP, PROC_BLKIO_DELAY, PROC_MAJFLT, PROC_MINFLT, PROC_OOM_ADJ, PROC_PARENT, PROC_RSS,
    PROC_SIZE, PROC_STIME, PROC_THREADS, PROC_UTIME, PROCESS_IO, PROCESS_STATUS, SMAPS_ROLLUP,
};
use timeline::{EntityRow, ProcessKey};
use units::{Bytes, Count, Pages, Ticks, Unit as _};

use super::{FieldLine, Texts, push};

/// Offset by which the catalogue makes `oom_score_adj` positive: -1000 becomes 0.
const OOM_ADJ_ZERO: i64 = 1000;

/// Writes a process; its key is `PID@START`.
pub(super) fn write(process: &EntityRow, texts: &mut Texts) {
    let ProcessKey { pid, start_ticks } = ProcessKey::parse(&process.key);
    let start = start_ticks.unwrap_or("0");
    let path = |file: &str| format!("/proc/{pid}/{file}");
    if let Some(stat) = stat(process, pid, start) {
        push(texts, &path("stat"), stat);
    } else {
        let name: String = process.label.chars().filter(|c| !c.is_control()).collect();
        push(texts, &path("status"), format_args!("Name:\t{name}\n"));
        if let Some(resident) = process.row.get(PROC_RSS) {
            // Only the second number is read by a parser.
            let pages = resident.get();
            push(texts, &path("statm"), format_args!("{pages} {pages} 0 0 0 0 0\n"));
        }
    }
    let (status, rollup) = (path("status"), path("smaps_rollup"));
    for (signal, raw) in process.row.iter() {
        let def = signal.def();
        match def.file {
            PROCESS_STATUS => push(texts, &status, FieldLine(def, raw)),
            SMAPS_ROLLUP => push(texts, &rollup, FieldLine(def, raw)),
            PROCESS_IO => push(texts, &path("io"), format_args!("{}: {raw}\n", def.field)),
            HEAP => {
                let path = path(ProcessFiles::MALLOC_HEAP);
                push(texts, &path, format_args!("{} {raw}\n", def.field));
            }
            _ => {}
        }
    }
    let adjusted = process.row.get(PROC_OOM_ADJ);
    if let Some(Ok(adjusted)) = adjusted.map(|adj| i64::try_from(adj.raw())) {
        let adjusted = adjusted - OOM_ADJ_ZERO;
        push(texts, &path("oom_score_adj"), format_args!("{adjusted}\n"));
    }
    if !process.group.is_empty() {
        push(texts, &path("cgroup"), cgroup(&process.group));
    }
}

/// Writes `stat` if all fields are known that parsers read, up to the last field of the oldest kernels. Other fields
/// are 0.
fn stat(process: &EntityRow, pid: &str, start: &str) -> Option<String> {
    let row = &process.row;
    let start: u64 = start.parse().ok().filter(|start| *start > 0)?;
    let numbers = [
        (4, row.get(PROC_PARENT).map(Count::get)?),
        (10, row.get(PROC_MINFLT).map(Count::get)?),
        (12, row.get(PROC_MAJFLT).map(Count::get)?),
        (14, row.get(PROC_UTIME).map(Ticks::get)?),
        (15, row.get(PROC_STIME).map(Ticks::get)?),
        (20, row.get(PROC_THREADS).map(Count::get)?),
        (22, start),
        (23, row.get(PROC_SIZE).map(Bytes::get)?),
        (24, row.get(PROC_RSS).map(Pages::get)?),
    ];
    let delay = row.get(PROC_BLKIO_DELAY).map(|ticks| (42, ticks.get()));
    let last = delay.map_or(24, |(field, _)| field);
    let number = |field: u32| {
        let known = numbers.iter().chain(&delay).find(|(at, _)| *at == field);
        known.map_or(0, |(_, number)| *number).to_string()
    };
    let numbers: Vec<String> = (4..=last).map(number).collect();
    Some(format!("{pid} ({}) ? {}\n", process.label, numbers.join(" ")))
}

/// Returns a path by which the service is recognised: it is the unique name of a cgroup.
fn cgroup(service: &str) -> String {
    let root = if service.starts_with('/') { "" } else { "/" };
    format!("0::{root}{service}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::ProcessFiles;

    #[test]
    fn a_service_is_known_again_by_the_path_that_is_written() {
        let id = "0123456789abcdef".repeat(4);
        let docker = format!("/docker/{id}");
        let pod = "/kubepods/burstable/pod0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f";
        let slice = "kubepods-burstable-pod0a1b2c3d_0a1b_0a1b_0a1b_0a1b2c3d4e5f.slice";
        let others = [
            "ssh.service",
            "init.scope",
            "lxc.payload.web",
            "/lxc/web",
            "/user.slice/user-7.slice/user@7.service/app.slice/a.scope",
        ];
        for service in others.into_iter().chain([&*docker, pod, slice]) {
            let mut process = EntityRow::default();
            let text = cgroup(service);
            let read = ProcessFiles::default().parse(7, "cgroup", text.as_bytes(), &mut process);
            assert_eq!((read, &*process.group), (Ok(true), service));
        }
    }
}
