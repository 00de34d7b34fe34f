//! Files that are cut anywhere, or of which a byte is another, are read, or are no profile; nothing panics.

use profile::{
    MIN_SHARE, ProfilePart, ProfileReport, firefox, flame_graph, folded, profile_screen,
    read_profile,
};

const SCRIPT: &str = "\
# nrcpus online : 2
db 12/13 [001]  4803.769856:   10101010 cpu-clock:
\tffffffff82203249 _raw_spin_unlock_irqrestore+0x19 ([kernel.kallsyms])
\tffffffff8140a54f try_to_free_pages+0x31f ([kernel.kallsyms])
\t          1af824 main+0x4 (/opt/x)

db 13 [001] 4804.0: sched:sched_switch: prev_comm=db prev_pid=13 prev_prio=120 prev_state=D ==> next_comm=a next_pid=1 next_prio=1
\tffffffff81 __schedule ([kernel.kallsyms])

";
const REPORT: &str = "\
    20.00%  db  [kernel.kallsyms]  [k] clear_page_erms
            |
            --- clear_page_erms
               |--60.00%-- vma_alloc_folio_noprof
               |          do_anonymous_page
                --40.00%-- page_cache_ra_unbounded
- 33.01% java [kernel.kallsyms] [k] _spin_lock_irq - 98.89% shrink_inactive_list + 17.54% tcp_sendmsg
";
const MAP: &str = "@us[sh, \n    __schedule+1560\n    do_swap_page+86\n]: 642\n@[\n    clear_page_erms+7\n, db]: 3\n";
const FOLDED: &str =
    "# {\"unit\": \"hits\", \"hz\": 20, \"seconds\": 4}\na b;c;d.isra.0 12\ne;f_[k] 3\n";

/// Everything that is done with a profile.
fn go_through(content: &[u8]) {
    let Ok(profile) = read_profile("cut", content) else {
        return;
    };
    let report = ProfileReport::of(&profile);
    let _ = profile_screen(&report, &report::Screen::of_width(40), MIN_SHARE);
    for part in [ProfilePart::Cpu, ProfilePart::Waits] {
        let _ = flame_graph(&profile, &report, part);
        let _ = firefox(&profile, part).unwrap();
        let _ = read_profile("again", folded(&profile, part).as_bytes());
    }
}

#[test]
fn any_cut_and_any_other_byte_is_survived() {
    for text in [SCRIPT, REPORT, MAP, FOLDED] {
        for end in 0..text.len() {
            go_through(text.get(..end).unwrap_or_default().as_bytes());
            let mut other = text.as_bytes().to_vec();
            for byte in [b'\n', b'9', 0xff] {
                other[end] = byte;
                go_through(&other);
            }
        }
    }
}
