//! A program with a large library and more data than fits: what swap is for.

use units::{Bytes, Span};

use crate::guest::Guest;
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, ArmOutcomes, Claim, Scenario, plain};

const MAY: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "exec-pages-evicted",
    "kswapd-saturated",
    "no-swap-risk",
    "oom-global",
    "page-cache-thrash",
    "swap-full",
    "swap-thrash",
    "swappiness-misfit",
    "shmem-growth",
    "zram-misuse",
];

pub(super) const SCENARIO: Scenario = Scenario {
    name: "swapdemo",
    shows: "A program's library is evicted to keep data that is needed less: without swap, or with vm.swappiness at 1.",
    article: "S3",
    time: Span::from_secs(45),
    machine: || Machine {
        ram: Bytes::from_mib(576),
        cpus: 2,
        nodes: 1,
        disks: vec![
            VirtualDisk {
                size: Bytes::from_mib(160),
                is_formatted: true,
                speed: Some(Bytes::from_mib(60)),
            },
            VirtualDisk {
                size: Bytes::from_mib(640),
                is_formatted: false,
                speed: Some(Bytes::from_mib(60)),
            },
        ],
    },
    arms: &[
        Arm {
            name: "swappiness-60",
            settings: &[("swappiness", "60")],
            finds: &[],
            may_find: MAY,
        },
        Arm {
            name: "swappiness-1",
            settings: &[("swappiness", "1")],
            finds: &["page-cache-thrash|exec-pages-evicted|swappiness-misfit"],
            may_find: MAY,
        },
        Arm {
            name: "swap-off",
            settings: &[],
            finds: &["page-cache-thrash|exec-pages-evicted|oom-global"],
            may_find: MAY,
        },
    ],
    play,
    claims,
};

/// How long an arm may work; the first one is done in less.
const LIMIT: &str = "25s";
const STEPS: u32 = 11;

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.mount("/dev/vda", "/disk")?;
    guest.phase("a library of 96 MiB is written");
    guest
        .start(&["write", "/disk", "96M", "--files", "1"])?
        .wait();
    guest.drop_caches()?;
    // The kernel raises it where huge pages are on, and then nothing balances on a few MiB.
    guest.write("/proc/sys/vm/min_free_kbytes", "2900")?;
    if let Some(swappiness) = guest.number("swappiness") {
        guest.swap_on("/dev/vdb")?;
        guest.write("/proc/sys/vm/swappiness", &format!("{swappiness:.0}"))?;
    }
    guest.sleep(2.0);
    guest.phase(format!(
        "a program moves through 448 MiB of data in {STEPS} steps and reads its library all the while"
    ));
    let mut done = 0.0;
    let is_well = guest
        .start(&[
            "map",
            "/disk/file0",
            "96M",
            "--data",
            "448M",
            "--iterations",
            &STEPS.to_string(),
            "--for",
            LIMIT,
        ])?
        .each(|line| done = line.first().copied().unwrap_or(done));
    guest.measured("steps", done);
    guest.measured("killed", f64::from(u8::from(!is_well)));
    Ok(())
}

fn claims(outcomes: &ArmOutcomes) -> Vec<Claim> {
    let steps = |arm| outcomes.measured(arm, "steps");
    let half = steps("swappiness-60").map(|steps| steps / 2.0);
    let line = |arm, what: &str, article: &str| Claim {
        what: what.to_owned(),
        article: article.to_owned(),
        ours: steps(arm).map_or_else(|| "–".to_owned(), plain),
        holds: steps(arm).zip(half).map(|(steps, half)| steps <= half),
    };
    vec![
        Claim::at_least(
            "steps with swappiness 60",
            "11 in 115 s",
            steps("swappiness-60"),
            2.0,
            plain,
        ),
        line(
            "swappiness-1",
            "steps with swappiness 1: at most half",
            "< 1 in 119 s",
        ),
        line(
            "swap-off",
            "steps without swap: at most half",
            "< 1, or OOM",
        ),
    ]
}
