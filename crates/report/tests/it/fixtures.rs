//! Reports built by hand, with figures as the labelled captures give them.

use diagnose::accounting::TermKind;
use report::model::{
    Accounting, Affected, Clear, Evidence, Finding, Fix, FixChange, Graph, Harm, Host, Level,
    MemoryNode, NeedKind, NodeMemory, NotEvaluated, Report, RuledOut, SCHEMA, Scope, SettingValue,
    Severity, SizeKind, Source, SourceKind, Stretch, Sureness, SwapSpace, Term, WHERE_SCHEMA,
    WhereReport,
};
use units::{Bytes, Ratio, SignedBytes, Span};

fn host(ram_mib: u64, swap_mib: u64) -> Host {
    Host {
        kernel: Some("6.1.0-56-cloud-amd64".into()),
        ram_bytes: Some(Bytes::from_mib(ram_mib)),
        swap_bytes: Some(Bytes::from_mib(swap_mib)),
        cpus: Some(2),
        page_size_bytes: Some(Bytes::new(4096)),
        hostname: None,
        container: None,
    }
}

fn capture(samples: usize) -> Source {
    Source {
        kind: SourceKind::Capture,
        name: Some("case.jsonl.gz".into()),
        from: None,
        to: None,
        samples,
        interval_s: (samples > 1).then_some(Span::from_secs(1)),
        watched_s: Span::from_secs_f64(samples.saturating_sub(1) as f64),
        unknown_fields: Vec::new(),
        problems: Vec::new(),
        inputs: Vec::new(),
        lines_skipped: 0,
        thinned_to_s: None,
        cut_at_s: None,
        clock_steps: Vec::new(),
        history: None,
    }
}

/// Once, from then to then.
fn lasted(finding: &mut Finding, from_s: f64, to_s: f64) {
    (finding.from_s, finding.to_s) = (Some(from_s), Some(to_s));
    finding.stretches = vec![stretch(from_s, to_s)];
}

pub(crate) fn stretch(from_s: f64, to_s: f64) -> Stretch {
    Stretch { from: None, to: None, from_s, to_s, recorded_s: Span::from_secs_f64(to_s - from_s) }
}

pub(crate) fn finding(id: &str, severity: Severity, title: &str) -> Finding {
    Finding {
        id: id.into(),
        severity,
        scope: Scope::host(),
        harm: Harm { waited: None, killed: 0 },
        title: title.into(),
        confidence: Ratio::new(0.96),
        more: String::new(),
        is_headline: false,
        is_over: false,
        confidence_word: Sureness::Confirmed,
        confidence_why: "rests on swap traffic and memory stalls; watched for 39 s only".into(),
        from: None,
        to: None,
        from_s: None,
        to_s: None,
        stretches: Vec::new(),
        share: None,
        evidence: Vec::new(),
        ruled_out: Vec::new(),
        cause: String::new(),
        fix: Vec::new(),
        verify: String::new(),
        affected: Vec::new(),
        references: Vec::new(),
        aliases: Vec::new(),
        caused_by: None,
        graph: None,
    }
}

pub(crate) fn evidence(text: &str, threshold: Option<&str>) -> Evidence {
    Evidence {
        signal: Some("vm.pswpin".into()),
        value: Some(10_000_000.0),
        unit: Some("bytes/s".into()),
        value_text: Some("9.5 MiB/s".into()),
        threshold: threshold.map(|_| 1_048_576.0),
        threshold_side: threshold.map(|text| {
            if text.starts_with("below") {
                report::model::ThresholdSide::Below
            } else {
                report::model::ThresholdSide::From
            }
        }),
        threshold_text: threshold.map(str::to_owned),
        at: None,
        at_s: None,
        text: text.into(),
    }
}

/// Terms in MiB.
fn accounting(at_s: f64, total_mib: u64, terms: &[(&'static str, u64)]) -> Accounting {
    let known: u64 = terms.iter().map(|(_, mib)| mib).sum();
    Accounting {
        at: None,
        at_s,
        total_bytes: Bytes::from_mib(total_mib),
        terms: terms
            .iter()
            .map(|(id, mib)| Term {
                kind: TermKind::from_id(id).unwrap(),
                bytes: Bytes::from_mib(*mib),
                label: id,
            })
            .collect(),
        unaccounted_bytes: SignedBytes::new((total_mib as i64 - known as i64) << 20),
        broken_down: true,
        missing: Vec::new(),
        available_bytes: None,
        swap: None,
        nodes: Vec::new(),
    }
}

fn report(host: Host, source: Source, verdict: Level, headline: &str) -> Report {
    Report {
        schema: SCHEMA,
        host,
        source,
        verdict,
        now: None,
        incidents: Vec::new(),
        bursts: Vec::new(),
        headline: headline.into(),
        remarks: Vec::new(),
        group: None,
        findings: Vec::new(),
        notes: Vec::new(),
        earlier: Vec::new(),
        changed: Vec::new(),
        clear: Vec::new(),
        not_evaluated: Vec::new(),
        accounting: None,
        profile: None,
        next: Vec::new(),
    }
}

fn clear(ids: &[(&str, &str)]) -> Vec<Clear> {
    ids.iter().map(|(id, because)| Clear { id: (*id).into(), because: (*because).into() }).collect()
}

fn lacking(ids: &[&str], missing: &str, needs: &str) -> Vec<NotEvaluated> {
    ids.iter()
        .map(|id| NotEvaluated {
            id: (*id).into(),
            kind: NeedKind::Readings,
            missing: vec![missing.into()],
            needs: needs.into(),
        })
        .collect()
}

/// A live host where all is well and two things only look bad.
pub(crate) fn healthy() -> Report {
    let mut source = capture(11);
    source.kind = SourceKind::Live;
    source.name = None;
    source.from = "2026-11-21T04:42:08Z".parse().ok();
    source.to = "2026-11-21T04:42:18.25Z".parse().ok();
    let mut report = report(
        host(24_106, 2048),
        source,
        Level::Ok,
        "Memory is enough, and nothing waits for it.",
    );
    report.host.hostname = Some("web3".into());
    let mut accounting = accounting(
        10.0,
        24_106,
        &[
            ("free", 2150),
            ("pcp", 83),
            ("anon", 1229),
            ("shmem", 90),
            ("file_cache", 19_900),
            ("buffers", 310),
            ("slab_reclaimable", 210),
            ("slab_unreclaimable", 90),
            ("page_tables", 12),
        ],
    );
    accounting.at = report.source.to;
    accounting.available_bytes = Some(Bytes::from_mib(22_430));
    accounting.swap =
        Some(SwapSpace { total_bytes: Bytes::from_mib(2048), used_bytes: Bytes::from_mib(340) });
    report.accounting = Some(accounting);
    report.notes = vec![
        finding(
            "cache-full-harmless",
            Severity::Info,
            "91 % is in use, but 19 GiB of that is page cache that is given back on demand; none \
             was missed in 10 s.",
        ),
        finding(
            "swap-cold-harmless",
            Severity::Info,
            "340 MiB lie in swap and nobody asks for them.",
        ),
        finding("monitoring-gap", Severity::Info, "2 of 11 samples came more than 1 s late."),
    ];
    report.clear = clear(&[
        ("swap-thrash", "nothing came back from swap"),
        ("dirty-throttle", "dirty pages stayed below 2 % of their limit"),
    ]);
    report.not_evaluated = [
        lacking(
            &["direct-reclaim-stall"],
            "psi.memory_some",
            "/proc/pressure/memory (kernel 4.20 or later; some need psi=1 at boot)",
        ),
        lacking(
            &["slab-leak", "shmem-growth", "page-tables-large", "thp-bloat", "fork-cow-spike"],
            "",
            "samples over 6 h or more",
        ),
    ]
    .concat();
    report
}

/// A capture of a host that thrashes, with two consequences.
pub(crate) fn thrashing() -> Report {
    let title = "This host needs more memory than it has: pages are swapped out and wanted back at \
                 once. Tasks stood still for memory 61 % of 0:11–0:34.";
    let mut report = report(host(470, 512), capture(40), Level::Critical, title);
    let mut root = finding("swap-thrash", Severity::Critical, title);
    root.is_headline = true;
    lasted(&mut root, 11.0, 34.0);
    root.share = Some(Ratio::new(0.59));
    root.graph = Some(Graph {
        label: "swapped in".into(),
        peak: "36 MiB/s".into(),
        from_s: 0.0,
        to_s: 39.0,
        values: [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 27, 4, 1, 12, 30, 142, 52, 112, 17, 27, 10, 10,
            21, 188, 336, 204, 207, 217, 165, 192, 197, 379, 240, 1, 0, 0, 0,
        ]
        .map(|v| Some(f64::from(v)))
        .to_vec(),
    });
    root.evidence = vec![
        evidence("9.9 MiB/s swapped in, 27 MiB/s out", Some("≥ 1 MiB/s")),
        evidence(
            "2,540 pages/s of anonymous memory came back after eviction",
            Some("≥ 200 pages/s"),
        ),
        evidence("memory stalls: some 68 %, full 61 %", Some("≥ 10 %")),
        Evidence { at_s: Some(18.0), ..evidence("available fell to 8 MiB", None) },
    ];
    root.cause = "The processes touch more anonymous memory than RAM holds, so the kernel swaps \
                  out pages that are needed again."
        .into();
    root.ruled_out = vec![
        RuledOut { id: "swap-cold-harmless", because: "what went out came back".into() },
        RuledOut { id: "page-cache-thrash", because: "no file page was read twice".into() },
    ];
    root.fix = vec![
        Fix {
            what: "Stop what grew last, or cap the group it belongs to.".into(),
            now: "systemctl set-property --runtime app.service MemoryHigh=350M".into(),
            is_read_only: false,
            persistent: "systemctl set-property app.service MemoryHigh=350M".into(),
            undo: "systemctl set-property --runtime app.service MemoryHigh=infinity".into(),
            changes: vec![FixChange::Limit {
                cgroup: "/system.slice/app.service".into(),
                unit: Some("app.service".into()),
                file: "memory.high".into(),
                from: Some("max".into()),
                to_bytes: Bytes::from_mib(350),
            }],
            proven_on: Vec::new(),
        },
        Fix {
            what: "Fewer workers, smaller pools, or more RAM. More swap would not help, and \
                   swapoff would end in OOM kills."
                .into(),
            now: String::new(),
            is_read_only: false,
            persistent: String::new(),
            undo: String::new(),
            changes: Vec::new(),
            proven_on: Vec::new(),
        },
    ];
    root.verify =
        "memtide check --for 1m under the same load: swapped in below 0.1 MiB/s, stalls below 1 %"
            .into();
    root.affected = vec![
        Affected {
            kind: "process",
            name: "hog".into(),
            what: "12 processes: 376 MiB in RAM, 264 MiB in swap".into(),
        },
        Affected {
            kind: "cgroup",
            name: "/system.slice/batch.service".into(),
            what: "no limit".into(),
        },
    ];
    root.references = vec!["kernel: mm/workingset.c".into()];
    let mut stall = finding(
        "direct-reclaim-stall",
        Severity::Warning,
        "Tasks had to reclaim 11,900 pages/s themselves before they got memory.",
    );
    stall.caused_by = Some("swap-thrash".into());
    let mut floor = finding(
        "cache-starved-floor",
        Severity::Warning,
        "Free memory lay on its floor (7 MiB) and page cache was down to 1 MiB.",
    );
    floor.caused_by = Some("swap-thrash".into());
    let mut kill = finding("no-swap-risk", Severity::Info, "Swap would have been full 40 s later.");
    kill.confidence = Ratio::new(0.5);
    kill.confidence_word = Sureness::Possible;
    kill.confidence_why = "rests on a trend; a recording over an hour would settle it".into();
    lasted(&mut kill, 11.0, 34.0);
    report.findings = vec![root, stall, floor, kill];
    let mut accounting = accounting(
        18.0,
        470,
        &[
            ("free", 7),
            ("anon", 375),
            ("swapcache", 52),
            ("file_cache", 1),
            ("slab_unreclaimable", 19),
            ("page_tables", 6),
            ("kernel_stack", 4),
        ],
    );
    accounting.swap =
        Some(SwapSpace { total_bytes: Bytes::from_mib(512), used_bytes: Bytes::from_mib(264) });
    report.accounting = Some(accounting);
    report.clear = clear(&[
        ("dirty-throttle", "writers never waited"),
        ("oom-global", "the kernel killed nothing"),
    ]);
    report.not_evaluated = lacking(
        &["cgroup-high-throttle", "oom-cgroup"],
        "cgroup.high_events",
        "/sys/fs/cgroup/*/memory.events, which this source does not have",
    );
    report
}

/// Two NUMA nodes, one of them full.
pub(crate) fn node_reclaim() -> Report {
    let title = "Node 0 throws away its page cache and reads it again although node 1 has 437 MiB \
                 free: vm.zone_reclaim_mode is on.";
    let mut report = report(host(997, 0), capture(22), Level::Critical, title);
    let mut root = finding("node-reclaim-on", Severity::Critical, title);
    root.is_headline = true;
    root.evidence = vec![
        evidence("vm.zone_reclaim_mode = 1; node distance 21", None),
        evidence(
            "63,000 pages/s scanned by allocating tasks and 0 allocation stalls: node reclaim, not \
             a shortage",
            Some("≥ 1,000 pages/s"),
        ),
    ];
    root.fix = vec![Fix {
        what: "Switch it off.".into(),
        now: "sysctl -w vm.zone_reclaim_mode=0".into(),
        is_read_only: false,
        persistent: "echo vm.zone_reclaim_mode = 0 > /etc/sysctl.d/99-zz-memtide.conf".into(),
        undo: String::new(),
        changes: vec![FixChange::Setting {
            from: None,
            to: SettingValue {
                setting: "vm.zone_reclaim_mode".into(),
                file: "/proc/sys/vm/zone_reclaim_mode".into(),
                value: "0".into(),
            },
            is_now: true,
            is_kept: true,
        }],
        proven_on: vec!["6.1", "7.2"],
    }];
    report.findings = vec![root];
    let mut accounting = accounting(
        9.0,
        997,
        &[("free", 461), ("anon", 4), ("file_cache", 498), ("slab_unreclaimable", 30)],
    );
    let node = |node: &str, total: u64, free: u64| NodeMemory {
        node: node.into(),
        total_bytes: Bytes::from_mib(total),
        free_bytes: Bytes::from_mib(free),
    };
    accounting.nodes = vec![node("0", 497, 24), node("1", 500, 437)];
    report.accounting = Some(accounting);
    report
}

/// One look at figures without a kernel, as pasted from a terminal.
pub(crate) fn single_look() -> Report {
    let mut report = report(
        Host { ram_bytes: Some(Bytes::from_mib(80_429)), ..Host::default() },
        capture(1),
        Level::Unknown,
        "One look cannot say whether this memory is enough, but it does not look like room for \
         more.",
    );
    report.remarks = vec![
        "Free memory (579 MiB) is not room: about 0.5 GiB is the floor at which the kernel holds \
         it on a host of this size."
            .into(),
    ];
    report.source.problems = vec!["line 3: expected a number after `Swap:`, found `-`".into()];
    let mut accounting =
        accounting(0.0, 80_429, &[("free", 579), ("shmem", 1028), ("file_cache", 19_915)]);
    accounting.available_bytes = Some(Bytes::from_mib(9662));
    accounting.broken_down = false;
    accounting.missing = vec!["mem.anon".into()];
    report.accounting = Some(accounting);
    let rates = [
        "swap-thrash",
        "page-cache-thrash",
        "exec-pages-evicted",
        "direct-reclaim-stall",
        "kswapd-saturated",
        "dirty-throttle",
        "oom-global",
    ];
    report.not_evaluated = [
        lacking(&rates, "vm.pswpin", "two looks some seconds apart: memtide check on that host"),
        lacking(&["node-reclaim-on"], "vm.zone_reclaim_mode", "root, to read /proc/zoneinfo"),
        lacking(&["no-swap-risk"], "mem.anon", "figures that are less rounded: /proc/meminfo"),
    ]
    .concat();
    for (id, kind) in [("node-reclaim-on", NeedKind::Root), ("no-swap-risk", NeedKind::Precision)] {
        let rule = report.not_evaluated.iter_mut().find(|rule| rule.id == id);
        rule.unwrap().kind = kind;
    }
    report
}

/// All that somebody who names processes, groups and files could try.
pub(crate) fn hostile() -> Report {
    let mut report = thrashing();
    report.host.hostname = Some("web\u{1b}]0;owned\u{7}3".into());
    report.host.kernel = Some("6.1\u{202e}emag\n".into());
    let root = &mut report.findings[0];
    root.affected = vec![
        Affected {
            kind: "process",
            name: "\u{1b}[2J\u{1b}[H\u{1b}[32mOK".into(),
            what: "1 GiB in RAM".into(),
        },
        Affected { kind: "process", name: "two\nlines".into(), what: String::new() },
        Affected {
            kind: "cgroup",
            name: format!("/kubepods.slice/{}", "very-long-pod-name-".repeat(20)),
            what: "at its limit".into(),
        },
        Affected {
            kind: "process",
            name: "a\u{200b}b\u{2066}c\u{feff}".into(),
            what: "hidden marks".into(),
        },
        Affected {
            kind: "process",
            name: "データベース".into(),
            what: "3 processes: 96 MiB in RAM".into(),
        },
    ];
    root.fix[0].now = "kill \u{9b}1A$(reboot)\nrm\u{8}\u{8}ls".into();
    report.source.problems = vec!["line 7: found `\u{1b}c` instead of a number".into()];
    report
}

pub(crate) fn branch(label: &str, mib: u64, note: &str, children: Vec<MemoryNode>) -> MemoryNode {
    MemoryNode {
        label: label.into(),
        bytes: Bytes::from_mib(mib),
        kind: SizeKind::Measured,
        share: Some(Ratio::new(mib as f64 / 24_106.0)),
        note: note.into(),
        children,
    }
}

/// Where the memory of the healthy host is.
pub(crate) fn whereabouts() -> WhereReport {
    let report = healthy();
    let mounts = (0..10).map(|i| MemoryNode {
        kind: SizeKind::Estimate,
        ..branch(&format!("/run/user/{i}"), 9, "tmpfs of 2.4 GiB", vec![])
    });
    WhereReport {
        schema: WHERE_SCHEMA,
        host: report.host,
        source: report.source,
        accounting: report.accounting,
        tree: Some(branch(
            "MemTotal",
            24_106,
            "",
            vec![
                branch(
                    "free",
                    2233,
                    "the kernel keeps about 132 MiB free; 83 MiB in per-CPU lists",
                    vec![],
                ),
                branch("page cache", 20_210, "14 MiB dirty or under writeback", vec![]),
                branch(
                    "anonymous",
                    1229,
                    "by PSS",
                    vec![
                        branch("rust-analyzer", 610, "", vec![]),
                        branch("docker.service", 208, "14 processes", vec![]),
                        branch("84 others", 411, "", vec![]),
                    ],
                ),
                branch("shared memory", 90, "", mounts.collect()),
                branch(
                    "kernel",
                    312,
                    "",
                    vec![
                        branch(
                            "slab",
                            300,
                            "210 MiB reclaimable",
                            vec![
                                branch("dentry", 101, "", vec![]),
                                branch("ext4_inode_cache", 80, "", vec![]),
                                MemoryNode {
                                    kind: SizeKind::Remainder,
                                    ..branch("smaller caches", 119, "", vec![])
                                },
                            ],
                        ),
                        branch("page tables", 12, "", vec![]),
                    ],
                ),
                branch(
                    "unaccounted",
                    32,
                    "usual owners: drivers (NIC rings, GPU, DMA buffers), a hypervisor's balloon, \
                     ZFS's ARC",
                    vec![],
                ),
            ],
        )),
        explanations: vec![
            "Mapped (310 MiB) is a part of Cached (20 GiB), not an addition to it.".into(),
        ],
    }
}
