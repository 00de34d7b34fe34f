//! Who called vmalloc: `/proc/vmallocinfo`, a line for each area of the kernel's virtual address space (2.6.25).
//!
//! `START-END BYTES CALLER [MODULE] pages=N … vmalloc … N0=N`; BYTES are address space with a guard page, `pages` is
//! RAM. Only areas with the word `vmalloc` are in VmallocUsed of `/proc/meminfo`; others map pages that were allocated
//! elsewhere, or devices. The kernel writes no caller for areas that are about to be freed. Readable only by root. Cost:
//! 1 µs for each area.

use std::collections::HashMap;

use timeline::VmallocCaller;
use units::{Count, Pages};

use crate::text;

pub(super) const PATH: &str = "/proc/vmallocinfo";

/// The functions that allocate stacks of threads, which `/proc/meminfo` counts as KernelStack: what the compiler leaves
/// of `alloc_thread_stack_node` in `kernel/fork.c`, or their callers.
const STACK_CALLERS: [&[u8]; 7] = [
    b"alloc_thread_stack_node",
    b"dup_task_struct",
    b"copy_process",
    b"_do_fork",
    b"kernel_clone",
    b"fork_idle",
    b"create_io_thread",
];

/// Returns the callers but those that allocate stacks, largest first. Lines of another form are skipped.
pub(super) fn parse(text: &[u8]) -> Vec<VmallocCaller> {
    let mut sums: HashMap<FunctionAndModule<'_>, (Pages, u64)> = HashMap::new();
    for (caller, pages) in text::lines(text).filter_map(|(_, line)| area(line)) {
        if !STACK_CALLERS.contains(&caller.0) {
            let sum = sums.entry(caller).or_default();
            sum.0 += pages;
            sum.1 += 1;
        }
    }
    let mut callers: Vec<VmallocCaller> = sums
        .into_iter()
        .map(|((function, module), (pages, areas))| VmallocCaller {
            name: [text::lossy(function), text::lossy(module)].join(" ").trim_end().to_owned(),
            pages,
            areas: Count::new(areas),
        })
        .collect();
    callers.sort_by(|a, b| b.pages.cmp(&a.pages).then_with(|| a.name.cmp(&b.name)));
    callers
}

type FunctionAndModule<'a> = (&'a [u8], &'a [u8]);

/// Returns caller and pages of an area that VmallocUsed counts.
fn area(line: &[u8]) -> Option<(FunctionAndModule<'_>, Pages)> {
    let mut words = text::words(line).skip(2);
    let caller = words.next()?;
    let end = memchr::memchr(b'+', caller)?;
    let (mut module, mut pages, mut is_vmalloc) = (&b""[..], None, false);
    for word in words {
        if word.first() == Some(&b'[') {
            module = word;
        } else if let Some(number) = word.strip_prefix(b"pages=") {
            pages = text::number(number);
        } else {
            is_vmalloc |= word == b"vmalloc";
        }
    }
    let function = &caller[..end];
    is_vmalloc.then_some(((function, module), Pages::new(pages?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile;

    /// From a 6.18 host; the last lines are of other forms.
    const TEXT: &[u8] =
        b"0x0000000027847e9a-0x000000002ce246cf   20480 irq_init_percpu_irqstack+0xca/0x100 vmap\n\
        0x000000002ce246cf-0x0000000085ffaf15    8192 acpi_os_map_iomem+0x1bc/0x1e0 phys=0x00000000000a0000 ioremap\n\
        0x00000000fd881359-0x00000000b02d37b0   20480 kernel_clone+0x94/0x3e0 pages=4 vmalloc N0=4\n\
        0x00000000fd881359-0x00000000b02d37b0   12288 htab_map_alloc+0x2e4/0x5a0 pages=2 vmalloc N0=2\n\
        0x00000000fd881359-0x00000000b02d37b0    8192 htab_map_alloc+0xf6/0x5a0 pages=1 vmalloc N0=1\n\
        0x00000000fd881359-0x00000000b02d37b0   40960 load_module+0x10/0x20 [nf_tables] pages=9 vmalloc vpages N0=9\n\
        0x00000000fd881359-0x00000000b02d37b0   40960 load_module+0x10/0x20 pages=1 vmalloc N0=1\n\
        0x00000000fd881359-0x00000000b02d37b0   40960 unpurged vm_area\n\
        0x00000000fd881359-0x00000000b02d37b0   40960\n0x00\n";

    #[test]
    fn a_caller_has_all_its_areas_and_stacks_are_left_out() {
        let callers = parse(TEXT);
        let listed: Vec<_> =
            callers.iter().map(|c| (c.name.as_str(), c.pages.get(), c.areas.get())).collect();
        let expected =
            [("load_module [nf_tables]", 9, 1), ("htab_map_alloc", 3, 2), ("load_module", 1, 1)];
        assert_eq!(listed, expected);
    }

    #[test]
    fn any_bytes_are_survived() {
        hostile::feed(TEXT, |text| drop(parse(text)));
    }
}
