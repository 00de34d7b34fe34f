//! `perf.data`, as `perf record` writes it. It holds addresses: names of the kernel's come from `/proc/kallsyms`, if it was recorded on
//! this host since its last boot; programs are not unwound. Files of `perf record -z` are not read.

use std::collections::HashMap;
use std::io::Cursor;

use linux_perf_data::linux_perf_event_reader::{
    EventRecord, PerfEventType, SamplingPolicy, SoftwareCounterType,
};
use linux_perf_data::{Error, PerfFileReader, PerfFileRecord};
use probe::{Kallsyms, Root};

use super::ReadProfileError;
use crate::collected::{CpuUnit, Profile};
use crate::stack::{FramePlace, StackTable};

/// From here on values of a call chain are marks (`PERF_CONTEXT_MAX`).
const MARKS: u64 = (-4095_i64).cast_unsigned();
/// Behind this mark stand functions of the kernel (`PERF_CONTEXT_KERNEL`).
pub(crate) const KERNEL_MARK: u64 = (-128_i64).cast_unsigned();
/// The kernel's mapping and the symbol that its offset is the address of.
const KERNEL_MAPS: [(&str, &str); 2] =
    [("[kernel.kallsyms]_text", "_text"), ("[kernel.kallsyms]_stext", "_stext")];

/// Hands over the addresses of the kernel in a call chain, the innermost first, and notes whether it has a part in a program.
pub(crate) fn kernel_chain(
    chain: impl IntoIterator<Item = u64>,
    mut take: impl FnMut(u64),
    has_user: &mut bool,
) {
    let mut in_kernel = false;
    for value in chain {
        if value >= MARKS {
            in_kernel = value == KERNEL_MARK;
        } else if in_kernel {
            take(value);
        } else {
            *has_user = true;
        }
    }
}

/// The addresses of the kernel in a call chain, the outermost first, and whether it has a part in a program.
fn chain_of(chain: impl IntoIterator<Item = u64>) -> (Vec<u64>, bool) {
    let (mut kernel, mut has_user) = (Vec::new(), false);
    kernel_chain(chain, |address| kernel.push(address), &mut has_user);
    kernel.reverse();
    (kernel, has_user)
}

pub(super) fn read(content: &[u8]) -> Result<Profile, ReadProfileError> {
    let wrong = |error: Error| ReadProfileError::PerfData(error.to_string());
    let PerfFileReader { mut perf_file, mut record_iter } =
        PerfFileReader::parse_file(Cursor::new(content)).map_err(wrong)?;
    let mut profile = Profile::default();
    profile.origin.form = "perf.data".to_owned();
    profile.origin.kernel = perf_file.os_release().ok().flatten().map(str::to_owned);
    profile.origin.cpus = perf_file.nr_cpus().ok().flatten().map(|cpus| cpus.nr_cpus_online);
    let clocks: Vec<bool> =
        perf_file.event_attributes().iter().map(|one| is_clock(&one.attr.type_)).collect();
    let used = clocks.iter().position(|is_clock| *is_clock).unwrap_or(0);
    if let Some(event) = perf_file.event_attributes().get(used) {
        profile.origin.event = event.name().map(str::to_owned);
        if let SamplingPolicy::Frequency(hz) = event.attr.sampling_policy {
            #[allow(clippy::cast_precision_loss)] // hundreds
            {
                profile.origin.hz = Some(hz as f64);
            }
        }
    }
    let mut comms: HashMap<i32, String> = HashMap::new();
    // Chains are named when all is read: the kernel's mapping may come late in a pipe.
    let mut chains: HashMap<(String, Vec<u64>, bool), f64> = HashMap::new();
    let mut kernel_at = None;
    let (mut first, mut last, mut lost, mut has_chain) = (u64::MAX, 0, 0_u64, false);
    while let Some(record) = record_iter.next_record(&mut perf_file).map_err(wrong)? {
        let PerfFileRecord::EventRecord { attr_index, record } = record else {
            continue;
        };
        // A record of a later kernel is none that is needed here.
        let Ok(record) = record.parse() else {
            continue;
        };
        match record {
            EventRecord::Comm(comm) => {
                let name = String::from_utf8_lossy(&comm.name.as_slice()).into_owned();
                comms.insert(comm.tid, name);
            }
            EventRecord::Fork(fork) => {
                if let Some(name) = comms.get(&fork.ppid).cloned() {
                    comms.entry(fork.tid).or_insert(name);
                }
            }
            EventRecord::Mmap(map) => {
                let path = map.path.as_slice();
                let kernel = KERNEL_MAPS.iter().find(|(name, _)| path.as_ref() == name.as_bytes());
                kernel_at = kernel_at.or(kernel.map(|(_, symbol)| (*symbol, map.page_offset)));
            }
            EventRecord::Lost(of) => lost += of.count,
            EventRecord::Sample(sample) if attr_index == used => {
                if let Some(time) = sample.timestamp {
                    first = first.min(time);
                    last = last.max(time);
                }
                let (kernel, has_user) = match sample.callchain {
                    Some(chain) => {
                        has_chain = true;
                        chain_of((0..chain.len()).filter_map(|at| chain.get(at)))
                    }
                    None => chain_of(sample.ip.into_iter().flat_map(|ip| {
                        // Without a chain the address alone says where it was: the kernel's is the upper half.
                        let mark = if ip >> 63 == 1 { KERNEL_MARK } else { MARKS };
                        [mark, ip]
                    })),
                };
                let tid = sample.tid.unwrap_or(-1);
                let comm = match comms.get(&tid) {
                    Some(name) => name.clone(),
                    None if tid == 0 => "swapper".to_owned(),
                    None => "?".to_owned(),
                };
                *chains.entry((comm, kernel, has_user)).or_default() += 1.0;
            }
            _ => {}
        }
    }
    if chains.is_empty() {
        return Err(ReadProfileError::Empty { form: "perf.data" });
    }
    let symbols = symbols_of(kernel_at);
    if symbols.is_none() {
        profile.remarks.push(super::NO_NAMES.to_owned());
    }
    if !has_chain {
        profile.remarks.push(super::NO_CHAINS.to_owned());
    }
    let mut stacks = StackTable::default();
    for ((comm, kernel, has_user), weight) in &chains {
        let name = |address: &u64| {
            symbols.as_ref().and_then(|symbols| symbols.name(*address)).unwrap_or("[unknown]")
        };
        let user = (*has_user).then_some(("[user]", FramePlace::User));
        let frames =
            user.into_iter().chain(kernel.iter().map(|one| (name(one), FramePlace::Kernel)));
        stacks.add(comm, frames, *weight);
    }
    if first < last {
        profile.origin.seconds = Some(units::Nanos::new(last - first).to_span().as_secs_f64());
    }
    profile.origin.lost = Some(lost);
    profile.cpu = Some((CpuUnit::Samples, stacks));
    Ok(profile)
}

/// Whether an event samples busy CPUs.
fn is_clock(event: &PerfEventType) -> bool {
    match event {
        PerfEventType::Hardware(..) => true,
        PerfEventType::Software(kind) => {
            matches!(kind, SoftwareCounterType::CpuClock | SoftwareCounterType::TaskClock)
        }
        _ => false,
    }
}

/// This host's symbols, if the kernel is where it was when the file was recorded: each boot moves it.
fn symbols_of(kernel_at: Option<(&str, u64)>) -> Option<Kallsyms> {
    let (symbol, address) = kernel_at?;
    let symbols = Kallsyms::of_this_host(&Root::default()).ok()?;
    (symbols.address(symbol) == Some(address)).then_some(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_split_by_its_marks() {
        let user_mark = (-512_i64).cast_unsigned();
        let chain = [KERNEL_MARK, 3, 2, 1, user_mark, 77, 78];
        assert_eq!(chain_of(chain), (vec![1, 2, 3], true));
        assert_eq!(chain_of([KERNEL_MARK, 9]), (vec![9], false));
        assert_eq!(chain_of([user_mark, 77]), (vec![], true));
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        assert!(read(b"PERFILE2").is_err());
        let mut damaged = b"PERFILE2".to_vec();
        damaged.extend([0xff; 300]);
        assert!(read(&damaged).is_err());
    }
}
