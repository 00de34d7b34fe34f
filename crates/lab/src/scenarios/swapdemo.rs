//! A program with a large library and more data than fits: what swap is for.

use timeline::signals::{OOM_KILLS, REFAULT_ANON, REFAULT_FILE};
use units::{Bytes, Span};

use crate::claim::{Claim, MeasuredArms, plain, times};
use crate::guest::Guest;
use crate::host::kernel::ModuleNeed;
use crate::host::machine::{Machine, VirtualDisk};
use crate::model::ClaimState;
use crate::scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

/// The data is shared memory, which nothing can drop.
const DATA: &[&str] = &["shmem-growth"];
/// The library is evicted to keep the data.
const LIBRARY: &[&str] = &["shmem-growth", "page-cache-thrash"];
/// A setting keeps the kernel from swapping, and the library is evicted.
const LIBRARY_BY_SWAPPINESS: &[&str] = &["shmem-growth", "page-cache-thrash", "swappiness-misfit"];
/// Memory is short in every arm.
const SHORT: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "exec-pages-evicted",
    "kswapd-saturated",
    "oom-global",
];
/// As with swap; how much of the data stays shared memory differs.
const SHORT_ON_ZRAM: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "exec-pages-evicted",
    "kswapd-saturated",
    "oom-global",
    "page-cache-thrash",
    "shmem-growth",
    "swap-thrash",
];
/// With swap, data moves out and in, and the library suffers until cold data is out.
const SHORT_WITH_SWAP: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "exec-pages-evicted",
    "kswapd-saturated",
    "oom-global",
    "page-cache-thrash",
    "swap-slow-device",
    "swap-thrash",
];

/// What holds the data that does not fit.
mod swap {
    pub(super) const OFF: f64 = 0.0;
    pub(super) const DISK: f64 = 1.0;
    pub(super) const ZRAM: f64 = 2.0;
}

const fn arm(
    name: &'static str,
    settings: &'static [(&'static str, f64)],
    finds: &'static [&'static str],
    may_find: &'static [&'static str],
) -> Arm {
    Arm { name, settings, finds, may_find }
}

pub(super) const SCENARIO: Scenario = Scenario {
    name: "swapdemo",
    shows: "A program's library is evicted to keep data that is needed less: without swap, or with \
            vm.swappiness at 1.",
    article: "S3",
    time: Span::from_secs(45),
    machine: || {
        Machine::with_mib(576)
            .disk(VirtualDisk::ext4(160).slow(60))
            .disk(VirtualDisk::empty(640).slow(60))
    },
    // Before 6.12 zram finds its compressor by name; without a module loader nobody else loads it.
    modules: &[
        ModuleNeed::if_any("lzo"),
        ModuleNeed::if_any("lzo_rle"),
        ModuleNeed::always("zram"),
    ],
    mglru: Some(false),
    settings: &[
        ScenarioSetting {
            name: "swap",
            default: swap::DISK,
            range: (swap::OFF, swap::ZRAM),
            about: "0: off, 1: on a disk, 2: on zram",
        },
        ScenarioSetting {
            name: "swappiness",
            default: 60.0,
            range: (0.0, 200.0),
            about: "vm.swappiness",
        },
        ScenarioSetting {
            name: "random",
            default: 0.0,
            range: (0.0, 1.0),
            about: "whether the data does not compress",
        },
        ScenarioSetting {
            name: "data_share",
            default: 0.93,
            range: (0.5, 1.1),
            about: "data, of what is available before",
        },
        ScenarioSetting {
            name: "seconds",
            default: 40.0,
            range: (5.0, 600.0),
            about: "how long the program may work",
        },
    ],
    arms: &[
        arm("swappiness-60", &[("swappiness", 60.0)], DATA, SHORT_WITH_SWAP),
        arm("swappiness-1", &[("swappiness", 1.0)], LIBRARY_BY_SWAPPINESS, SHORT_WITH_SWAP),
        arm("swappiness-0", &[("swappiness", 0.0)], LIBRARY_BY_SWAPPINESS, SHORT),
        arm("swap-off", &[("swap", swap::OFF)], LIBRARY, SHORT),
        arm("zram-zeros", &[("swap", swap::ZRAM)], DATA, SHORT_WITH_SWAP),
        arm(
            "zram-random",
            &[("swap", swap::ZRAM), ("random", 1.0)],
            // Data that goes to zram at once is no longer shared memory.
            &["zram-misuse"],
            SHORT_ON_ZRAM,
        ),
    ],
    variants: &[&[("data_share", 0.96)], &[("data_share", 0.95)]],
    advised: &[
        ("swappiness-60", &[("data_share", 0.5)]),
        ("swap-off", &[("data_share", 0.5)]),
        ("zram-zeros", &[("data_share", 0.5)]),
        ("zram-random", &[("swap", swap::DISK)]),
    ],
    hot: &[
        ("swappiness-60", "swap-in|direct-reclaim|kswapd"),
        ("zram-random", "swap-in|direct-reclaim|kswapd"),
    ],
    play,
    claims,
    figures: &[
        ScenarioFigure::Measured(MeasuredFigure {
            title: "Steps done",
            help: "Each step reads the whole library. Where data can be swapped out the program \
                   goes on; elsewhere it reads its library from the disk all the time.",
            x: "s",
            unit: None,
            is_bars: false,
            curves: &["steps"],
        }),
        ScenarioFigure::Chart("where"),
        ScenarioFigure::Chart("refaults"),
        ScenarioFigure::Chart("pressure"),
    ],
    ..Scenario::DEFAULT
};

/// Steps of the program.
const STEPS: u32 = 11;

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.mount("/dev/vda", "/disk")?;
    guest.phase("a library of 96 MiB is written");
    guest.run(&["write", "/disk", "96M", "--files", "1"])?;
    guest.remount("/dev/vda", "/disk")?;
    // The kernel raises it where huge pages are on, and then nothing balances on a few MiB.
    guest.vm("min_free_kbytes", 2900.0)?;
    let kind = guest.setting("swap")?;
    if kind == swap::DISK {
        guest.swap_on("/dev/vdb")?;
    } else if kind == swap::ZRAM {
        guest.swap_on_zram(Bytes::from_mib(512))?;
    }
    guest.vm("swappiness", guest.setting("swappiness")?)?;
    guest.record();
    guest.sleep(2.0);
    // Nearly all that is left for it: with the library it does not fit.
    let data = guest.available_mib()? * guest.setting("data_share")?;
    guest.phase(format!(
        "a program moves through {data:.0} MiB of data in {STEPS} steps and reads its library all \
         the while"
    ));
    let (steps, limit) = (STEPS.to_string(), format!("{:.0}s", guest.setting("seconds")?));
    let data = format!("{data:.0}M");
    let content = if guest.is_set("random")? { "random" } else { "zero" };
    let part = [
        "map",
        "/disk/memtide-lab-0",
        "96M",
        "--data",
        &data,
        "--iterations",
        &steps,
        "--for",
        &limit,
        "--content",
        content,
    ];
    let (kills, anon, file) =
        (guest.host(OOM_KILLS)?, guest.host(REFAULT_ANON)?, guest.host(REFAULT_FILE)?);
    let (mut done, mut seconds) = (0.0, 0.0);
    let is_well = guest.start(&part)?.each(|line| {
        done = line.first().copied().unwrap_or(done);
        seconds = line.get(1).copied().unwrap_or(seconds);
        guest.point("steps", seconds, done);
        Ok(())
    })?;
    guest.measured("steps", done);
    guest.measured("steps_per_minute", done / f64::max(seconds, 1.0) * 60.0);
    guest.measured("is_killed", f64::from(u8::from(!is_well)));
    let (kills, anon, file) = (
        guest.host(OOM_KILLS)? - kills,
        guest.host(REFAULT_ANON)? - anon,
        guest.host(REFAULT_FILE)? - file,
    );
    guest.measured("oom_kills", kills);
    guest.measured("refaults_of_data", anon);
    guest.measured("refaults_of_library", file);
    Ok(())
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let steps = |arm: &str| outcomes.measured(arm, "steps");
    let share = |arm: &str| Some(steps(arm)? / steps("swappiness-60")?.max(0.1));
    let speed = |arm: &str| {
        let of = |arm: &str| outcomes.measured(arm, "steps_per_minute");
        Some(of(arm)? / of("swappiness-60")?.max(0.1))
    };
    let at_most_half = |arm: &str, what: &str, article: &str| {
        // An OOM kill of the program ends it: the article's result, too.
        let is_killed = outcomes.measured(arm, "is_killed") == Some(1.0);
        let judged = Claim::of(what, share(arm), times).at_most(0.5);
        let ours = match (steps(arm), is_killed) {
            (Some(steps), true) => format!("{}, killed", plain(steps)),
            (Some(steps), false) => plain(steps),
            (None, _) => "–".to_owned(),
        };
        Claim {
            ours,
            state: match judged.state {
                ClaimState::Fails if is_killed => ClaimState::Holds,
                state => state,
            },
            ..judged.article(article)
        }
    };
    vec![
        Claim::of("steps with swappiness 60", steps("swappiness-60"), plain)
            .article("11 in 115 s")
            // A loaded host emulates slowly: it must get once through the library.
            .at_least(1.0),
        at_most_half(
            "swappiness-1",
            "steps with swappiness 1: at most half, or killed",
            "< 1 in 119 s",
        ),
        at_most_half(
            "swappiness-0",
            "steps with swappiness 0: at most half, or killed",
            "OOM kill",
        ),
        at_most_half("swap-off", "steps without swap: at most half, or killed", "< 1, or OOM"),
        Claim::of("speed with zram and zeros, against swappiness 60", speed("zram-zeros"), times)
            // Under emulation compression is slow and the disk is not: the article's order need not show.
            .article("1.9 ×"),
        Claim::of(
            "speed with zram and noise, against zeros",
            outcomes.ratio("steps_per_minute", "zram-random", "zram-zeros"),
            times,
        )
        .article("0.5 ×")
        .at_most(0.7),
    ]
}
