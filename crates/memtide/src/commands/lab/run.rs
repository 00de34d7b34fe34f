//! `memtide lab run`: plays a scenario and compares with the article.

use anyhow::bail;
use lab::{ArmOutcomes, Claim, GuestMessage, LabError, RunOptions, RunStep, Scenario, scenarios};

use crate::cli::LabRunArgs;
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Output;

pub(super) fn run(args: &LabRunArgs, output: &Output) -> anyhow::Result<Exit> {
    let Some(scenario) = scenarios::by_name(&args.name) else {
        let names: Vec<&str> = scenarios::ALL
            .iter()
            .map(|scenario| scenario.name)
            .collect();
        bail!(
            "there is no scenario `{}`; there are {}",
            args.name,
            names.join(", ")
        );
    };
    if let Some(arm) = &args.variant
        && scenario.arms.iter().all(|known| known.name != arm)
    {
        let names: Vec<&str> = scenario.arms.iter().map(|arm| arm.name).collect();
        bail!(
            "{} has no arm `{arm}`; it has {}",
            scenario.name,
            names.join(", ")
        );
    }
    let options = RunOptions {
        kernel: args.kernel.clone(),
        ram: args.ram,
        variant: args.variant.clone(),
        settings: args.settings.iter().cloned().collect(),
        timeout: args.timeout,
        output: args.output.clone(),
        ..RunOptions::default()
    };
    let is_interrupted = interrupt::listen();
    let outcomes = lab::run(scenario, &options, &mut |step| {
        show(&step, output);
        if is_interrupted() {
            Err(LabError::Interrupted)
        } else {
            Ok(())
        }
    })?;
    let claims = (scenario.claims)(&outcomes);
    let (text, holds) = table(scenario, &outcomes, &claims);
    output.print(&text)?;
    Ok(if holds { Exit::Ok } else { Exit::Critical })
}

fn show(step: &RunStep<'_>, output: &Output) {
    match step {
        RunStep::Booting { arm, kernel } => output.note(&format!("{arm}: Linux {kernel} boots")),
        RunStep::Message { at_s, message } => match message {
            GuestMessage::Phase { text, .. } => output.note(&format!("{at_s:6.1} s  {text}")),
            GuestMessage::Ready { boot_s } => output.note(&format!(
                "{at_s:6.1} s  ready, {boot_s:.1} s after the kernel began"
            )),
            _ => {}
        },
        RunStep::Waiting | RunStep::Done { .. } => {}
    }
}

/// What the article says, what came of it, and what `check` found; and whether all of it holds.
fn table(scenario: &Scenario, outcomes: &ArmOutcomes, claims: &[Claim]) -> (String, bool) {
    let mut holds = claims.iter().all(|claim| claim.holds != Some(false));
    let mut text = format!("{}: {}\n\n", scenario.name, scenario.shows);
    if !claims.is_empty() {
        text.push_str(&format!(
            "{:<52}{:>16}{:>12}  holds\n",
            "", "article", "ours"
        ));
    }
    for claim in claims {
        let holds = match claim.holds {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "–",
        };
        text.push_str(&format!(
            "{:<52}{:>16}{:>12}  {holds}\n",
            claim.what, claim.article, claim.ours
        ));
    }
    for (name, outcome) in &outcomes.arms {
        let arm = scenario.arms.iter().find(|arm| arm.name == *name);
        let found: Vec<&str> = outcome
            .report
            .findings
            .iter()
            .map(|finding| finding.id.as_str())
            .collect();
        let missed = arm.map_or_else(Vec::new, |arm| arm.missed(&outcome.report));
        let wrong = arm.map_or_else(Vec::new, |arm| arm.wrong(&outcome.report));
        let found = if found.is_empty() {
            "nothing".to_owned()
        } else {
            found.join(", ")
        };
        text.push_str(&format!("\n{name}: check found {found}"));
        for (ids, what) in [(&missed, "missed"), (&wrong, "wrong")] {
            if !ids.is_empty() {
                holds = false;
                text.push_str(&format!("; {what}: {}", ids.join(", ")));
            }
        }
    }
    text.push('\n');
    (text, holds)
}
