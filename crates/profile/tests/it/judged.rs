//! Whole profiles: what is hot, and what the answer says first. Texts are in the forms in which people paste them.

use profile::{HotBy, Profile, ProfileReport, Reason, read_profile};

fn read(text: &str) -> Profile {
    read_profile("test", text.as_bytes()).unwrap()
}

fn hot(text: &str) -> Vec<Reason> {
    ProfileReport::of(&read(text)).hot.iter().map(|row| row.reason).collect()
}

/// A list of perf's terminal browser that lost its line breaks: node reclaim on a host of two nodes, Linux 2.6.32.
const NODE_RECLAIM: &str = "- 30.00% java [kernel.kallsyms] [k] _spin_lock_irq - _spin_lock_irq - 98.00% \
    shrink_inactive_list shrink_mem_cgroup_zone shrink_zone zone_reclaim get_page_from_freelist - \
    __alloc_pages_nodemask - 90.00% alloc_pages_current - 80.00% __page_cache_alloc - 99.00% \
    grab_cache_page_write_begin ext4_da_write_begin generic_file_buffered_write vfs_write sys_write \
    system_call_fastpath + 0x3fda40e6fd + 17.00% tcp_sendmsg + 1.50% __get_free_pages + 9.00% \
    alloc_pages_vma + 12.00% java [kernel.kallsyms] [k] _spin_lock + 5.00% java libjvm.so [.] SpinPause \
    + 1.50% init [kernel.kallsyms] [k] intel_idle ...\n";

#[test]
fn node_reclaim_is_named_with_what_memory_was_wanted_for() {
    let report = ProfileReport::of(&read(NODE_RECLAIM));
    assert_eq!(report.hot.len(), 1, "{:?}", report.hot);
    let row = &report.hot[0];
    assert_eq!((row.reason, &row.hot_by[..]), (Reason::NodeReclaim, &[HotBy::Share][..]));
    // 30 % × 98 % of the samples that are not idle.
    assert!((row.share.unwrap() - 0.294 / 0.985).abs() < 1e-3);
    let purposes: Vec<String> = row
        .purposes
        .iter()
        .take(2)
        .map(|one| format!("{:?} {} {:.0}", one.purpose, one.entry, one.of_reason * 100.0))
        .collect();
    assert_eq!(purposes, ["PageCache write 71", "SocketBuffers - 15"]);
    // As perf prints it: shares of the branch above.
    let callers = &row.callers[0].callers[0].callers;
    let of_branch: Vec<f64> = callers.iter().map(|one| (one.of_branch * 100.0).round()).collect();
    assert_eq!(of_branch[..2], [80.0, 17.0]);
    assert!(
        report.headline.starts_with("Node reclaim in java takes 30 % of the busy CPU: "),
        "{}",
        report.headline
    );
    assert!(report.headline.contains("page cache for write()"), "{}", report.headline);
}

#[test]
fn page_cache_copying_of_a_healthy_host_is_not_hot() {
    let text = "# {\"unit\": \"samples\", \"hz\": 99, \"seconds\": 10, \"cpus\": 2}\n\
                dd;entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;filemap_read;copy_page_to_iter 900\n\
                kswapd0;ret_from_fork;kthread;kswapd;balance_pgdat 5\nsh;[user] 95\n";
    let report = ProfileReport::of(&read(text));
    assert_eq!(report.hot, []);
    assert!(
        report.headline.starts_with("Memory is not what makes this host slow"),
        "{}",
        report.headline
    );
    assert!(report.headline.contains("reading files (90 %)"), "{}", report.headline);
}

#[test]
fn a_share_needs_thirty_samples() {
    let with = |reclaim: u32, user: u32| {
        format!(
            "# {{\"unit\": \"samples\"}}\na;do_syscall_64;try_to_free_pages;shrink_node {reclaim}\na;[user] {user}\n"
        )
    };
    assert_eq!(hot(&with(30, 70)), [Reason::DirectReclaim]);
    assert_eq!(hot(&with(29, 71)), []);
    assert_eq!(hot(&with(49, 951)), []);
    assert_eq!(hot(&with(50, 950)), [Reason::DirectReclaim]);
}

#[test]
fn waits_for_files_are_trouble_only_where_they_were_in_memory_before() {
    let with = |delta: &str| {
        format!(
            "# {{\"unit\": \"us\", \"seconds\": 10, \"vmstat_delta\": {delta}}}\n\
             db;do_syscall_64;ksys_read;vfs_read;filemap_read;folio_wait_bit_common;io_schedule 5000000\n"
        )
    };
    assert_eq!(hot(&with("{}")), []);
    assert_eq!(hot(&with("{\"workingset_refault_file\": 100, \"pgpgin\": 400000}")), []);
    assert_eq!(
        hot(&with("{\"workingset_refault_file\": 50000, \"pgpgin\": 400000}")),
        [Reason::FileRead]
    );
    assert_eq!(hot(&with("{\"workingset_refault_file\": 50000}")), [Reason::FileRead]);
}

#[test]
fn the_journal_and_fsync_wait_and_are_not_memory() {
    let text = "# {\"unit\": \"us\", \"seconds\": 10}\n\
                jbd2/vda-8;kthread;kjournald2;jbd2_journal_commit_transaction;io_schedule 9000000\n\
                sync;do_syscall_64;ksys_sync;iterate_supers;wb_wait_for_completion;io_schedule 5000000\n\
                w;do_syscall_64;generic_perform_write;balance_dirty_pages;io_schedule_timeout 2000000\n";
    assert_eq!(hot(text), [Reason::DirtyThrottle]);
}

#[test]
fn kswapd_counts_half_and_swapping_comes_before_its_reclaim() {
    let text = "# {\"unit\": \"samples\"}\n\
                hog;asm_exc_page_fault;do_swap_page;swap_read_folio 280\n\
                hog;asm_exc_page_fault;try_to_free_pages;shrink_folio_list;pageout;swap_writeout 200\n\
                hog;asm_exc_page_fault;try_to_free_pages;shrink_lruvec 260\n\
                kswapd0;kthread;kswapd;shrink_lruvec 600\n";
    assert_eq!(hot(text), [Reason::SwapIn, Reason::DirectReclaim, Reason::Kswapd]);
}

#[test]
fn a_backtrace_is_named_and_no_profile() {
    let text = "spl_kmem_cache;kthread;taskq_thread;kv_alloc.isra.8;__get_free_pages;try_to_free_pages;shrink_zone 1\n";
    let report = ProfileReport::of(&read(text));
    assert_eq!(report.hot, []);
    assert!(report.headline.starts_with("1 backtrace: direct reclaim"), "{}", report.headline);
    assert_eq!(report.reasons[0].reason, Reason::DirectReclaim);
}

#[test]
fn parts_of_one_recording_are_one_answer() {
    let mut profile = read(
        "# {\"unit\": \"samples\", \"hz\": 100, \"seconds\": 10, \"cpus\": 1}\nhog;asm_exc_page_fault;do_swap_page 100\n",
    );
    profile.join(read(
        "# {\"unit\": \"us\", \"seconds\": 10}\nhog;asm_exc_page_fault;do_swap_page;__folio_lock_or_retry;io_schedule 30000000\n",
    ));
    let report = ProfileReport::of(&profile);
    let row = &report.hot[0];
    assert_eq!(row.hot_by, [HotBy::Share, HotBy::StalledTasks]);
    assert!((row.stalled_tasks.unwrap() - 3.0).abs() < 1e-9);
    assert!((row.cpus.unwrap() - 0.1).abs() < 1e-9);
}

#[test]
fn a_difference_counts_cpus_and_only_what_is_more_than_chance() {
    let with = |reclaim: u32, read: u32| {
        format!(
            "# {{\"unit\": \"samples\", \"hz\": 100, \"seconds\": 10, \"cpus\": 2}}\n\
             a;do_syscall_64;node_reclaim;shrink_node {reclaim}\na;do_syscall_64;filemap_read {read}\na;[user] 100\n"
        )
    };
    let base = ProfileReport::of(&read(&with(1, 900)));
    let mut same = ProfileReport::of(&read(&with(3, 880)));
    same.compare_with(&base);
    assert_eq!(same.difference.unwrap().reasons, []);
    let mut other = ProfileReport::of(&read(&with(150, 700)));
    other.compare_with(&base);
    let reasons = &other.difference.as_ref().unwrap().reasons;
    let node = reasons.iter().find(|one| one.reason == Reason::NodeReclaim).unwrap();
    assert!(
        (node.base_cpus.unwrap() - 0.001).abs() < 1e-9 && (node.cpus.unwrap() - 0.15).abs() < 1e-9
    );
    assert!(other.headline.starts_with("Against the base: node reclaim"), "{}", other.headline);
}

#[test]
fn episodes_of_a_shared_tracepoint_go_to_the_reason_that_stacks_show() {
    let events = "\
tail 7 [000] 10.000000: vmscan:mm_vmscan_memcg_reclaim_begin: order=0
tail 7 [000] 10.900000: vmscan:mm_vmscan_memcg_reclaim_end: nr_reclaimed=32
tail 7 [000] 11.000000: cpu-clock:
\tffffffff81 SLEEPS ([kernel.kallsyms])
\tffffffff82 do_syscall_64 ([kernel.kallsyms])

";
    for (function, reason) in [
        ("__mem_cgroup_handle_over_high", Reason::MemcgHigh),
        ("try_to_free_mem_cgroup_pages", Reason::MemcgMax),
        ("schedule", Reason::MemcgMax),
    ] {
        let report = ProfileReport::of(&read(&events.replace("SLEEPS", function)));
        let hot: Vec<Reason> = report.hot.iter().map(|row| row.reason).collect();
        assert_eq!(hot, [reason], "{function}");
        assert_eq!(report.hot[0].episodes.as_ref().unwrap().count, 1);
    }
}

#[test]
fn it_is_not_said_that_all_is_well_where_samples_are_few_or_the_reason_is_cut_off() {
    let few = "# {\"unit\": \"samples\"}\na;do_syscall_64;try_to_free_pages 10\na;[user] 90\n";
    let report = ProfileReport::of(&read(few));
    assert_eq!(report.hot, []);
    assert!(
        report.headline.starts_with("100 samples are too few to judge: direct reclaim"),
        "{}",
        report.headline
    );
    let top = "  35.20%  [kernel]  [k] isolate_migratepages_block\n   5.00%  mysqld  [.] main\n";
    let report = ProfileReport::of(&read(top));
    assert!(report.headline.starts_with("Moving of pages takes 35 %"), "{}", report.headline);
}
