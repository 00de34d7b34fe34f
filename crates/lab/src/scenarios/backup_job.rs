//! A backup in two steps, or in one: what is written only to be read again costs I/O and page cache.

use chart::ChartUnit;
use timeline::signals::{PGPGIN, PGPGOUT};
use units::Span;

use crate::claim::{Claim, MeasuredArms, plain, times};
use crate::guest::{Guest, mib};
use crate::host::machine::{Machine, VirtualDisk};
use crate::scenario::{Arm, MeasuredFigure, Scenario, ScenarioFigure};
use crate::setting::ScenarioSetting;

/// Beside programs that fill RAM.
const PRESSED: &[&str] = &[
    "available-exhaustion",
    "cache-starved-floor",
    "direct-reclaim-stall",
    "dirty-throttle",
    "exec-pages-evicted",
    "page-cache-thrash",
];
/// With RAM to spare the disk is all that can be slow.
const ALONE: &[&str] = &["dirty-throttle"];

const fn arm(
    name: &'static str,
    settings: &'static [(&'static str, f64)],
    finds: &'static [&'static str],
    may_find: &'static [&'static str],
) -> Arm {
    Arm { name, settings, finds, may_find }
}

const SHORT: &[&str] = &["available-exhaustion"];

pub(super) const SCENARIO: Scenario = Scenario {
    name: "backup-job",
    shows: "An archive that is written, read again and compressed costs three times the I/O of one \
            that is compressed at once.",
    article: "S0 example 2",
    time: Span::from_secs(50),
    machine: || Machine::with_mib(512).disk(VirtualDisk::ext4(640).slow(24)),
    settings: &[
        ScenarioSetting {
            name: "logs_mib",
            default: 96.0,
            range: (32.0, 200.0),
            about: "MiB of logs that are archived",
        },
        ScenarioSetting {
            name: "left_mib",
            default: 0.0,
            range: (0.0, 400.0),
            about: "MiB that other programs leave for the cache; 0: there are no others",
        },
        ScenarioSetting {
            name: "is_one_step",
            default: 0.0,
            range: (0.0, 1.0),
            about: "whether files are compressed while they are archived",
        },
    ],
    arms: &[
        arm("small-cache-two-steps", &[("left_mib", 40.0)], SHORT, PRESSED),
        // Nothing is read twice, so that little cache costs nothing: a shortage may show, and need not.
        arm("small-cache-one-step", &[("left_mib", 40.0), ("is_one_step", 1.0)], &[], PRESSED),
        arm("large-cache-two-steps", &[], &[], ALONE),
        arm("large-cache-one-step", &[("is_one_step", 1.0)], &[], ALONE),
    ],
    variants: &[&[("logs_mib", 80.0)], &[("logs_mib", 112.0)]],
    play,
    claims,
    figures: &[
        ScenarioFigure::Measured(MeasuredFigure {
            title: "Time of each pass of a neighbour over its files",
            help: "A neighbour reads its 32 MiB four times before the backup and once after it: \
                   what the backup drove out is read from the disk.",
            x: "s",
            unit: Some(ChartUnit::Millis),
            is_bars: true,
            curves: &["before", "after"],
        }),
        ScenarioFigure::Chart("disks"),
        ScenarioFigure::Chart("where"),
    ],
    ..Scenario::DEFAULT
};

fn play(guest: &mut Guest) -> Result<(), String> {
    guest.mount("/dev/vda", "/disk")?;
    std::fs::create_dir_all("/disk/logs").map_err(|error| error.to_string())?;
    std::fs::create_dir_all("/disk/neighbour").map_err(|error| error.to_string())?;
    guest.record();
    guest.phase("logs are written");
    let logs_mib = guest.setting("logs_mib")?;
    let size = format!("{:.0}M", logs_mib / 8.0);
    guest.run(&["write", "/disk/logs", &size, "--files", "8", "--content", "log"])?;
    guest.run(&["write", "/disk/neighbour", "8M", "--files", "4"])?;
    guest.remount("/dev/vda", "/disk")?;
    let left = guest.setting("left_mib")?;
    let mut others = Vec::new();
    if left > 0.0 {
        guest.phase(format!("other programs leave {left:.0} MiB"));
        let size = format!("{:.0}M", (guest.available_mib()? - left).max(32.0) / 4.0);
        for _ in 0..4 {
            others.push(guest.start(&["hog", &size, "--touch", "500ms"])?);
        }
        guest.sleep(4.0);
    }
    let begun = std::time::Instant::now();
    let before = neighbour(guest, "before", begun, 4)?;
    let (read, written) = (guest.host(PGPGIN)?, guest.host(PGPGOUT)?);
    let steps: &[[&str; 4]] = if guest.is_set("is_one_step")? {
        &[["archive", "/disk/logs", "/disk/logs.gz", "--gzip"]]
    } else {
        &[
            ["archive", "/disk/logs", "/disk/logs.tar", ""],
            ["archive", "/disk/logs.tar", "/disk/logs.gz", "--gzip"],
        ]
    };
    for step in steps {
        let words: Vec<&str> = step.iter().copied().filter(|word| !word.is_empty()).collect();
        guest.phase(words.join(" "));
        guest.run(&words)?;
        // What a step wrote reaches the disk, whether it is read again or not.
        guest.sync();
    }
    let io = mib(guest.host(PGPGIN)? - read) + mib(guest.host(PGPGOUT)? - written);
    // Beside the job, not in it: its own reads would count.
    let after = neighbour(guest, "after", begun, 1)?;
    let packed = std::fs::metadata("/disk/logs.gz").map_err(|error| error.to_string())?;
    #[allow(clippy::cast_precision_loss)] // MiB
    let packed = packed.len() as f64 / 1_048_576.0;
    guest.measured("io_mib", io);
    guest.measured("packed_of_logs", packed / logs_mib);
    guest.measured("neighbour_slower", after / before.max(1e-3));
    drop(others);
    Ok(())
}

/// A neighbour reads its files; gives the seconds of its fastest pass, or of its first if there is one only.
fn neighbour(
    guest: &mut Guest,
    curve: &str,
    begun: std::time::Instant,
    passes: u32,
) -> Result<f64, String> {
    let mut fastest = f64::INFINITY;
    let passes = passes.to_string();
    let reader = guest.start(&["read", "/disk/neighbour", "--passes", &passes])?;
    reader.each(|line| {
        let second = line.first().copied().unwrap_or_default();
        fastest = fastest.min(second);
        guest.point(curve, begun.elapsed().as_secs_f64(), second * 1e3);
        Ok(())
    })?;
    Ok(fastest)
}

fn claims(outcomes: &dyn MeasuredArms) -> Vec<Claim> {
    let io = |arm| outcomes.measured(arm, "io_mib");
    let ratio = |one, other| Some(io(one)? / io(other)?.max(1.0));
    // Logs that gzip packs to a tenth: 10 + 10 + 10 + 1 against 10 + 1.
    let model = 31.0 / 11.0;
    let small = ratio("small-cache-two-steps", "small-cache-one-step");
    let large = ratio("large-cache-two-steps", "large-cache-one-step");
    vec![
        Claim::of("I/O in two steps against one, small cache", small, times)
            .article("31 : 11 = 2.8 ×")
            .between(model * 0.85, model * 1.15),
        Claim::of("I/O in two steps against one, large cache", large, times)
            .article("21 : 11 = 1.9 ×")
            .between(21.0 / 11.0 * 0.85, 21.0 / 11.0 * 1.15),
        Claim::of(
            "a neighbour's first pass after the job, two steps (times its pass before)",
            outcomes.measured("large-cache-two-steps", "neighbour_slower"),
            plain,
        ),
    ]
}
