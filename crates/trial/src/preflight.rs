//! Can a variant have an effect at all? Decided before the first run, from the program's file.

use std::path::{Path, PathBuf};

use anatomy::{
    CLibrary, ElfMachine, NoProspect, PreloadProspect, RunPlace as ProgramPlace, SettingEffect,
    SettingLimit, find_library, glibc_tunables, preload_prospect,
};
use probe::Root;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::TrialCommand;
use crate::machine::MachinePlan;
use crate::variant::{BASELINE, MallocChoice, Variant, VariantSetting};

/// A variant that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyVariant {
    /// The variant, without settings that change nothing here.
    pub variant: Variant,
    /// What `LD_PRELOAD` gets.
    pub preload: Option<String>,
}

/// A variant that is not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedVariant {
    /// As it was asked for.
    pub name: String,
    /// Why it is not run.
    pub why: String,
    /// What would make it possible.
    pub help: Option<String>,
}

/// What can be run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preflight {
    /// The variants that are run, in their order.
    pub ready: Vec<ReadyVariant>,
    /// The others, each with its reason.
    pub dropped: Vec<DroppedVariant>,
    /// What the answer cannot show of those that are run.
    pub notes: Vec<String>,
}

/// Why nothing can be run.
#[allow(missing_docs)] // their texts say it
#[derive(Debug, thiserror::Error)]
pub enum NoTrial {
    #[error("there is no command to run")]
    NoCommand,
    #[error(transparent)]
    NoProgram(#[from] NoProspect),
    #[error("glibc here has no tunable glibc.malloc.{name}")]
    UnknownTunable { name: String, known: Vec<String> },
    #[error("{setting} is a setting of the whole machine, and memtide changes none of this host")]
    NeedsMachine { setting: String },
    #[error("the baseline {name} cannot be run: {why}")]
    NoBaseline { name: String, why: String, help: Option<String> },
    #[error("only the command as it is can be run: there is nothing to compare it with")]
    NothingToCompare { dropped: Vec<DroppedVariant> },
}

impl NoTrial {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NoCommand => Some(
                "two commands: memtide trial 'CMD A' 'CMD B'; or one and what to vary: memtide \
                 trial --vary arenas=default,2 -- CMD"
                    .to_owned(),
            ),
            Self::UnknownTunable { known, .. } => Some(format!(
                "it ignores unknown names without a message; it has {}",
                known.join(", ")
            )),
            Self::NothingToCompare { dropped } => {
                let lines: Vec<String> = dropped
                    .iter()
                    .map(|one| match &one.help {
                        Some(help) => format!("{}: {} ({help})", one.name, one.why),
                        None => format!("{}: {}", one.name, one.why),
                    })
                    .collect();
                Some(lines.join("; ")).filter(|lines| !lines.is_empty())
            }
            Self::NeedsMachine { .. } => Some(
                "--vm runs each variant in a virtual machine, with the files of this host"
                    .to_owned(),
            ),
            Self::NoBaseline { help, .. } => help.clone(),
            Self::NoProgram(_) => None,
        }
    }
}

/// What is tried where nothing else is asked for.
pub fn default_variants() -> Vec<Variant> {
    let of = |name: &str, setting| Variant { name: name.to_owned(), settings: vec![setting] };
    let malloc = |choice: MallocChoice| {
        let name = choice.to_string();
        of(&name, VariantSetting::Malloc(choice))
    };
    vec![
        Variant { name: BASELINE.to_owned(), settings: Vec::new() },
        of("arenas=1", VariantSetting::Arenas(1)),
        of("arenas=2", VariantSetting::Arenas(2)),
        malloc(MallocChoice::Jemalloc),
        malloc(MallocChoice::Tcmalloc),
        malloc(MallocChoice::Mimalloc),
    ]
}

/// Checks each variant; the first is the baseline.
///
/// # Errors
/// [`NoTrial`].
pub fn preflight(
    commands: &dyn Fn(&Variant) -> TrialCommand,
    variants: &[Variant],
) -> Result<Preflight, NoTrial> {
    let mut found = Preflight::default();
    for variant in variants {
        let words = commands(variant).words();
        let program = words.first().ok_or(NoTrial::NoCommand)?;
        let prospect = preload_prospect(Path::new(program), &this_place())?;
        let known =
            KnownProgram { prospect: &prospect, is_shell: words.get(1).is_some_and(|w| w == "-c") };
        match known.ready(variant)? {
            Ok((ready, note)) => {
                let is_again = found.ready.iter().any(|other| is_same(commands, other, &ready));
                if is_again {
                    let why = "it is the same as another variant here".to_owned();
                    found.dropped.push(DroppedVariant {
                        name: variant.name.clone(),
                        why,
                        help: None,
                    });
                } else {
                    found.notes.extend(note);
                    found.ready.push(ready);
                }
            }
            Err(DroppedVariant { name, why, help }) if found.ready.is_empty() => {
                return Err(NoTrial::NoBaseline { name, why, help });
            }
            Err(dropped) => found.dropped.push(dropped),
        }
    }
    if found.ready.len() < 2 {
        return Err(NoTrial::NothingToCompare { dropped: found.dropped });
    }
    Ok(found)
}

/// Checks that no variant changes this host.
///
/// # Errors
/// [`NoTrial::NeedsMachine`].
pub fn check_place(machine: Option<&MachinePlan>, variants: &[Variant]) -> Result<(), NoTrial> {
    let mut settings = variants.iter().flat_map(|one| &one.settings);
    let of_machine = settings.find(|one| one.is_of_machine()).filter(|_| machine.is_none());
    match of_machine.and_then(VariantSetting::as_typed) {
        Some(setting) => Err(NoTrial::NeedsMachine { setting }),
        None => Ok(()),
    }
}

/// Whether two variants run the same, as `alloc=glibc` and no setting do for most programs.
fn is_same(
    commands: &dyn Fn(&Variant) -> TrialCommand,
    one: &ReadyVariant,
    other: &ReadyVariant,
) -> bool {
    one.variant.settings == other.variant.settings
        && commands(&one.variant) == commands(&other.variant)
        && one.preload == other.preload
        && !one.variant.settings.iter().any(|one| matches!(one, VariantSetting::Command(_)))
        && other.variant.name != BASELINE
}

fn this_place() -> ProgramPlace {
    ProgramPlace {
        root: Root::default(),
        search_path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()),
        user: rustix::process::getuid().as_raw(),
        group: rustix::process::getgid().as_raw(),
    }
}

struct KnownProgram<'a> {
    prospect: &'a PreloadProspect,
    /// A shell starts other programs, which are not known before.
    is_shell: bool,
}

type ReadyOrDropped = Result<(ReadyVariant, Option<String>), DroppedVariant>;

impl KnownProgram<'_> {
    fn ready(&self, variant: &Variant) -> Result<ReadyOrDropped, NoTrial> {
        let dropped = |why: String, help: Option<String>| {
            Ok(Err(DroppedVariant { name: variant.name.clone(), why, help }))
        };
        let choice = variant.settings.iter().find_map(|setting| match setting {
            VariantSetting::Malloc(choice) => Some(choice),
            _ => None,
        });
        let mut ready = ReadyVariant { variant: variant.clone(), preload: None };
        let mut note = None;
        if let Some(choice) = choice {
            match self.effect(self.prospect.preload()) {
                SettingEffect::None(limit) => return dropped(says(&limit), None),
                SettingEffect::Part(SettingLimit::Musl) => {
                    return dropped(says(&SettingLimit::Musl), None);
                }
                SettingEffect::Part(limit) => {
                    note = Some(format!("{}: {}", variant.name, says(&limit)));
                }
                SettingEffect::Full => {}
            }
            let is_own = *choice == MallocChoice::Glibc && self.uses_glibc();
            if is_own {
                ready.variant.settings.retain(|one| !matches!(one, VariantSetting::Malloc(_)));
            } else {
                match library(choice, self.prospect.machine) {
                    Ok(library) => ready.preload = Some(library),
                    Err((why, help)) => return dropped(why, help),
                }
            }
        }
        let settings = variant.settings.iter();
        let of_glibc = settings.filter(|one| {
            matches!(one, VariantSetting::Arenas(_) | VariantSetting::Tunable { .. })
        });
        for setting in of_glibc {
            match choice {
                Some(MallocChoice::Glibc) => {}
                Some(_) => {
                    return dropped(
                        "only glibc's malloc has arenas and its tunables".to_owned(),
                        None,
                    );
                }
                None => match self.effect(self.prospect.malloc_settings()) {
                    SettingEffect::None(limit) => {
                        let help = matches!(limit, SettingLimit::Linked(_))
                            .then(|| "with glibc's malloc: alloc:glibc".to_owned());
                        return dropped(says(&limit), help);
                    }
                    SettingEffect::Part(limit) => {
                        note = Some(format!("{}: {}", variant.name, says(&limit)));
                    }
                    SettingEffect::Full => {}
                },
            }
            if let VariantSetting::Tunable { name, .. } = setting {
                self.check_tunable(name)?;
            }
        }
        Ok(Ok((ready, note)))
    }

    /// A shell's own file decides nothing about what it starts.
    fn effect(&self, of_program: SettingEffect) -> SettingEffect {
        if self.is_shell { SettingEffect::Full } else { of_program }
    }

    fn uses_glibc(&self) -> bool {
        let is_glibc = self.prospect.malloc_settings() == SettingEffect::Full;
        is_glibc && self.prospect.linked.is_empty() && !self.is_shell
    }

    fn check_tunable(&self, name: &str) -> Result<(), NoTrial> {
        let Some(known) = self.prospect.loader().and_then(|loader| glibc_tunables(loader).ok())
        else {
            return Ok(());
        };
        let full = format!("glibc.malloc.{name}");
        if known.iter().any(|one| one.name == full) {
            return Ok(());
        }
        let of_malloc = known.iter().filter_map(|one| one.name.strip_prefix("glibc.malloc."));
        let known = of_malloc.map(str::to_owned).collect();
        Err(NoTrial::UnknownTunable { name: name.to_owned(), known })
    }
}

/// Why a setting has no effect, or not on all.
fn says(limit: &SettingLimit) -> String {
    match limit {
        SettingLimit::Static => "the program is static: LD_PRELOAD and malloc's settings do nothing".to_owned(),
        SettingLimit::ExtraRights(_) => {
            "the program gets more rights than its user has, and ignores the environment".to_owned()
        }
        SettingLimit::Musl => {
            "the program was built for musl: no distribution has this for it, and arenas do not exist".to_owned()
        }
        SettingLimit::OwnMalloc => "the program defines malloc itself: only its libraries use another".to_owned(),
        SettingLimit::OtherLoader => "the program is not loaded by glibc".to_owned(),
        SettingLimit::Go => {
            "Go's runtime takes its memory from the kernel: only parts in C use malloc; try GOGC and GOMEMLIMIT".to_owned()
        }
        SettingLimit::Bundled(kind) => {
            format!("{} is in the program's file: only its libraries use another malloc", kind.name())
        }
        SettingLimit::Linked(kind) => {
            format!("the program is linked to {}, which has no arenas and tunables of glibc", kind.name())
        }
    }
}

/// What is to be preloaded.
fn library(choice: &MallocChoice, machine: ElfMachine) -> Result<String, (String, Option<String>)> {
    let soname = match choice {
        MallocChoice::Glibc => "libc.so.6",
        MallocChoice::Jemalloc => "libjemalloc.so.2",
        MallocChoice::Tcmalloc => "libtcmalloc_minimal.so.4",
        MallocChoice::Mimalloc => "libmimalloc.so.2",
        MallocChoice::Library(path) => {
            let path = PathBuf::from(path);
            let absolute = std::fs::canonicalize(&path).unwrap_or(path);
            return checked(&absolute.to_string_lossy(), machine)
                .map(|()| absolute.to_string_lossy().into_owned());
        }
    };
    checked(soname, machine).map_err(|(why, _)| (why, package(choice)))?;
    Ok(soname.to_owned())
}

fn checked(library: &str, machine: ElfMachine) -> Result<(), (String, Option<String>)> {
    match find_library(&Root::default(), library, machine) {
        Ok(found) if found.c_library == CLibrary::Musl => {
            Err((format!("{} was built for musl", found.file.path), None))
        }
        Ok(_) => Ok(()),
        Err(error) => {
            let why = match error.unfit.first() {
                Some(unfit) => format!("{} does not fit: {}", unfit.path.display(), unfit.why),
                None => format!("{library} is not installed"),
            };
            Err((why, None))
        }
    }
}

/// How a library is installed here.
fn package(choice: &MallocChoice) -> Option<String> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let is = |name: &str| release.lines().any(|line| line.starts_with("ID") && line.contains(name));
    let (command, names) = if is("debian") || is("ubuntu") {
        ("apt install", ["libjemalloc2", "libtcmalloc-minimal4", "libmimalloc2.0"])
    } else if is("fedora") || is("rhel") {
        ("dnf install", ["jemalloc", "gperftools-libs", "mimalloc"])
    } else if is("suse") {
        ("zypper install", ["libjemalloc2", "libtcmalloc4", "libmimalloc2"])
    } else if is("arch") {
        ("pacman -S", ["jemalloc", "gperftools", "mimalloc"])
    } else {
        return None;
    };
    let name = match choice {
        MallocChoice::Jemalloc => names[0],
        MallocChoice::Tcmalloc => names[1],
        MallocChoice::Mimalloc => names[2],
        MallocChoice::Glibc | MallocChoice::Library(_) => return None,
    };
    Some(format!("{command} {name}"))
}
