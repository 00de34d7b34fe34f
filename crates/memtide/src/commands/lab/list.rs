//! `memtide lab list`: the scenarios.

use lab::scenarios;

use crate::exit::Exit;
use crate::output::Output;

pub(super) fn list(output: &Output) -> anyhow::Result<Exit> {
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
