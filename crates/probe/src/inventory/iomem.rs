//! RAM as the kernel found it: `/proc/iomem`, ranges of physical addresses, and `/sys/firmware/memmap`, what the firmware
//! reported.
//!
//! `START-END : NAME`, in hexadecimal, a range within another one indented by two blanks. `System RAM` is what the kernel may
//! use (also `System RAM (kmem)`); in it are its image and the range of a crash kernel. Memory that `mem=` or `memmap=` cut
//! off is in the firmware's map only. Whoever is not root reads zeros. Cost: 10 KB.

use timeline::PhysicalMemory;
use units::Bytes;

use crate::kernel_file::Root;
use crate::text;

pub(super) const PATH: &str = "/proc/iomem";
/// A folder for each range.
const FIRMWARE: &str = "/sys/firmware/memmap";
/// The firmware of large hosts reports some 100 ranges.
const RANGES_MAX: usize = 1024;

const RAM: &[u8] = b"System RAM";

/// Reads both.
pub(super) fn read(root: &Root) -> Option<PhysicalMemory> {
    let memory = parse(&root.read(PATH).ok()?)?;
    Some(PhysicalMemory { firmware: of_firmware(root), ..memory })
}

/// Returns the sizes in `/proc/iomem`; `None` without addresses. Lines of another form are skipped.
pub(super) fn parse(text: &[u8]) -> Option<PhysicalMemory> {
    let mut memory = PhysicalMemory::default();
    // The end of the last range that was counted: ranges within it are its parts.
    let mut counted: Option<u64> = None;
    for (_, line) in text::lines(text) {
        let Some((start, end, name)) = range(line) else {
            continue;
        };
        let size = Bytes::new((end - start).saturating_add(1));
        if name.starts_with(RAM) {
            memory.ram += size;
            counted = None;
        } else if counted.is_none_or(|counted| start > counted) {
            if name.starts_with(b"Crash kernel") {
                memory.crash_kernel += size;
            } else if name.starts_with(b"Kernel ") {
                memory.kernel_image += size;
            } else {
                continue;
            }
            counted = Some(end);
        }
    }
    // Zeros in place of addresses make ranges of one byte; no CPU addresses more than 52 bits.
    const PLAUSIBLE: std::ops::Range<u64> = 1 << 20..1 << 52;
    PLAUSIBLE.contains(&memory.ram.get()).then_some(memory)
}

fn range(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let line = text::trim(line);
    let (start, digits) = text::leading_hexadecimal(line)?;
    let rest = line.get(digits..)?.strip_prefix(b"-")?;
    let (end, digits) = text::leading_hexadecimal(rest)?;
    let name = rest.get(digits..)?.strip_prefix(b" : ")?;
    (start <= end).then_some((start, end, name))
}

/// What the firmware reported as RAM; `None` if this kernel does not keep it.
fn of_firmware(root: &Root) -> Option<Bytes> {
    let address = |range: &str, file: &str| {
        let text = root.read(&format!("{FIRMWARE}/{range}/{file}")).ok()?;
        let digits = text::trim(&text).strip_prefix(b"0x")?;
        Some(text::leading_hexadecimal(digits)?.0)
    };
    let size = |range: &String| {
        let kind = root.read(&format!("{FIRMWARE}/{range}/type")).ok()?;
        if !kind.starts_with(RAM) {
            return None;
        }
        let bytes = address(range, "end")?.checked_sub(address(range, "start")?)?;
        Some(Bytes::new(bytes.saturating_add(1)))
    };
    let ranges = root.names(FIRMWARE);
    let sizes = ranges.iter().take(RANGES_MAX).filter_map(size);
    sizes.reduce(|sum, size| sum + size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    /// A guest of 24 GiB with Linux 6.18, whole but for devices, and the line of a crash kernel as the kernel's documents have it.
    const TEXT: &[u8] = b"00000000-00000fff : Reserved\n00001000-0009fbff : System RAM\n0009fc00-000fffff : Reserved\n\
  000f0000-000fffff : System ROM\n00100000-bfffffff : System RAM\n  01000000-02209987 : Kernel code\n\
  02400000-02e09fff : Kernel rodata\n  03000000-0327c0ff : Kernel data\n  03b34000-03c57fff : Kernel bss\n\
  a0000000-afffffff : Crash kernel\nc0001000-eebfffff : PCI Bus 0000:00\n100000000-63fffffff : System RAM\n\
4000000000-7fffffffff : PCI Bus 0000:00\n";

    #[test]
    fn ram_the_kernels_image_and_a_crash_kernel_are_summed() {
        let memory = parse(TEXT).unwrap();
        assert_eq!(memory.ram, Bytes::new(0x9ec00 + 0xbff0_0000 + 0x5_4000_0000));
        assert_eq!(memory.crash_kernel, Bytes::from_mib(256));
        let image = 0x120_9988 + 0xa0_a000 + 0x27_c100 + 0x12_4000;
        assert_eq!(memory.kernel_image, Bytes::new(image));
        assert_eq!(memory.firmware, None);
    }

    #[test]
    fn parts_of_a_counted_range_count_once_and_zeros_are_no_addresses() {
        let nested = b"00100000-7fffffff : System RAM\n  10000000-1fffffff : Crash kernel\n    10000000-10ffffff : Crash kernel\n";
        assert_eq!(parse(nested).unwrap().crash_kernel, Bytes::from_mib(256));
        let masked = b"00000000-00000000 : Reserved\n00000000-00000000 : System RAM\n";
        assert_eq!(parse(masked), None);
    }

    #[test]
    fn the_ram_of_this_host_is_at_least_memtotal() {
        let Some(memory) = read(&Root::default()) else {
            eprintln!("skipped: /proc/iomem has addresses for root only");
            return;
        };
        let mut sample = timeline::Sample::default();
        let text = Root::default().read("/proc/meminfo").unwrap();
        crate::host::meminfo::Meminfo::default().parse(&text, &mut sample).unwrap();
        let total = sample.host.get(timeline::signals::MEM_TOTAL).unwrap();
        assert!(memory.ram >= total, "{memory:?} of {total}");
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(TEXT, |text| {
            let _ = parse(text);
        });
    }
}
