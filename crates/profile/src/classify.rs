//! Classifies a stack: reason, work, entry.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::kernel_work::KernelWork;
use crate::purpose::Purpose;
use crate::reason::{
    IN_CHARGE, LOCK_SLOW_PATHS, MMAP_LOCKERS, REASONS, Reason, is_reclaim_function, matches,
};
use crate::stack::{FramePlace, Stack, StackFrame};

/// The answers of a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct StackClass {
    /// Who started the work.
    pub reason: Reason,
    /// What was done; `None` where no function of the stack names a mechanism.
    pub work: Option<KernelWork>,
    /// How the kernel was entered: a system call's name, `page-fault`, `kthread`, `irq`, `return-to-user`, or `-`.
    pub entry: Arc<str>,
    /// What memory was wanted for.
    pub purpose: Option<Purpose>,
    /// The function that shows it.
    pub purpose_function: Option<Arc<str>>,
    /// The place of the trigger among the frames.
    pub trigger: Option<usize>,
    /// Where the kernel's part begins that the reason is of.
    pub start: usize,
    /// Whether the CPU was idle: such a sample is none of a busy CPU.
    pub is_idle: bool,
}

/// Names by which kernel code begins, as sources show it that do not mark frames: before it stands a program.
const ENTRIES: [&str; 22] = [
    "entry_SYSCALL*",
    "entry_SYSENTER*",
    "entry_INT80*",
    "system_call*",
    "sysenter_*",
    "tracesys",
    "do_syscall_64",
    "asm_exc_*",
    "asm_sysvec_*",
    "asm_common_interrupt",
    "page_fault",
    "async_page_fault",
    "ret_from_fork*",
    "kthread",
    "kernel_thread*",
    "el0_*",
    "el0t_64_*",
    "ret_fast_syscall",
    "__entry_text_start",
    "apic_timer_interrupt",
    "secondary_startup*",
    "cpu_startup_entry",
];

/// Names that only the kernel has, where neither marks nor an entry are there.
const KERNEL_ONLY: [&str; 34] = [
    "_raw_spin_*",
    "_spin_*",
    "native_queued_*",
    "__ticket_spin_*",
    "do_raw_spin_*",
    "__schedule",
    "schedule",
    "io_schedule*",
    "finish_task_switch",
    "exc_*",
    "sysvec_*",
    "__x64_sys_*",
    "__arm64_sys_*",
    "__se_sys_*",
    "__do_sys_*",
    "SyS_*",
    "ksys_*",
    "vfs_*",
    "__do_softirq",
    "handle_softirqs",
    "do_idle",
    "process_one_work",
    "worker_thread",
    "exit_to_user_mode_*",
    "syscall_exit_to_user_mode*",
    "irqentry_*",
    "error_entry",
    "sync_regs",
    "read_hpet",
    "read_tsc",
    "vp_notify",
    "acpi_*",
    "srso_*",
    "clear_bhb*",
];

/// Names by which an interrupt begins.
const INTERRUPTS: [&str; 26] = [
    "asm_sysvec_*",
    "sysvec_*",
    "asm_common_interrupt",
    "common_interrupt",
    "asm_call_irq*",
    "apic_timer_interrupt",
    "smp_apic_timer_interrupt",
    "reschedule_interrupt",
    "smp_reschedule_interrupt",
    "call_function_interrupt",
    "call_function_single_interrupt",
    "xen_hvm_callback_vector",
    "hyperv_callback_vector",
    "do_IRQ",
    "ret_from_intr",
    "irq_exit*",
    "__irq_exit_rcu",
    "el1_irq",
    "el1h_64_irq*",
    "el0_irq*",
    "el0t_64_irq*",
    "gic_handle_irq",
    "hardware_interrupt_common*",
    "decrementer_common*",
    "asm_exc_nmi",
    "end_repeat_nmi",
];

/// On the way out of an interrupt the task itself is worked for: it is scheduled, or throttled at memory.high.
const LEAVES_INTERRUPT: [&str; 3] =
    ["irqentry_exit*", "exit_to_user_mode*", "preempt_schedule_irq"];

/// Where a CPU waits for work.
const IDLE: [&str; 13] = [
    "do_idle",
    "cpu_idle",
    "cpu_idle_loop",
    "cpuidle_*",
    "call_cpuidle",
    "intel_idle*",
    "default_idle*",
    "acpi_idle*",
    "acpi_processor_ffh_cstate_enter",
    "native_safe_halt",
    "pv_native_safe_halt",
    "mwait_idle*",
    "poll_idle",
];

/// All triggers: an exact name decides before a prefix, and a long prefix before a short one.
struct TriggerTable {
    exact: HashMap<&'static str, Reason>,
    prefixes: Vec<(&'static str, Reason)>,
}

static TRIGGERS: LazyLock<TriggerTable> = LazyLock::new(|| {
    let all = || REASONS.iter().flat_map(|row| row.triggers.iter().map(|name| (*name, row.reason)));
    let prefixes = all().filter_map(|(name, reason)| Some((name.strip_suffix('*')?, reason)));
    let mut table = TriggerTable {
        exact: all().filter(|(name, _)| !name.ends_with('*')).collect(),
        prefixes: prefixes.collect(),
    };
    table.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
    table
});

/// The reason that a function triggers.
fn triggered(name: &str) -> Option<Reason> {
    let by_prefix = || TRIGGERS.prefixes.iter().find(|(prefix, _)| name.starts_with(prefix));
    TRIGGERS.exact.get(name).copied().or_else(|| by_prefix().map(|(_, reason)| *reason))
}

/// Whether kernel code begins with this function.
pub(crate) fn begins_kernel(name: &str) -> bool {
    matches(name, &ENTRIES) || matches(name, &INTERRUPTS)
}

/// Classifies a stack.
pub fn classify(stack: &Stack) -> StackClass {
    let frames = &stack.frames;
    let Some(kernel) = kernel_part(frames) else {
        return StackClass {
            reason: Reason::User,
            work: None,
            entry: "-".into(),
            purpose: None,
            purpose_function: None,
            trigger: None,
            start: frames.len(),
            is_idle: false,
        };
    };
    // What an interrupt does is not the work of the code that it interrupted.
    let interrupt = interrupt_at(frames, kernel);
    let start = interrupt.map_or(kernel, |at| at + 1);
    let own = frames.get(start..).unwrap_or_default();
    let mut best: Option<(Reason, usize)> = None;
    for (at, frame) in own.iter().enumerate() {
        let Some(reason) = triggered_in(own, at, &frame.name) else {
            continue;
        };
        if best.is_none_or(|(known, _)| reason.entry().rank > known.entry().rank) {
            best = Some((reason, start + at));
        }
    }
    let has = |names: &[&str]| own.iter().any(|frame| matches(&frame.name, names));
    let rank = best.map_or(0, |(reason, _)| reason.entry().rank);
    if rank < Reason::MmapLock.entry().rank && has(&LOCK_SLOW_PATHS) && has(&MMAP_LOCKERS) {
        let at = own.iter().position(|frame| matches(&frame.name, &MMAP_LOCKERS)).unwrap_or(0);
        best = Some((Reason::MmapLock, start + at));
    }
    if interrupt.is_none() {
        best = by_thread(&stack.comm, best);
    }
    let is_idle = best.is_none() && interrupt.is_none() && has(&IDLE);
    let fallback = if interrupt.is_some() { Reason::Irq } else { Reason::OtherKernel };
    let reason = best.map_or(fallback, |(reason, _)| reason);
    let trigger = best.map(|(_, at)| at).filter(|at| *at < frames.len());
    let callers = trigger.and_then(|at| frames.get(start..at)).unwrap_or_default();
    let purpose = wants_memory(reason).then(|| Purpose::of_callers(callers)).flatten();
    StackClass {
        reason,
        work: own.iter().rev().find_map(|frame| KernelWork::of_function(&frame.name)),
        entry: if reason == Reason::Irq { "irq".into() } else { entry(own) },
        purpose: purpose.map(|(purpose, _)| purpose),
        purpose_function: purpose.map(|(_, frame)| Arc::clone(&frame.name)),
        trigger,
        start,
        is_idle,
    }
}

/// Whether a reason is started by an allocation.
const fn wants_memory(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NodeReclaim
            | Reason::MemcgMax
            | Reason::DirectReclaim
            | Reason::DirectCompact
            | Reason::Oom
            | Reason::ReclaimCutOff
    )
}

/// The reason of a function among the functions around it.
fn triggered_in(own: &[StackFrame], at: usize, name: &str) -> Option<Reason> {
    // Reclaim below a charge is reclaim at the limit, also where `try_to_free_mem_cgroup_pages` was inlined.
    if matches(name, &IN_CHARGE)
        && own
            .get(at + 1..)
            .unwrap_or_default()
            .iter()
            .any(|frame| is_reclaim_function(&frame.name))
    {
        return Some(Reason::MemcgMax);
    }
    triggered(name)
}

/// Threads of the kernel that do only one thing are known by their name, as their chain may be cut.
fn by_thread(comm: &str, best: Option<(Reason, usize)>) -> Option<(Reason, usize)> {
    let numbered = |name: &str| {
        comm.strip_prefix(name).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let of_thread = if numbered("kswapd") {
        Reason::Kswapd
    } else if numbered("kcompactd") {
        Reason::Kcompactd
    } else if comm == "khugepaged" {
        // Where it has to reclaim or compact for its huge pages, that is the trouble.
        match best {
            Some((Reason::DirectCompact, _)) => return best,
            Some((reason, _)) if reason.is_reclaim() => return best,
            _ => Reason::Khugepaged,
        }
    } else if comm == "ksmd" {
        Reason::Ksm
    } else {
        return best;
    };
    let at = best.map_or(usize::MAX, |(_, at)| at);
    Some((of_thread, at))
}

/// Where the kernel's part of a stack begins; `None` where there is none.
fn kernel_part(frames: &[StackFrame]) -> Option<usize> {
    if frames.iter().any(|frame| frame.place == FramePlace::Kernel) {
        return frames.iter().position(|frame| frame.place == FramePlace::Kernel);
    }
    let unmarked = |frame: &StackFrame| frame.place == FramePlace::Unmarked;
    let entry = frames.iter().position(|frame| unmarked(frame) && matches(&frame.name, &ENTRIES));
    let is_known = |frame: &StackFrame| {
        unmarked(frame)
            && (triggered(&frame.name).is_some()
                || KernelWork::of_function(&frame.name).is_some()
                || [&KERNEL_ONLY[..], &INTERRUPTS, &IDLE]
                    .iter()
                    .any(|names| matches(&frame.name, names)))
    };
    let first_unmarked = || frames.iter().position(unmarked);
    entry.or_else(|| frames.iter().any(is_known).then(first_unmarked).flatten())
}

/// The place of the innermost interrupt of which more than its entry is seen.
fn interrupt_at(frames: &[StackFrame], kernel: usize) -> Option<usize> {
    let own = frames.get(kernel..)?;
    let at = kernel + own.iter().rposition(|frame| matches(&frame.name, &INTERRUPTS))?;
    let inside = frames.get(at + 1..).filter(|inside| !inside.is_empty())?;
    let leaves = inside.iter().any(|frame| matches(&frame.name, &LEAVES_INTERRUPT));
    (!leaves).then_some(at)
}

/// How the kernel was entered.
fn entry(own: &[StackFrame]) -> Arc<str> {
    const SYSTEM_CALLS: [&str; 9] = [
        "__x64_sys_",
        "__ia32_sys_",
        "__arm64_sys_",
        "__s390x_sys_",
        "__se_sys_",
        "__do_sys_",
        "SyS_",
        "ksys_",
        "sys_",
    ];
    const FAULTS: [&str; 8] = [
        "exc_page_fault",
        "asm_exc_page_fault",
        "page_fault",
        "async_page_fault",
        "do_page_fault",
        "__do_page_fault",
        "do_user_addr_fault",
        "do_mem_abort",
    ];
    for frame in own {
        let name = &*frame.name;
        let call = SYSTEM_CALLS.iter().find_map(|prefix| name.strip_prefix(prefix));
        if let Some(call) = call.filter(|call| !call.is_empty()) {
            return call.into();
        }
        if FAULTS.contains(&name) {
            return "page-fault".into();
        }
        if name == "kthread" || name.starts_with("ret_from_fork") {
            return "kthread".into();
        }
        if matches(name, &INTERRUPTS) {
            return "irq".into();
        }
        if name.contains("exit_to_user_mode") {
            return "return-to-user".into();
        }
    }
    "-".into()
}
