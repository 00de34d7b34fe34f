//! What is tried: variants, each a list of settings, as people type them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::machine::{SwapArea, ThpMode};

/// The name of the variant without a setting: the command as the user runs it today.
pub const BASELINE: &str = "default";

/// A malloc that can be preloaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MallocChoice {
    /// glibc's own, also for a program that is linked to another one.
    Glibc,
    /// jemalloc, as the distribution packages it.
    Jemalloc,
    /// tcmalloc of gperftools.
    Tcmalloc,
    /// mimalloc 2, as it is packaged.
    Mimalloc,
    /// A library at this path.
    Library(String),
}

/// One thing that a variant changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VariantSetting {
    /// Another command, as a shell reads it.
    Command(String),
    /// Another malloc, by `LD_PRELOAD`.
    Malloc(MallocChoice),
    /// At most so many arenas of glibc's malloc: `MALLOC_ARENA_MAX`.
    Arenas(u32),
    /// A tunable of glibc's malloc: `glibc.malloc.NAME` in `GLIBC_TUNABLES`.
    Tunable {
        /// Its name without `glibc.malloc.`.
        name: String,
        /// As glibc reads it.
        value: String,
    },
    /// An environment variable.
    Environment {
        /// The name of the variable.
        name: String,
        /// What it is set to.
        value: String,
    },
    /// Without transparent huge pages: `PR_SET_THP_DISABLE`.
    ThpOff,
    /// A memory limit: `memory.max`, on v1 `memory.limit_in_bytes`.
    Limit(Bytes),
    /// `memory.high`; v2 only.
    High(Bytes),
    /// A limit of swap; on v1 together with one of memory.
    Swap(Bytes),
    /// The CPUs that it may use.
    Cpus(Vec<usize>),
    /// A setting of the whole machine, in `/proc/sys/vm`.
    Vm {
        /// The name of its file.
        name: String,
        /// What is written to it.
        value: String,
    },
    /// The swap area of the whole machine.
    SwapArea(SwapArea),
    /// The mode of transparent huge pages of the whole machine.
    Thp(ThpMode),
    /// The kernel of the machine: an image, or a version.
    Kernel(String),
}

/// One of the things that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// What it is called in the answer.
    pub name: String,
    /// What it changes; nothing for the baseline.
    pub settings: Vec<VariantSetting>,
}

/// Why what was typed is no setting.
#[allow(missing_docs)] // their texts say it
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("`{0}` has no `=`; write KEY=VALUE,VALUE, for instance arenas=default,2")]
    NoValues(String),
    #[error("`{0}` has no `:`; write KEY:VALUE, for instance alloc:jemalloc")]
    NoValue(String),
    #[error("`{0}` is no name of a variant: write NAME=KEY:VALUE+KEY:VALUE")]
    NoName(String),
    #[error("there is no key `{0}`")]
    UnknownKey(String),
    #[error("{key} cannot be `{value}`: {why}")]
    BadValue { key: String, value: String, why: &'static str },
    #[error("two variants are called `{0}`")]
    Twice(String),
    #[error("{0} combinations of --vary are more than {1}")]
    TooMany(usize, usize),
}

impl SettingError {
    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::UnknownKey(_) => Some(
                "keys are alloc, arenas, malloc.NAME (a tunable), thp, limit, high, swap, cpus, \
                 command, NAME of an environment variable in capitals or as env.NAME, and with --vm \
                 vm.NAME, swapon, kernel",
            ),
            Self::TooMany(..) => Some("name the interesting ones by --variant"),
            _ => None,
        }
    }
}

/// More would take hours, and each widens the interval of all.
const VARIANTS_MAX: usize = 24;

impl VariantSetting {
    /// Reads one by its key and value; `None` for the value `default`, which changes nothing.
    ///
    /// # Errors
    /// [`SettingError`] for a key that there is not, or a value that it cannot have.
    pub fn read(key: &str, value: &str) -> Result<Option<Self>, SettingError> {
        let bad =
            |why| SettingError::BadValue { key: key.to_owned(), value: value.to_owned(), why };
        if value == BASELINE {
            return known_key(key)
                .then_some(None)
                .ok_or_else(|| SettingError::UnknownKey(key.to_owned()));
        }
        let size = || value.parse().map_err(|_| bad("write a size such as 384M or 2GiB"));
        Ok(Some(match key {
            "alloc" => Self::Malloc(malloc_choice(value).ok_or_else(|| {
                bad("write glibc, jemalloc, tcmalloc, mimalloc or the path of a library")
            })?),
            "arenas" => match value.parse() {
                Ok(arenas) if arenas > 0 => Self::Arenas(arenas),
                _ => return Err(bad("write default, or a number from 1 on")),
            },
            "thp" => match (value, ThpMode::read(value)) {
                ("off", _) => Self::ThpOff,
                (_, Some(mode)) => Self::Thp(mode),
                (_, None) => {
                    return Err(bad("write default or off; with --vm always, madvise or never"));
                }
            },
            "swapon" => Self::SwapArea(SwapArea::read(value).ok_or_else(|| {
                bad("write off, disk or zram, with a size if you like: zram:512M")
            })?),
            "kernel" => Self::Kernel(value.to_owned()),
            "limit" => Self::Limit(size()?),
            "high" => Self::High(size()?),
            "swap" => Self::Swap(size()?),
            "cpus" => {
                Self::Cpus(cpus(value).ok_or_else(|| bad("write numbers such as 0-3 or 0+2"))?)
            }
            "command" => Self::Command(value.to_owned()),
            _ => {
                let (name, value) = (str::to_owned, value.to_owned());
                if let Some(of_glibc) = key.strip_prefix("malloc.") {
                    Self::Tunable { name: name(of_glibc), value }
                } else if let Some(of_kernel) = vm_name(key) {
                    if matches!(of_kernel, "drop_caches" | "compact_memory") {
                        return Err(bad("it is an action, and no setting that stays"));
                    }
                    Self::Vm { name: name(of_kernel), value }
                } else if let Some(variable) = environment_name(key) {
                    Self::Environment { name: name(variable), value }
                } else {
                    return Err(SettingError::UnknownKey(key.to_owned()));
                }
            }
        }))
    }
}

impl VariantSetting {
    /// As one would type it in a shell in front of the command; `None` for what is no variable.
    pub fn as_typed(&self) -> Option<String> {
        Some(match self {
            Self::Arenas(arenas) => format!("MALLOC_ARENA_MAX={arenas}"),
            Self::Tunable { name, value } => format!("GLIBC_TUNABLES=glibc.malloc.{name}={value}"),
            Self::Environment { name, value } => format!("{name}={value}"),
            Self::ThpOff => "prctl:PR_SET_THP_DISABLE".to_owned(),
            Self::Limit(limit) => format!("memory.max:{limit}"),
            Self::High(limit) => format!("memory.high:{limit}"),
            Self::Swap(limit) => format!("memory.swap.max:{limit}"),
            Self::Cpus(cpus) => format!("cpus:{cpus:?}"),
            Self::Vm { name, value } => format!("vm.{name}:{value}"),
            Self::SwapArea(area) => format!("swapon:{area}"),
            Self::Thp(mode) => format!("thp:{}", mode.name()),
            Self::Kernel(kernel) => format!("kernel:{kernel}"),
            Self::Malloc(choice) => format!("alloc:{choice}"),
            Self::Command(_) => return None,
        })
    }

    /// Whether it is a setting of a whole machine, which is tried in a virtual one only.
    pub const fn is_of_machine(&self) -> bool {
        matches!(self, Self::Vm { .. } | Self::SwapArea(_) | Self::Thp(_) | Self::Kernel(_))
    }
}

impl fmt::Display for MallocChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Glibc => "glibc",
            Self::Jemalloc => "jemalloc",
            Self::Tcmalloc => "tcmalloc",
            Self::Mimalloc => "mimalloc",
            Self::Library(path) => path,
        })
    }
}

fn known_key(key: &str) -> bool {
    const KEYS: [&str; 10] =
        ["alloc", "arenas", "thp", "limit", "high", "swap", "cpus", "command", "swapon", "kernel"];
    KEYS.contains(&key)
        || key.starts_with("malloc.")
        || vm_name(key).is_some()
        || environment_name(key).is_some()
}

/// The name of a file in `/proc/sys/vm`: `vm.swappiness`.
fn vm_name(key: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        let is_part = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-');
        !name.is_empty() && name.bytes().all(is_part)
    };
    key.strip_prefix("vm.").filter(is_name)
}

fn malloc_choice(value: &str) -> Option<MallocChoice> {
    Some(match value {
        "glibc" => MallocChoice::Glibc,
        "jemalloc" => MallocChoice::Jemalloc,
        "tcmalloc" => MallocChoice::Tcmalloc,
        "mimalloc" => MallocChoice::Mimalloc,
        path if path.contains('/') => MallocChoice::Library(path.to_owned()),
        _ => return None,
    })
}

/// The name of an environment variable: `env.NAME`, or one that is in capitals.
fn environment_name(key: &str) -> Option<&str> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match key.strip_prefix("env.") {
        Some(name) => is_name(name).then_some(name),
        None => (is_name(key) && !key.bytes().any(|byte| byte.is_ascii_lowercase())).then_some(key),
    }
}

fn cpus(value: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in value.split('+') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last > 8191 {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// Makes every combination of what was given as `KEY=VALUE,VALUE`, in that order; the first is called by what it is, and one
/// that changes nothing [`BASELINE`].
///
/// # Errors
/// [`SettingError`].
pub fn grid(varied: &[String]) -> Result<Vec<Variant>, SettingError> {
    let mut all = vec![Variant { name: String::new(), settings: Vec::new() }];
    for axis in varied {
        let (key, values) =
            axis.split_once('=').ok_or_else(|| SettingError::NoValues(axis.clone()))?;
        let values: Vec<&str> = values.split(',').collect();
        let combinations = all.len() * values.len();
        if combinations > VARIANTS_MAX {
            return Err(SettingError::TooMany(combinations, VARIANTS_MAX));
        }
        let mut next = Vec::new();
        for variant in &all {
            for value in &values {
                let mut variant = variant.clone();
                if let Some(setting) = VariantSetting::read(key, value)? {
                    variant.settings.push(setting);
                    let gap = if variant.name.is_empty() { "" } else { " " };
                    variant.name.push_str(&format!("{gap}{key}={value}"));
                }
                next.push(variant);
            }
        }
        all = next;
    }
    for variant in &mut all {
        if variant.name.is_empty() {
            BASELINE.clone_into(&mut variant.name);
        }
    }
    Ok(all)
}

/// Reads `NAME=KEY:VALUE+KEY:VALUE`. A value may have a `+` or `:` of its own where what follows is no key.
///
/// # Errors
/// [`SettingError`].
pub fn named(text: &str) -> Result<Variant, SettingError> {
    let (name, settings) = text
        .split_once('=')
        .filter(|(name, _)| !name.trim().is_empty())
        .ok_or_else(|| SettingError::NoName(text.to_owned()))?;
    let mut pairs: Vec<(String, String)> = Vec::new();
    for part in settings.split('+') {
        match (part.split_once(':').filter(|(key, _)| known_key(key)), pairs.last_mut()) {
            (Some((key, value)), _) => pairs.push((key.to_owned(), value.to_owned())),
            (None, Some((_, value))) => {
                value.push('+');
                value.push_str(part);
            }
            (None, None) => {
                return Err(match part.split_once(':') {
                    Some((key, _)) => SettingError::UnknownKey(key.to_owned()),
                    None => SettingError::NoValue(part.to_owned()),
                });
            }
        }
    }
    let read = pairs.iter().map(|(key, value)| VariantSetting::read(key, value));
    let settings: Result<Vec<_>, _> = read.collect();
    Ok(Variant {
        name: name.trim().to_owned(),
        settings: settings?.into_iter().flatten().collect(),
    })
}

/// Checks that each name stands once.
///
/// # Errors
/// [`SettingError::Twice`], and [`SettingError::TooMany`].
pub fn check_names(variants: &[Variant]) -> Result<(), SettingError> {
    if variants.len() > VARIANTS_MAX {
        return Err(SettingError::TooMany(variants.len(), VARIANTS_MAX));
    }
    for (at, variant) in variants.iter().enumerate() {
        if variants[..at].iter().any(|other| other.name == variant.name) {
            return Err(SettingError::Twice(variant.name.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_a_variant_and_the_one_without_settings_the_baseline() {
        let all = grid(&["alloc=default,jemalloc".into(), "arenas=default,2".into()]).unwrap();
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["default", "arenas=2", "alloc=jemalloc", "alloc=jemalloc arenas=2"]);
        assert_eq!(
            all[3].settings,
            [VariantSetting::Malloc(MallocChoice::Jemalloc), VariantSetting::Arenas(2)]
        );
    }

    #[test]
    fn every_setting_of_vm_and_each_swap_area_can_be_typed() {
        for file in std::fs::read_dir("/proc/sys/vm").unwrap().flatten() {
            let name = file.file_name().into_string().unwrap();
            let read = VariantSetting::read(&format!("vm.{name}"), "1");
            if ["drop_caches", "compact_memory"].contains(&name.as_str()) {
                assert!(read.unwrap_err().to_string().contains("it is an action"));
                continue;
            }
            assert_eq!(read, Ok(Some(VariantSetting::Vm { name, value: "1".into() })));
        }
        for (text, area) in [
            ("off", SwapArea::Off),
            ("disk", SwapArea::Disk(None)),
            ("disk:1G", SwapArea::Disk(Some(Bytes::from_gib(1)))),
            ("zram:512M", SwapArea::Zram(Some(Bytes::from_mib(512)))),
        ] {
            let read = VariantSetting::read("swapon", text).unwrap().unwrap();
            assert_eq!(read, VariantSetting::SwapArea(area), "{text}");
            assert!(read.is_of_machine());
        }
        for text in ["disk:0", "off:1G", "zram:", "file", "disk:1K"] {
            assert!(VariantSetting::read("swapon", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_named_variant_has_values_with_signs_of_their_own() {
        let one = named("je=alloc:jemalloc+MALLOC_CONF=x").unwrap_err();
        assert_eq!(
            one.to_string(),
            "alloc cannot be `jemalloc+MALLOC_CONF=x`: write glibc, jemalloc, tcmalloc, mimalloc or the path of a library"
        );
        let one = named("je2=alloc:jemalloc+MALLOC_CONF:narenas:2,dirty_decay_ms:0").unwrap();
        assert_eq!(one.name, "je2");
        assert_eq!(
            one.settings[1],
            VariantSetting::Environment {
                name: "MALLOC_CONF".into(),
                value: "narenas:2,dirty_decay_ms:0".into()
            }
        );
        let flags = named("opt=RUBYOPT:-W0 +x").unwrap();
        assert_eq!(
            flags.settings[0],
            VariantSetting::Environment { name: "RUBYOPT".into(), value: "-W0 +x".into() }
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for (typed, says) in [
            ("arenas", "`arenas` has no `=`"),
            ("arenas=two", "arenas cannot be `two`: write default, or a number from 1 on"),
            ("arenas=0", "arenas cannot be `0`"),
            ("thp=on", "always, madvise or never"),
            ("swapon=1G", "write off, disk or zram"),
            ("limit=much", "write a size"),
            ("speed=9", "there is no key `speed`"),
            ("cpus=3-1", "cpus cannot be `3-1`"),
            ("alloc=jmalloc", "alloc cannot be `jmalloc`"),
        ] {
            let error = grid(&[typed.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(says), "{typed}: {error}");
        }
        let many = vec!["A=1,2,3,4,5".to_owned(), "B=1,2,3,4,5".to_owned()];
        assert_eq!(grid(&many).unwrap_err(), SettingError::TooMany(25, VARIANTS_MAX));
        let twice = [named("a=arenas:1").unwrap(), named("a=arenas:2").unwrap()];
        assert_eq!(check_names(&twice).unwrap_err(), SettingError::Twice("a".into()));
    }
}
