//! `memtide lab list`: the scenarios, or what one of them has.

use lab::{Scenario, ScenarioSetting, scenarios};
use report::Screen;

use crate::cli::LabListArgs;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn list(args: &LabListArgs, output: &Output) -> Result<Exit, CommandError> {
    let screen = output.screen();
    if let Some(name) = &args.name {
        output.print(&one(scenarios::named(name)?, &screen))?;
        return Ok(Exit::Ok);
    }
    let columns = |name: &str, ram: &str, time: &str| format!("{name:<18}{ram:<9}{time:<8}");
    let mut rows = vec![(columns("scenario", "RAM", "time"), "shows".to_owned())];
    rows.extend(scenarios::ALL.iter().map(|scenario| {
        let ram = (scenario.machine)().ram.to_string();
        let arms = u32::try_from(scenario.arms.len()).unwrap_or(1);
        let time = scenario.time.times(f64::from(arms)).to_string();
        (columns(scenario.name, &ram, &time), scenario.shows.to_owned())
    }));
    output.print(&report::text::columns(&rows, &screen))?;
    Ok(Exit::Ok)
}

/// A scenario with the article that it repeats, its arms, its settings, and its variants.
fn one(scenario: &Scenario, screen: &Screen) -> String {
    let mut text = format!("{}\n", scenario.name);
    let shows = (String::new(), scenario.shows.to_owned());
    text.push_str(&report::text::columns(&[shows], screen));
    if !scenario.article.is_empty() {
        text.push_str(&format!("article: {} (docs/lab.md)\n", scenario.article));
    }
    text.push_str("\narms\n");
    let values = |settings: &[(&str, f64)]| {
        let all = settings.iter().map(|(name, value)| format!("{name}={value}"));
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
    let setting = |setting: &ScenarioSetting| {
        let (min, max) = setting.range;
        let bounds = format!("{} ({min} to {max})", setting.default);
        let columns = format!("  {:<24}{bounds:<20}", setting.name);
        (columns, setting.about.to_owned())
    };
    let settings: Vec<(String, String)> = scenario.settings.iter().map(setting).collect();
    text.push_str(&report::text::columns(&settings, screen));
    if !scenario.variants.is_empty() {
        text.push_str("\nvariants of lab corpus\n");
    }
    for variant in scenario.variants {
        text.push_str(&format!("  {}\n", values(variant)));
    }
    text
}
