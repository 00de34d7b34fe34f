//! Programs fill RAM one by one past its end, and end one by one: where free memory stops, and what is given back first.

use timeline::signals::{MEM_FREE, MEM_TOTAL, ZONE_HIGH, ZONE_LOW, ZONE_MIN, ZONE_PCP};
use units::Span;

use crate::guest::{Guest, mib, pages_mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::outcome::{ArmOutcomes, Claim, percent};
use crate::scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure, ScenarioSetting};

const FINDS: &[&str] = &["swap-thrash|available-exhaustion|swap-full"];
const MAY: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "exec-pages-evicted",
    "kswapd-saturated",
    "min-free-too-large",
    "page-cache-thrash",
    "swap-full",
    "swap-slow-device",
    "swap-thrash",
];

pub(super) const SCENARIO: Scenario = Scenario {
    name: "hogs",
    shows: "Free memory stops at the watermarks, not at zero; what does not fit goes to swap, and swap drains first.",
    article: "S0 exp. 1",
    time: Span::from_secs(70),
    machine: || Machine::with_mib(768).disk(VirtualDisk::empty(768).slow(60)),
    settings: &[
        ScenarioSetting {
            name: "hogs",
            default: 14.0,
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
            about: "vm.watermark_scale_factor: the gap between watermarks in hundredths of a percent of RAM",
        },
        ScenarioSetting {
            name: "min_free_kbytes",
            default: 0.0,
            range: (0.0, 200_000.0),
            about: "vm.min_free_kbytes; 0 as the kernel has it",
        },
    ],
    arms: &[
        Arm {
            name: "default",
            settings: &[],
            finds: FINDS,
            may_find: MAY,
        },
        Arm {
            name: "scale-factor-200",
            settings: &[("watermark_scale_factor", 200.0)],
            finds: FINDS,
            may_find: MAY,
        },
    ],
    variants: &[
        &[("hog_mib", 80.0), ("hogs", 12.0)],
        &[("hog_mib", 48.0), ("hogs", 19.0)],
    ],
    play,
    claims,
    figures: &[
        ScenarioFigure::Measured(MeasuredFigure {
            title: "Used, free and swap in MiB, program by program",
            help: "Programs start one by one, then end one by one. Free memory has a floor above zero; swap takes the rest, and drains before free memory grows.",
            x: "s",
            unit: None,
            is_bars: false,
            curves: &["free", "used", "swap used"],
        }),
        ScenarioFigure::Chart("free"),
        ScenarioFigure::Chart("where"),
        ScenarioFigure::Chart("swap"),
    ],
    ..Scenario::NOTHING
};

fn play(guest: &mut Guest) -> Result<(), String> {
    let min_free = guest.setting("min_free_kbytes")?;
    if min_free > 0.0 {
        guest.vm("min_free_kbytes", min_free)?;
    }
    guest.vm(
        "watermark_scale_factor",
        guest.setting("watermark_scale_factor")?,
    )?;
    guest.swap_on("/dev/vda")?;
    guest.sleep(2.0);
    let size = format!("{:.0}M", guest.setting("hog_mib")?);
    let count = guest.count("hogs")?;
    let begun = std::time::Instant::now();
    // Levels while swap grows: of these the floor is made.
    let mut floor = FreeFloor::default();
    let mut hogs = Vec::new();
    for number in 1..=count {
        guest.phase(format!("program {number} of {count} starts"));
        hogs.push(guest.start(&["hog", &size, "--touch", "2500ms"])?);
        for _ in 0..8 {
            guest.sleep(0.25);
            let level = level(guest, begun)?;
            if level.swap_mib > 8.0 {
                floor.free_mib.push(level.free_mib);
            }
        }
    }
    let watermarks = ZoneWatermarks::read(guest)?;
    let full = level(guest, begun)?;
    guest.measured("swap_mib", full.swap_mib);
    let mut at_drained = None;
    while let Some(hog) = hogs.pop() {
        guest.phase(format!("{} programs are left", hogs.len()));
        drop(hog);
        for _ in 0..6 {
            guest.sleep(0.5);
            let level = level(guest, begun)?;
            if level.swap_mib > full.swap_mib / 2.0 {
                at_drained = Some(level.free_mib);
            }
        }
    }
    let median = floor.median().ok_or("RAM was not filled: more hogs")?;
    let total = mib(guest.host(MEM_TOTAL)?);
    guest.measured("floor_mib", median);
    guest.measured("floor_of_min_free", median / watermarks.min_mib);
    guest.measured("floor_of_watermarks", median / watermarks.middle_mib());
    guest.measured(
        "free_while_swap_drains",
        at_drained.unwrap_or(total) / total,
    );
    Ok(())
}

/// How memory stands.
struct MemoryLevel {
    free_mib: f64,
    swap_mib: f64,
}

fn level(guest: &mut Guest, begun: std::time::Instant) -> Result<MemoryLevel, String> {
    let (free, total) = (mib(guest.host(MEM_FREE)?), mib(guest.host(MEM_TOTAL)?));
    let swap = guest.swap_used_mib()?;
    let at = begun.elapsed().as_secs_f64();
    guest.point("free", at, free);
    guest.point("used", at, total - free);
    guest.point("swap used", at, swap);
    Ok(MemoryLevel {
        free_mib: free,
        swap_mib: swap,
    })
}

#[derive(Default)]
struct FreeFloor {
    free_mib: Vec<f64>,
}

impl FreeFloor {
    fn median(mut self) -> Option<f64> {
        self.free_mib.sort_by(f64::total_cmp);
        self.free_mib.get(self.free_mib.len() / 2).copied()
    }
}

/// ZoneWatermarks of all zones together. kswapd is woken at low and rests at high: free memory moves between them.
struct ZoneWatermarks {
    min_mib: f64,
    low_mib: f64,
    high_mib: f64,
    /// Free pages on lists of CPUs, which `MemFree` does not count.
    pcp_mib: f64,
}

impl ZoneWatermarks {
    fn read(guest: &mut Guest) -> Result<Self, String> {
        Ok(Self {
            min_mib: pages_mib(guest.sum(ZONE_MIN)?),
            low_mib: pages_mib(guest.sum(ZONE_LOW)?),
            high_mib: pages_mib(guest.sum(ZONE_HIGH)?),
            pcp_mib: pages_mib(guest.sum(ZONE_PCP).unwrap_or_default()),
        })
    }

    fn middle_mib(&self) -> f64 {
        ((self.low_mib + self.high_mib) / 2.0 - self.pcp_mib).max(0.1)
    }
}

fn claims(outcomes: &ArmOutcomes) -> Vec<Claim> {
    let mut all = Vec::new();
    for arm in ["default", "scale-factor-200"] {
        let of = |name| outcomes.measured(arm, name);
        all.extend([
            Claim::of(
                &format!("free while swapping, of min_free_kbytes ({arm})"),
                of("floor_of_min_free"),
                percent,
            )
            .article("125–803 %")
            .between(0.8, 20.0),
            Claim::of(
                &format!("the same, of the middle of low and high watermark ({arm})"),
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
