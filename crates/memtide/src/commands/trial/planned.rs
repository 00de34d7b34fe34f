//! The plan of a trial, from what was typed.

use std::path::{Path, PathBuf};

use ::trial::{
    BASELINE, CONFIDENCE, Goals, MachinePlan, NoTrial, PLAN_FORMAT, Preflight, ReadyVariant,
    RunPlan, ScoreFormat, ServerPlan, TrialCommand, TrialDirectory, TrialHost, TrialPlan, Variant,
    VariantSetting, check_names, check_place, default_variants, grid, named, preflight,
};
use units::Span;

use crate::cli::TrialArgs;
use crate::command_error::{CommandError, ErrorContext};

/// Blocks after which a trial is looked at, where their number is not given.
const LOOKS: [usize; 5] = [3, 5, 8, 12, 20];
/// jemalloc keeps freed pages for 10 s.
const SERVER_IDLE: Span = Span::from_secs(12);

/// A plan with the variants that can be run; of a trial that goes on, with its directory.
pub(super) fn plan_or_resume(
    args: &TrialArgs,
) -> Result<(TrialPlan, Vec<ReadyVariant>, Option<TrialDirectory>), CommandError> {
    let check = |plan: &TrialPlan| preflight(&|variant| plan.command_of(variant), &plan.variants);
    if let Some(path) = &args.resume {
        let (directory, plan) = TrialDirectory::open(path)?;
        enter(&plan.working_directory)?;
        let checked = check(&plan)?;
        let (plan, ready) = unchanged(plan, checked)?;
        return Ok((plan, ready, Some(directory)));
    }
    let plan = plan(args)?;
    let checked = check(&plan)?;
    let (plan, ready) = plan.with(checked);
    Ok((plan, ready, None))
}

fn plan(args: &TrialArgs) -> Result<TrialPlan, CommandError> {
    let (command, variants) = commands(args)?;
    check_names(&variants)?;
    let machine = machine(args)?;
    let variants = with_known_kernels(variants)?;
    check_place(machine.as_ref(), &variants)?;
    let server = args.ready.clone().zip(args.load.clone()).map(|(ready, load)| ServerPlan {
        ready,
        has_warm_up: !args.no_warm_up,
        score: args.score.map(Into::into).or_else(|| ScoreFormat::of_command(&load)),
        load,
    });
    let idle = if server.is_some() { SERVER_IDLE } else { Span::ZERO };
    Ok(TrialPlan {
        format: PLAN_FORMAT.to_owned(),
        id: format!("{}-{}", jiff::Timestamp::now().as_nanosecond(), std::process::id()),
        command,
        variants,
        left_out: Vec::new(),
        notes: Vec::new(),
        working_directory: std::env::current_dir().context("there is no working directory")?,
        has_control: !args.no_control,
        confidence: CONFIDENCE,
        looks: args.blocks.map_or(LOOKS.to_vec(), |blocks| vec![usize::from(blocks)]),
        seed: args.seed,
        goals: Goals {
            margin: args.margin,
            max_slowdown: args.max_slowdown,
            memory_budget: args.memory_budget,
        },
        runs: RunPlan {
            timeout: args.timeout,
            idle: args.idle.unwrap_or(idle),
            prepare: args.prepare.clone(),
            server,
            machine,
        },
        time_limit: args.time_limit,
        host: TrialHost::here(),
    })
}

/// The same with the full versions of their kernels, so that a trial goes on with those that it was begun with.
fn with_known_kernels(mut variants: Vec<Variant>) -> Result<Vec<Variant>, CommandError> {
    for setting in variants.iter_mut().flat_map(|one| &mut one.settings) {
        if let VariantSetting::Kernel(kernel) = setting {
            *kernel = known_kernel(Some(Path::new(kernel)))?;
        }
    }
    Ok(variants)
}

/// The path of an image, or the full version of a kernel that the lab has.
fn known_kernel(wanted: Option<&Path>) -> Result<String, CommandError> {
    let found = lab::Kernel::find(wanted)?;
    let image = wanted.filter(|wanted| wanted.exists());
    Ok(image.map_or(found.version, |image| image.display().to_string()))
}

/// The virtual machine of each run, if it has one.
fn machine(args: &TrialArgs) -> Result<Option<MachinePlan>, CommandError> {
    let machine = &args.machine;
    if !machine.vm {
        return Ok(None);
    }
    if args.record {
        return Err(CommandError::new("--record records this host, and --vm runs nothing on it"));
    }
    lab::Machine { ram: machine.ram, ..lab::Machine::with_mib(0) }.check()?;
    Ok(Some(MachinePlan {
        ram: machine.ram,
        cpus: machine.vm_cpus,
        disk_speed: machine.disk_speed,
        kernel: known_kernel(machine.kernel.as_deref())?,
    }))
}

/// The command, and what is tried: the baseline first.
fn commands(args: &TrialArgs) -> Result<(TrialCommand, Vec<Variant>), CommandError> {
    if let [_, _, ..] = args.commands.as_slice() {
        let variants = args.commands.iter().enumerate().map(|(at, line)| {
            let before = args.commands[..at].iter().filter(|other| *other == line).count();
            let name = if before > 0 { format!("{line} ({})", before + 1) } else { line.clone() };
            Variant { name, settings: vec![VariantSetting::Command(line.clone())] }
        });
        let first = TrialCommand::Line(args.commands[0].clone());
        if !args.program.is_empty() || !args.vary.is_empty() || !args.variants.is_empty() {
            return Err(CommandError::new(
                "two commands are compared as they are: --vary needs one",
            ));
        }
        return Ok((first, variants.collect()));
    }
    let command = match (args.commands.first(), args.program.as_slice()) {
        (Some(line), []) => TrialCommand::Line(line.clone()),
        (None, [_, ..]) => TrialCommand::Program(args.program.clone()),
        (None, []) => return Err(NoTrial::NoCommand.into()),
        (Some(_), _) => {
            return Err(CommandError::new("the command stands before `--` or behind it, not both"));
        }
    };
    if args.vary.is_empty() && args.variants.is_empty() {
        return Ok((command, default_variants()));
    }
    let mut variants = if args.vary.is_empty() { Vec::new() } else { grid(&args.vary)? };
    for text in &args.variants {
        variants.push(named(text)?);
    }
    // The baseline is the command as it is. A fresh machine is nobody's: there it is the first that was asked for.
    let is_plain = |one: &Variant| one.settings.is_empty();
    let plain = variants.iter().position(is_plain);
    let has_baseline = args.machine.vm && variants.len() > 1;
    if plain.is_some() || !has_baseline {
        let baseline = match plain {
            Some(at) => variants.remove(at),
            None => Variant { name: BASELINE.to_owned(), settings: Vec::new() },
        };
        variants.insert(0, baseline);
    }
    Ok((command, variants))
}

/// Where the runs of a new trial are kept.
pub(super) fn directory(args: &TrialArgs) -> Result<PathBuf, CommandError> {
    if let Some(directory) = &args.directory {
        return Ok(directory.clone());
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(home)
        .context("there is no home directory; name one with --directory")?;
    let now = jiff::Zoned::now().strftime("%Y-%m-%d-%H%M%S").to_string();
    Ok(state.join("memtide/trials").join(format!("{now}-{}", std::process::id())))
}

/// What would be run.
pub(super) fn dry_run(plan: &TrialPlan, ready: &[ReadyVariant]) -> String {
    let orders = ::trial::Orders::new(plan.columns().len(), plan.seed);
    let columns = plan.columns();
    let mut text = String::new();
    for ready in ready {
        let preload = ready.preload.iter().map(|library| format!("LD_PRELOAD={library}"));
        let settings = ready.variant.settings.iter().filter_map(VariantSetting::as_typed);
        let before: Vec<String> = preload.chain(settings).collect();
        let command = plan.command_of(&ready.variant);
        text.push_str(&format!("{}: {} {command}\n", ready.variant.name, before.join(" ")));
    }
    for one in &plan.left_out {
        text.push_str(&format!("not run: {}: {}\n", one.name, one.why));
    }
    if let Some(machine) = &plan.runs.machine {
        text.push_str(&format!(
            "each in a virtual machine: {} CPUs, {} of RAM, Linux {}\n",
            machine.cpus, machine.ram, machine.kernel
        ));
    }
    let first = plan.looks.first().copied().unwrap_or(0);
    for block in 0..first {
        let names = orders
            .of_block(block)
            .iter()
            .map(|column| plan.variants[columns[*column]].name.as_str());
        text.push_str(&format!("block {}: {}\n", block + 1, names.collect::<Vec<_>>().join(", ")));
    }
    let (least, most) = (first * columns.len(), plan.blocks_max() * columns.len());
    let time = |runs: usize| Span::from_secs(runs as u64);
    text.push_str(&if least == most {
        format!("{most} runs: {} for each second that one takes\n", time(most))
    } else {
        format!(
            "{least} to {most} runs: {} to {} for each second that one takes\n",
            time(least),
            time(most)
        )
    });
    text
}

/// Goes to where the commands of a trial are run.
fn enter(directory: &Path) -> Result<(), CommandError> {
    std::env::set_current_dir(directory)
        .with_context(|| format!("cannot go to {}", directory.display()))
}

/// The plan of a trial that goes on, where this machine can still run all of it.
fn unchanged(
    plan: TrialPlan,
    checked: Preflight,
) -> Result<(TrialPlan, Vec<ReadyVariant>), CommandError> {
    let here = TrialHost { boot: plan.host.boot.clone(), ..TrialHost::here() };
    if here != plan.host {
        let planned = format!("{}, Linux {}", plan.host.name, plan.host.kernel);
        return Err(CommandError::new(format!("it was begun on another machine: {planned}")));
    }
    if let Some(gone) = checked.dropped.first() {
        return Err(CommandError::new(format!(
            "{} cannot be run any more: {}",
            gone.name, gone.why
        )));
    }
    Ok((plan, checked.ready))
}
