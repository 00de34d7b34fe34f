//! Programs fill RAM one by one past its end, and end one by one: where free memory stops, and what is given back first.

use timeline::signals::{
    MEM_FREE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL, ZONE_HIGH, ZONE_MIN, ZONE_PROTECTION,
};
use units::Span;

use crate::claim::{Claim, MeasuredArms, percent, times};
use crate::guest::{Guest, mib, pages_mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::reading::{host, sum};
use crate::scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

const FINDS: &[&str] = &["swap-thrash"];
const MAY: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "kswapd-saturated",
    // With a setting of min_free_kbytes.
    "min-free-too-large",
    "swap-slow-device",
];

pub(super) const SCENARIO: Scenario = Scenario {
    name: "hogs",
    shows: "Free memory stops at the watermarks, not at zero; what does not fit goes to swap, and \
            swap drains first.",
    article: "S0 exp. 1",
    time: Span::from_secs(70),
    machine: || Machine::with_mib(768).disk(VirtualDisk::empty(768).slow(100)),
    settings: &[
        ScenarioSetting {
            name: "hogs",
            default: 12.0,
            range: (4.0, 40.0),
            about: "programs, started one after the other",
        },
        ScenarioSetting {
            name: "hog_mib",
            default: 64.0,
            range: (16.0, 512.0),
            about: "MiB of a program",
        },
        ScenarioSetting {
            name: "watermark_scale_factor",
            default: 10.0,
            range: (10.0, 1000.0),
            about: "vm.watermark_scale_factor: the gap between watermarks in hundredths of a \
                    percent of RAM",
        },
        ScenarioSetting {
            name: "min_free_kbytes",
            default: 0.0,
            range: (0.0, 200_000.0),
            about: "vm.min_free_kbytes; 0 as the kernel has it",
        },
    ],
    arms: &[
        Arm { name: "default", settings: &[], finds: FINDS, may_find: MAY },
        Arm {
            name: "scale-factor-200",
            settings: &[("watermark_scale_factor", 200.0)],
            finds: FINDS,
            may_find: MAY,
        },
    ],
    variants: &[&[("hog_mib", 80.0), ("hogs", 12.0)], &[("hog_mib", 48.0), ("hogs", 19.0)]],
    advised: &[("default", &[("hogs", 8.0)]), ("scale-factor-200", &[("hogs", 8.0)])],
    play,
    claims,
    figures: &[
        ScenarioFigure::Measured(MeasuredFigure {
            title: "Used, free and swap in MiB, program by program",
            help: "Programs start one by one, then end one by one. Free memory has a floor above \
                   zero; swap takes the rest, and drains before free memory grows.",
            x: "s",
            unit: None,
            is_bars: false,
            curves: &["free", "used", "swap used", "min watermark", "high watermark"],
        }),
        ScenarioFigure::Chart("free"),
        ScenarioFigure::Chart("where"),
        ScenarioFigure::Chart("swap"),
    ],
    ..Scenario::DEFAULT
};

/// Every page of a program is touched in this many seconds.
const TOUCH_S: u32 = 6;

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.write("/sys/kernel/mm/transparent_hugepage/enabled", "never")?;
    let min_free = guest.setting("min_free_kbytes")?;
    if min_free > 0.0 {
        guest.vm("min_free_kbytes", min_free)?;
    }
    guest.vm("watermark_scale_factor", guest.setting("watermark_scale_factor")?)?;
    // A boost after fragmentation raises watermarks for a while, in one arm more than in the other.
    guest.vm("watermark_boost_factor", 0.0)?;
    guest.swap_on("/dev/vda")?;
    guest.record();
    guest.sleep(2.0);
    // Nothing has raised them yet: their sum is vm.min_free_kbytes.
    let min_free = pages_mib(sum(&guest.sample(), ZONE_MIN)?);
    let size = format!("{:.0}M", guest.setting("hog_mib")?);
    let count = guest.count("hogs")?;
    let touch = format!("{TOUCH_S}s");
    let begun = std::time::Instant::now();
    // Levels while swap is used: of these the floor is made.
    let mut floor = Vec::new();
    let mut hogs = Vec::new();
    for number in 1..=count {
        guest.phase(format!("program {number} of {count} starts"));
        hogs.push(guest.start(&["hog", &size, "--fill", "1500ms", "--touch", &touch])?);
        for _ in 0..8 {
            guest.sleep(0.25);
            let level = level(guest, begun)?;
            if level.swap_mib > 8.0 {
                floor.push(level);
            }
        }
    }
    let full = level(guest, begun)?;
    guest.measured("swap_mib", full.swap_mib);
    // Free memory while half of the swap is still used: low, as what was swapped out takes what is freed.
    let mut while_draining = Vec::new();
    while let Some(hog) = hogs.pop() {
        guest.phase(format!("{} programs are left", hogs.len()));
        drop(hog);
        let mut level = level(guest, begun)?;
        // What is swapped out comes in again when it is touched and has room.
        for _ in 0..TOUCH_S {
            let before = level.swap_mib;
            if before < 8.0 {
                break;
            }
            guest.sleep(1.0);
            level = self::level(guest, begun)?;
            if before - level.swap_mib < 1.0 && level.free_mib < 2.0 * level.watermarks_mib.1 {
                break;
            }
        }
        if level.swap_mib > full.swap_mib / 4.0 {
            while_draining.push(level.free_mib);
        }
    }
    let total = mib(guest.host(MEM_TOTAL)?);
    let median = |ratio: &dyn Fn(&MemoryLevel) -> f64| {
        let ratios: Vec<f64> = floor.iter().map(ratio).collect();
        stats::median(&ratios)
    };
    let of_min_free = median(&|level| level.free_mib / min_free);
    let of_watermarks = median(&MemoryLevel::of_watermarks);
    let most = while_draining.into_iter().reduce(f64::max);
    let (Some(of_min_free), Some(of_watermarks), Some(most)) = (of_min_free, of_watermarks, most)
    else {
        guest.phase("RAM was not filled, or swap drained before it was measured: more programs");
        return Ok(());
    };
    guest.measured("floor_of_min_free", of_min_free);
    guest.measured("floor_of_watermarks", of_watermarks);
    guest.measured("free_while_swap_drains", most / total);
    Ok(())
}

/// How memory stands.
struct MemoryLevel {
    free_mib: f64,
    swap_mib: f64,
    /// Below the first an allocation reclaims itself, at the second kswapd rests: the min and the high watermark of all
    /// zones, raised for a while by a boost, with what a low zone keeps for allocations that need it
    /// (`vm.lowmem_reserve_ratio`).
    watermarks_mib: (f64, f64),
}

impl MemoryLevel {
    /// Free memory, of the nearest end of what the watermarks allow; 1 between them.
    fn of_watermarks(&self) -> f64 {
        let (min, high) = self.watermarks_mib;
        self.free_mib / self.free_mib.clamp(min, high)
    }
}

fn level(guest: &mut Guest, begun: std::time::Instant) -> Result<MemoryLevel, String> {
    let now = guest.sample();
    let (free, total) = (mib(host(&now, MEM_FREE)?), mib(host(&now, MEM_TOTAL)?));
    let swap = mib(host(&now, SWAP_TOTAL)? - host(&now, SWAP_FREE)?);
    let reserve = sum(&now, ZONE_PROTECTION)?;
    let min = pages_mib(sum(&now, ZONE_MIN)? + reserve);
    let high = pages_mib(sum(&now, ZONE_HIGH)? + reserve);
    let at = begun.elapsed().as_secs_f64();
    for (curve, value) in [
        ("free", free),
        ("used", total - free),
        ("swap used", swap),
        ("min watermark", min),
        ("high watermark", high),
    ] {
        guest.point(curve, at, value);
    }
    Ok(MemoryLevel { free_mib: free, swap_mib: swap, watermarks_mib: (min, high) })
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let floor = |arm| outcomes.measured(arm, "floor_of_min_free");
    let wider = floor("scale-factor-200").zip(floor("default"));
    let mut all = vec![Claim::of(
        "free while swapping, with wide gaps between watermarks against narrow ones",
        wider.map(|(wide, narrow)| wide / narrow),
        times,
    )];
    for arm in ["default", "scale-factor-200"] {
        let of = |name| outcomes.measured(arm, name);
        all.extend([
            Claim::of(
                &format!("free while swapping, of min_free_kbytes ({arm})"),
                of("floor_of_min_free"),
                percent,
            )
            .article("125–803 %"),
            Claim::of(
                &format!("the same, of min to high watermark ({arm})"),
                of("floor_of_watermarks"),
                percent,
            )
            .article("–")
            .between(0.8, 1.2),
            Claim::of(
                &format!("free while swap drains, of RAM ({arm})"),
                of("free_while_swap_drains"),
                percent,
            )
            .article("swap first")
            .at_most(0.25),
        ]);
    }
    all
}
