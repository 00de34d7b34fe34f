//! Each reason with a stack that it must name, and one that only looks like it.

use profile::{FramePlace, KernelWork, Reason, Stack, StackTable, classify};

/// A stack as folded text.
fn stack(folded: &str) -> Stack {
    let mut table = StackTable::default();
    let (comm, frames) = folded.split_once(';').unwrap();
    let place = |name| if name == "[user]" { FramePlace::User } else { FramePlace::Unmarked };
    table.add(comm, frames.split(';').map(|name| (name, place(name))), 1.0);
    table.iter().next().unwrap().0.clone()
}

fn reason(folded: &str) -> Reason {
    classify(&stack(folded)).reason
}

/// How a system call reads a file, up to the page that it needs.
const READ: &str = "entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;filemap_read;\
                    page_cache_ra_unbounded;folio_alloc;__alloc_pages";
/// How a fault gets to its page.
const FAULT: &str =
    "asm_exc_page_fault;exc_page_fault;do_user_addr_fault;handle_mm_fault;__handle_mm_fault";
const KTHREAD: &str = "ret_from_fork;kthread";

/// A reason, a stack that it must name, a look-alike, and what that one is.
fn cases() -> Vec<(Reason, String, String, Reason)> {
    let in_read = |rest: &str| format!("db;{READ};{rest}");
    let in_fault = |rest: &str| format!("db;{FAULT};{rest}");
    let in_thread = |comm: &str, rest: &str| format!("{comm};{KTHREAD};{rest}");
    let in_call = |call: &str, rest: &str| {
        format!("db;entry_SYSCALL_64_after_hwframe;do_syscall_64;__x64_sys_{call};{rest}")
    };
    vec![
        // The chain may be cut: the thread's name is enough. A task that wakes kswapd is none.
        (
            Reason::Kswapd,
            "kswapd0;shrink_lruvec".into(),
            in_read("__alloc_pages_slowpath;wake_all_kswapds;wakeup_kswapd"),
            Reason::FileRead,
        ),
        // Seed 001's own trap: a function of memory cgroups below every reclaim.
        (
            Reason::NodeReclaim,
            "java;system_call_fastpath;sys_write;generic_file_buffered_write;__page_cache_alloc;\
             get_page_from_freelist;zone_reclaim;shrink_zone;shrink_mem_cgroup_zone;shrink_inactive_list"
                .into(),
            "java;system_call_fastpath;sys_write;generic_file_buffered_write;__page_cache_alloc;\
             get_page_from_freelist;zone_watermark_ok"
                .into(),
            Reason::FileWrite,
        ),
        // Reclaim below a charge, also where what is between was inlined. A charge alone is the price of counting.
        (
            Reason::MemcgMax,
            in_fault("__mem_cgroup_charge;try_charge_memcg;shrink_node;shrink_lruvec"),
            in_fault("__mem_cgroup_charge;try_charge_memcg;page_counter_try_charge"),
            Reason::Charge,
        ),
        (
            Reason::MemcgHigh,
            "db;entry_SYSCALL_64_after_hwframe;do_syscall_64;syscall_exit_to_user_mode;\
             exit_to_user_mode_prepare;mem_cgroup_handle_over_high;schedule_timeout_killable"
                .into(),
            "db;entry_SYSCALL_64_after_hwframe;do_syscall_64;syscall_exit_to_user_mode;\
             exit_to_user_mode_prepare;schedule"
                .into(),
            Reason::OtherKernel,
        ),
        (
            Reason::DirectReclaim,
            in_read("__alloc_pages_slowpath.constprop.0;try_to_free_pages;shrink_node;shrink_slab"),
            in_read("get_page_from_freelist;clear_page_rep"),
            Reason::FileRead,
        ),
        (
            Reason::DirectCompact,
            in_fault("do_huge_pmd_anonymous_page;__alloc_pages_direct_compact;compact_zone"),
            in_fault("do_huge_pmd_anonymous_page;clear_huge_page"),
            Reason::ThpFault,
        ),
        (
            Reason::Kcompactd,
            in_thread("kcompactd0", "kcompactd;proactive_compact_node;compact_zone"),
            in_thread("kworker/0:1", "worker_thread;process_one_work"),
            Reason::OtherKernel,
        ),
        (
            Reason::CompactSysctl,
            in_call("write", "proc_sys_call_handler;sysctl_compaction_handler;compact_zone"),
            in_call("write", "proc_sys_call_handler;proc_dointvec"),
            Reason::OtherKernel,
        ),
        // How a fault waits for its page. A lock of a page that is in the cache is no swap-in.
        (
            Reason::SwapIn,
            in_fault("do_swap_page;__folio_lock_or_retry;folio_wait_bit_common;io_schedule"),
            in_fault("do_fault;filemap_fault;__folio_lock_killable;folio_wait_bit_common"),
            Reason::FileFault,
        ),
        // sync() waits in a function of writeback, and is not throttled.
        (
            Reason::DirtyThrottle,
            in_call("write", "generic_perform_write;balance_dirty_pages_ratelimited_flags;balance_dirty_pages"),
            in_call("sync", "ksys_sync;iterate_supers;sync_inodes_sb;wb_wait_for_completion"),
            Reason::Fsync,
        ),
        (
            Reason::Oom,
            in_fault("__alloc_pages_slowpath;out_of_memory;oom_kill_process"),
            in_call("write", "oom_score_adj_write"),
            Reason::OtherKernel,
        ),
        (
            Reason::DropCaches,
            in_call("write", "drop_caches_sysctl_handler;drop_slab;shrink_slab"),
            in_call("write", "proc_sys_call_handler"),
            Reason::OtherKernel,
        ),
        (
            Reason::ReclaimCutOff,
            "java;__isolate_lru_page".into(),
            "java;isolate_things".into(),
            Reason::User,
        ),
        // The same lock function, of an address space and of an inode.
        (
            Reason::MmapLock,
            "db;asm_exc_page_fault;exc_page_fault;do_user_addr_fault;lock_mm_and_find_vma;down_read_killable;\
             rwsem_down_read_slowpath"
                .into(),
            in_call("write", "ext4_map_blocks;down_write;rwsem_down_write_slowpath"),
            Reason::OtherKernel,
        ),
        (
            Reason::Proactive,
            in_call("write", "memory_reclaim;try_to_free_mem_cgroup_pages;shrink_node"),
            in_call("read", "memory_stat_show"),
            Reason::Charge,
        ),
        (
            Reason::Contig,
            in_call("ioctl", "cma_alloc;alloc_contig_range_noprof;migrate_pages"),
            in_call("ioctl", "migrate_pages"),
            Reason::Migration,
        ),
        (
            Reason::Khugepaged,
            in_thread("khugepaged", "khugepaged;collapse_huge_page;clear_huge_page"),
            in_thread("khugepaged", "khugepaged;try_to_free_pages;shrink_node"),
            Reason::DirectReclaim,
        ),
        (
            Reason::HugetlbPool,
            in_call("write", "hugetlb_sysctl_handler_common;set_max_huge_pages"),
            in_fault("do_huge_pmd_anonymous_page"),
            Reason::ThpFault,
        ),
        (
            Reason::ThpFault,
            in_fault("do_huge_pmd_anonymous_page;clear_huge_page;clear_page_erms"),
            in_fault("vma_alloc_folio_noprof;clear_page_erms"),
            Reason::AnonFault,
        ),
        (
            Reason::NumaBalancing,
            "db;exit_to_user_mode_prepare;task_work_run;task_numa_work;change_prot_numa".into(),
            "db;exit_to_user_mode_prepare;task_work_run;____fput".into(),
            Reason::OtherKernel,
        ),
        (
            Reason::Ksm,
            in_thread("ksmd", "ksm_scan_thread;memcmp"),
            in_thread("kworker/1:2", "worker_thread;memcmp"),
            Reason::OtherKernel,
        ),
        (
            Reason::Balloon,
            in_thread("kworker/1:1", "worker_thread;process_one_work;page_reporting_process"),
            in_thread("kworker/1:1", "worker_thread;process_one_work;virtio_work"),
            Reason::OtherKernel,
        ),
        (
            Reason::Charge,
            in_call("read", "seq_read;memory_stat_show;cgroup_rstat_flush"),
            in_call("read", "seq_read;meminfo_proc_show"),
            Reason::OtherKernel,
        ),
        (Reason::Cow, in_fault("wp_page_copy;copy_mc_enhanced_fast_string"), in_fault("do_fault"), Reason::PageFault),
        (
            Reason::Fork,
            in_call("clone", "kernel_clone;copy_process;dup_mm;dup_mmap;copy_page_range"),
            in_call("clone", "kernel_clone;wake_up_new_task"),
            Reason::OtherKernel,
        ),
        // 6.1 inlines `do_anonymous_page`.
        (
            Reason::AnonFault,
            in_fault("vma_alloc_folio;__folio_alloc;get_page_from_freelist;clear_page_rep"),
            in_read("get_page_from_freelist;clear_page_rep"),
            Reason::FileRead,
        ),
        (
            Reason::Unmap,
            in_call("munmap", "__vm_munmap;unmap_region;unmap_vmas;zap_pte_range"),
            in_call("mmap", "do_mmap;mmap_region"),
            Reason::OtherKernel,
        ),
        (
            Reason::Migration,
            in_call("move_pages", "migrate_pages;move_to_new_folio"),
            in_call("exit", "moved"),
            Reason::OtherKernel,
        ),
        (Reason::FileRead, in_read("get_page_from_freelist"), in_call("read", "pipe_read"), Reason::OtherKernel),
        (
            Reason::FileFault,
            in_fault("do_fault;__do_fault;filemap_fault;page_cache_async_ra"),
            in_fault("do_fault"),
            Reason::PageFault,
        ),
        (
            Reason::FileWrite,
            in_call("write", "ext4_buffered_write_iter;generic_perform_write"),
            in_call("write", "pipe_write"),
            Reason::OtherKernel,
        ),
        (Reason::PageFault, format!("db;{FAULT}"), "db;asm_exc_divide_error".into(), Reason::OtherKernel),
        (
            Reason::PageAlloc,
            in_call("ioctl", "alloc_pages_current;get_page_from_freelist"),
            in_call("ioctl", "kfree"),
            Reason::OtherKernel,
        ),
        (
            Reason::Writeback,
            in_thread("kworker/u4:1", "worker_thread;wb_workfn;wb_writeback;do_writepages"),
            in_thread("kworker/u4:1", "worker_thread;do_writepages"),
            Reason::OtherKernel,
        ),
        (
            Reason::Journal,
            in_thread("jbd2/vda-8", "kjournald2;jbd2_journal_commit_transaction;bit_wait_io"),
            in_call("fsync", "vfs_fsync_range;ext4_sync_file;jbd2_log_wait_commit"),
            Reason::Fsync,
        ),
        (
            Reason::Fsync,
            in_call("fsync", "do_fsync;vfs_fsync_range"),
            in_call("read", "fsync_super_name"),
            Reason::OtherKernel,
        ),
        // What an interrupt does is not the work of the reclaim that it interrupted; leaving one is.
        (
            Reason::Irq,
            "kswapd0;ret_from_fork;kthread;kswapd;shrink_lruvec;asm_sysvec_apic_timer_interrupt;\
             __irq_exit_rcu;handle_softirqs;rcu_core"
                .into(),
            format!("db;{READ};node_reclaim;shrink_node;asm_sysvec_reschedule_ipi;irqentry_exit;preempt_schedule_irq"),
            Reason::NodeReclaim,
        ),
        (Reason::OtherKernel, "java;_spin_lock".into(), "java;SpinPause".into(), Reason::User),
        (Reason::User, "hog;[user]".into(), "hog;do_syscall_64;vfs_read".into(), Reason::OtherKernel),
    ]
}

#[test]
fn each_reason_names_its_stack_and_not_the_look_alike() {
    let mut wrong = Vec::new();
    for (expected, own, look_alike, other) in cases() {
        for (folded, expected) in [(own, expected), (look_alike, other)] {
            let found = reason(&folded);
            if found != expected {
                wrong.push(format!("{expected:?} is taken for {found:?}: {folded}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_reason_has_a_case() {
    let tested: Vec<Reason> = cases().into_iter().map(|(reason, ..)| reason).collect();
    let missing: Vec<Reason> = Reason::all().filter(|reason| !tested.contains(reason)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_program_cannot_name_its_functions_after_the_kernels() {
    let mut table = StackTable::default();
    let frames = [("main", FramePlace::User), ("node_reclaim", FramePlace::User)];
    table.add("evil", frames, 1.0);
    let marked = [
        ("node_reclaim", FramePlace::User),
        ("do_syscall_64", FramePlace::Kernel),
        ("vfs_read", FramePlace::Kernel),
    ];
    table.add("evil2", marked, 1.0);
    let reasons: Vec<Reason> =
        table.sorted().into_iter().map(|(stack, _)| classify(stack).reason).collect();
    assert_eq!(reasons, [Reason::User, Reason::OtherKernel]);
    // Where nothing is marked, what stands before the entry into the kernel is the program.
    assert_eq!(
        reason("evil;try_to_free_pages;entry_SYSCALL_64_after_hwframe;do_syscall_64;vfs_read"),
        Reason::OtherKernel
    );
}

#[test]
fn the_work_is_the_deepest_mechanism_whoever_started_it() {
    for (folded, work) in [
        (
            "kswapd0;kthread;kswapd;shrink_node;shrink_slab.part.49;super_cache_count;list_lru_count_one",
            Some(KernelWork::SlabShrink),
        ),
        (
            "kswapd0;kthread;kswapd;shrink_folio_list;pageout;swap_writepage;zram_submit_bio",
            Some(KernelWork::SwapIo),
        ),
        (
            "kswapd0;kthread;kswapd;shrink_folio_list;try_to_unmap_flush;smp_call_function_many_cond",
            Some(KernelWork::Tlb),
        ),
        ("kswapd0;kthread;kswapd;prepare_to_wait", None),
    ] {
        assert_eq!(classify(&stack(folded)).work, work, "{folded}");
    }
}

#[test]
fn idle_cpus_are_no_work() {
    for (folded, is_idle) in [
        ("swapper;secondary_startup_64;cpu_startup_entry;do_idle;default_idle", true),
        ("init;intel_idle", true),
        (
            "swapper;cpu_startup_entry;do_idle;asm_sysvec_apic_timer_interrupt;irq_exit_rcu;handle_softirqs",
            false,
        ),
        ("db;do_syscall_64;vfs_read", false),
    ] {
        assert_eq!(classify(&stack(folded)).is_idle, is_idle, "{folded}");
    }
}
