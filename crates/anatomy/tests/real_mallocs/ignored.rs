//! Settings in the environment that have no effect, and of which no message says so.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anatomy::{
    AllocatorKind, EnvironmentUse, ExtraRights, ProgramLinkage, RunPlace, SettingEffect,
    SettingLimit, glibc_tunables, preload_prospect,
};

use crate::programs::{JEMALLOC, Programs, Running, has, here, library, prospect};

/// Threads, each with an arena of its own beside the main one.
const THREADS: &str = "3";
const ARENAS: usize = 4;

fn arenas(program: &Path, variable: (&str, &str)) -> usize {
    let mut command = Command::new(program);
    // The number of CPUs decides elsewhere.
    let process = Running::start(command.arg(THREADS).env(variable.0, variable.1));
    process.arenas()
}

#[test]
fn a_name_that_glibc_does_not_know_and_a_value_that_is_no_number_change_nothing() {
    let programs = Programs::new();
    let program = programs.allocating(&[]);
    for (name, value, expected) in [
        ("GLIBC_TUNABLES", "glibc.malloc.arenas_max=1", ARENAS),
        ("MALLOC_ARENA_MAX", "two", ARENAS),
        ("GLIBC_TUNABLES", "glibc.malloc.arena_max=1", 1),
        ("MALLOC_ARENA_MAX", "1", 1),
    ] {
        let mut command = Command::new(&program);
        let process = Running::start(command.arg(THREADS).env(name, value));
        assert_eq!(process.arenas(), expected, "{name}={value}");
        let (is_well, complaints) = process.end();
        assert!(is_well && complaints.is_empty(), "{name}={value}: {complaints}");
    }
    let before = prospect(&program);
    assert_eq!(before.malloc_settings(), SettingEffect::Full);
    match glibc_tunables(before.loader().unwrap()) {
        Ok(known) => {
            let find = |name: &str| known.iter().find(|one| one.name == name);
            assert_eq!(find("glibc.malloc.arenas_max"), None);
            let range = find("glibc.malloc.arena_max").unwrap().range;
            assert_eq!(range.map(|(min, _)| min), Some(1), "0 is out of range");
            assert!(known.is_sorted_by_key(|one| &one.name));
        }
        Err(why) => assert!(why.to_string().contains("since 2.33"), "{why}"),
    }
    assert!(glibc_tunables("/bin/true".as_ref()).unwrap_err().to_string().contains("2.33"));
    assert!(glibc_tunables("/nowhere".as_ref()).is_err());
}

#[test]
fn nothing_is_preloaded_into_a_static_program_but_glibcs_malloc_in_it_obeys_its_settings() {
    let programs = Programs::new();
    for flag in ["-static", "-static-pie"] {
        let program = programs.allocating(&[flag]);
        let before = prospect(&program);
        assert_eq!(before.linkage, ProgramLinkage::Static, "{flag}");
        assert_eq!(before.preload(), SettingEffect::None(SettingLimit::Static), "{flag}");
        assert_eq!(before.malloc_settings(), SettingEffect::Full, "{flag}");
        let mut command = Command::new(&program);
        let process = Running::start(command.env("LD_PRELOAD", JEMALLOC.0));
        let seen = process.seen();
        assert!(seen.is_static && seen.providers.is_empty(), "{seen:#?}");
        let kinds: Vec<AllocatorKind> = seen.bundled.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [AllocatorKind::Ptmalloc], "{flag}");
        let (is_well, complaints) = process.end();
        assert!(is_well && complaints.is_empty(), "{flag}: {complaints}");
        assert_eq!(arenas(&program, ("NONE", "")), ARENAS, "{flag}");
        for variable in [("MALLOC_ARENA_MAX", "1"), ("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")]
        {
            assert_eq!(arenas(&program, variable), 1, "{flag}: {variable:?}");
        }
    }
}

#[test]
fn memory_of_gos_runtime_and_of_musl_is_reached_by_no_setting() {
    let programs = Programs::new();
    let (nothing, part) = (SettingEffect::None, SettingEffect::Part);
    let (fixed, go) = (SettingLimit::Static, SettingLimit::Go);
    let program = |flags: &[&str]| {
        let program = programs.allocating(flags);
        let own = programs.path(flags.last().unwrap());
        std::fs::rename(program, &own).unwrap();
        own
    };
    // As with cgo: its parts in C have glibc's malloc.
    let with_c = program(&["-DHAS_GO_INFORMATION"]);
    let with_c_static = program(&["-DHAS_GO_INFORMATION", "-static"]);
    let mut all = vec![
        (with_c, AllocatorKind::Go, part(go.clone()), part(go.clone())),
        (with_c_static, AllocatorKind::Go, nothing(fixed.clone()), part(go)),
    ];
    if has("musl-gcc", "musl-tools") {
        let musl = programs.compile("musl-gcc", "allocating.c", "musl", &["-static"]).unwrap();
        all.push((musl, AllocatorKind::Musl, nothing(fixed.clone()), nothing(fixed)));
    }
    for (program, kind, preload, settings) in all {
        let before = prospect(&program);
        let name = program.display();
        assert!(before.bundled.iter().any(|one| one.kind == kind), "{name}: {before:#?}");
        assert_eq!((before.preload(), before.malloc_settings()), (preload, settings), "{name}");
        let seen = Running::start(&mut Command::new(&program)).seen();
        assert!(seen.bundled.iter().any(|one| one.kind == kind), "{name}: {seen:#?}");
        assert_eq!(seen.has_several(), kind == AllocatorKind::Go, "{name}: {seen:#?}");
    }
}

/// Who starts a program.
const ROOT: u32 = 0;
const NOBODY: u32 = 65_534;

#[test]
fn who_starts_a_program_with_more_rights_than_his_own_is_ignored() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: other users' programs are made by root");
        return;
    }
    if library(JEMALLOC).is_none() || !has("setcap", "libcap2-bin") {
        return;
    }
    let programs = Programs::new();
    let program = programs.allocating(&[]);
    let copy = |name: &str, owner: u32, mode: u32| {
        let path = programs.path(name);
        std::fs::copy(&program, &path).unwrap();
        std::os::unix::fs::chown(&path, Some(owner), Some(owner)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let with = |name: &str, capabilities: &str| {
        let path = copy(name, ROOT, 0o755);
        let status = Command::new("setcap").arg(capabilities).arg(&path).status().unwrap();
        assert!(status.success(), "setcap {capabilities}");
        path
    };
    let (by_user, by_group) = (Some(ExtraRights::SetUser), Some(ExtraRights::SetGroup));
    let by_file = Some(ExtraRights::Capabilities);
    for (file, as_root, as_nobody) in [
        (copy("plain", ROOT, 0o755), None, None),
        (copy("setuid-root", ROOT, 0o4755), None, by_user),
        (copy("setuid-nobody", NOBODY, 0o4755), by_user, None),
        (copy("setgid-root", ROOT, 0o2755), None, by_group),
        (copy("setgid-unexecutable", NOBODY, 0o2745), None, None),
        (with("effective", "cap_net_bind_service=ep"), None, by_file),
        (with("permitted", "cap_net_bind_service=p"), None, by_file),
        (with("inheritable", "cap_net_bind_service=i"), None, None),
    ] {
        for (user, expected) in [(ROOT, as_root), (NOBODY, as_nobody)] {
            let name = format!("{} by {user}", file.display());
            let place = RunPlace { user, group: user, ..here() };
            let before = preload_prospect(&file, &place).unwrap();
            assert_eq!(before.extra_rights, expected, "{name}: is /tmp mounted nosuid?");
            let mut command = Command::new(&file);
            command.arg(THREADS).env("LD_PRELOAD", JEMALLOC.0).env("MALLOC_ARENA_MAX", "1");
            let process = Running::start(command.uid(user).gid(user));
            let seen = process.seen();
            let kind = seen.only().and_then(|one| one.kind());
            let Some(rights) = expected else {
                assert_eq!(seen.environment, EnvironmentUse::Obeyed, "{name}");
                assert_eq!(kind, Some(AllocatorKind::Jemalloc), "{name}");
                assert_eq!(before.preload(), SettingEffect::Full, "{name}");
                continue;
            };
            assert_eq!(seen.environment, EnvironmentUse::IgnoredAsSecure, "{name}");
            assert_eq!(kind, Some(AllocatorKind::Ptmalloc), "{name}");
            assert_eq!(process.arenas(), ARENAS, "{name}");
            let environ = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap();
            assert!(String::from_utf8_lossy(&environ).contains("MALLOC_ARENA_MAX=1"), "{name}");
            let none = SettingEffect::None(SettingLimit::ExtraRights(rights));
            assert_eq!((before.preload(), before.malloc_settings()), (none.clone(), none));
        }
    }
}
