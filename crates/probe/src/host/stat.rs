//! CPU time and task counts of the whole machine: `/proc/stat`.
//!
//! CPU times are USER_HZ ticks summed over CPUs: 8 columns in 2.6.11, `guest` since 2.6.24, `guest_nice` since 2.6.33.
//! Guest time is also in user time. `processes` counts forks since boot, threads included. The lines of single CPUs and
//! of interrupts, most of the file on a large host, are skipped. Cost: one `pread` of 1 KiB, 5 µs; some 60 µs on a host
//! of 64 CPUs, where the kernel sums every interrupt of every CPU.

use timeline::{
    Counter, Sample, Signal,
    signals::{
        CPU_GUEST, CPU_GUEST_NICE, CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_NICE, CPU_SOFTIRQ, CPU_STEAL,
        CPU_SYSTEM, CPU_USER, FORKS, STAT, TASKS_BLOCKED, TASKS_RUNNING,
    },
};
use units::{Count, Ticks};

use crate::error::{First, ParseError};
use crate::text;

/// The columns of the line `cpu`.
const CPU: [Signal<Counter<Ticks>>; 10] = [
    CPU_USER,
    CPU_NICE,
    CPU_SYSTEM,
    CPU_IDLE,
    CPU_IOWAIT,
    CPU_IRQ,
    CPU_SOFTIRQ,
    CPU_STEAL,
    CPU_GUEST,
    CPU_GUEST_NICE,
];

/// Reads the text into the host's row.
///
/// # Errors
/// The first line without a number; the other lines are read.
pub(crate) fn parse(text: &[u8], sample: &mut Sample) -> Result<(), ParseError> {
    let Sample { host, unknown, .. } = sample;
    let mut first = First::default();
    for (count, line) in text::lines(text) {
        let mut bad = |word: &[u8]| first.note(|| ParseError::new(STAT, count, "a number", word));
        let Some(end) = memchr::memchr(b' ', line) else {
            continue;
        };
        let (name, values) = line.split_at(end);
        if name == b"cpu" {
            for (signal, word) in CPU.iter().zip(text::words(values)) {
                match text::number(word) {
                    Some(ticks) => host.set(*signal, Ticks::new(ticks)),
                    None => bad(word),
                }
            }
            continue;
        }
        if name.starts_with(b"cpu") || name == b"intr" || name == b"softirq" {
            continue;
        }
        let word = text::trim(values);
        let Some(value) = text::number(word) else {
            bad(word);
            continue;
        };
        match name {
            b"processes" => host.set(FORKS, Count::new(value)),
            b"procs_running" => host.set(TASKS_RUNNING, Count::new(value)),
            b"procs_blocked" => host.set(TASKS_BLOCKED, Count::new(value)),
            _ => unknown.keep(STAT, &text::lossy(name), value),
        }
    }
    first.into_result()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    const V6_1: &[u8] = include_bytes!("../../tests/kernel/6.1/stat");
    const V6_18: &[u8] = include_bytes!("../../tests/kernel/6.18/stat");
    const V2_6_32: &[u8] = b"\
cpu  301854 612 111922 8979004 3552 2 3944 0 7
cpu0 301854 612 111922 8979004 3552 2 3944 0 7
intr 73777505 41 9 0
ctxt 38014093
btime 1418183276
processes 26442
procs_running 2
procs_blocked 1
softirq 5057579 250191
";

    fn read(text: &[u8]) -> (Sample, Result<(), ParseError>) {
        let mut sample = Sample::default();
        let result = parse(text, &mut sample);
        (sample, result)
    }

    #[test]
    fn the_line_of_all_cpus_counts_and_lists_are_passed_over() {
        let (sample, result) = read(V6_1);
        result.unwrap();
        for (signal, ticks) in
            [(CPU_USER, 64), (CPU_SYSTEM, 1_604), (CPU_SOFTIRQ, 36), (CPU_GUEST_NICE, 0)]
        {
            assert_eq!(sample.host.get(signal), Some(Ticks::new(ticks)));
        }
        assert_eq!(sample.host.get(FORKS), Some(Count::new(157)));
        assert_eq!(sample.host.get(TASKS_RUNNING), Some(Count::new(2)));
        assert_eq!(sample.host.get(TASKS_BLOCKED), Some(Count::new(0)));
        assert_eq!(sample.host.iter().count(), 13);
        let unknown: Vec<_> = sample.unknown.iter().map(|u| u.field.as_str()).collect();
        assert_eq!(unknown, ["ctxt", "btime"]);
        read(V6_18).1.unwrap();
    }

    #[test]
    fn a_kernel_without_guest_nice_has_no_reading_of_it() {
        let (sample, result) = read(V2_6_32);
        result.unwrap();
        assert_eq!(sample.host.get(CPU_GUEST), Some(Ticks::new(7)));
        assert_eq!(sample.host.get(CPU_GUEST_NICE), None, "missing is not zero");
    }

    #[test]
    fn a_bad_number_costs_itself_only() {
        let (sample, result) =
            read(b"cpu  1 -2 3 18446744073709551616 5\nprocs_running two\nprocs_blocked 3");
        let message = "/proc/stat, line 1: expected a number, found `-2`";
        assert_eq!(result.unwrap_err().to_string(), message);
        assert_eq!(sample.host.get(CPU_NICE), None);
        assert_eq!(sample.host.get(CPU_IDLE), None);
        assert_eq!(sample.host.get(CPU_IOWAIT), Some(Ticks::new(5)));
        assert_eq!(sample.host.get(TASKS_RUNNING), None);
        assert_eq!(sample.host.get(TASKS_BLOCKED), Some(Count::new(3)));
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(V6_1, |text| drop(read(text)));
    }
}
