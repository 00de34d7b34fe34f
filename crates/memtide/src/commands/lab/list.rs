//! `memtide lab list`: the scenarios, or what one of them has.

use lab::{Scenario, scenarios};

use crate::cli::LabListArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn list(args: &LabListArgs, output: &Output) -> anyhow::Result<Exit> {
    if let Some(name) = &args.name {
        output.print(&one(scenarios::named(name)?))?;
        return Ok(Exit::Ok);
    }
    let mut text = format!(
        "{:<16}{:<9}{:<8}{:<14}shows\n",
        "scenario", "RAM", "time", "article"
    );
    for scenario in scenarios::ALL {
        let ram = (scenario.machine)().ram;
        let arms = u32::try_from(scenario.arms.len()).unwrap_or(1);
        let time = scenario.time.times(f64::from(arms));
        let (ram, time) = (ram.to_string(), time.to_string());
        text.push_str(&format!(
            "{:<16}{ram:<9}{time:<8}{:<14}{}\n",
            scenario.name, scenario.article, scenario.shows
        ));
    }
    output.print(&text)?;
    Ok(Exit::Ok)
}

/// A scenario with its arms, its settings, and its variants.
fn one(scenario: &Scenario) -> String {
    let mut text = format!("{}\n{}\n\narms\n", scenario.name, scenario.shows);
    let values = |settings: &[(&str, f64)]| {
        let all = settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        all.collect::<Vec<_>>().join(", ")
    };
    for arm in scenario.arms {
        let line = format!("  {:<24}{}", arm.name, values(arm.settings));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if !scenario.settings.is_empty() {
        text.push_str("\nsettings: --set NAME=VALUE\n");
    }
    for setting in scenario.settings {
        let (min, max) = setting.range;
        text.push_str(&format!(
            "  {:<24}{} ({min} to {max})  {}\n",
            setting.name, setting.default, setting.about
        ));
    }
    if !scenario.variants.is_empty() {
        text.push_str("\nvariants of lab corpus\n");
    }
    for variant in scenario.variants {
        text.push_str(&format!("  {}\n", values(variant)));
    }
    text
}
