//! Programs by their names, scripts, and libraries below other root directories.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anatomy::{
    AllocatorKind, CLibrary, ElfMachine, NoProspect, RunPlace, find_library, preload_prospect,
};
use probe::Root;

use crate::programs::{JEMALLOC, MIMALLOC, Programs, here, library, prospect};

fn names(chain: &[PathBuf]) -> Vec<&str> {
    chain.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect()
}

#[test]
fn a_script_is_followed_to_the_program_that_runs_it() {
    let programs = Programs::new();
    let program = programs.allocating(&[]);
    let direct = programs.script("direct", &format!("#! {} 3\n", program.display()));
    let by_env = programs.script("by-env", "#!/usr/bin/env allocating\n");
    let twice = programs.script("twice", &format!("#!{}\n", direct.display()));
    let place = RunPlace { search_path: programs.path("").into_os_string(), ..here() };
    for (file, expected) in [
        (&program, &["allocating"][..]),
        (&direct, &["direct", "allocating"]),
        (&by_env, &["by-env", "env", "allocating"]),
        (&twice, &["twice", "direct", "allocating"]),
        (&PathBuf::from("twice"), &["twice", "direct", "allocating"]),
    ] {
        let before = preload_prospect(file, &place).unwrap();
        assert_eq!(names(&before.chain), expected);
        assert_eq!(before.machine, ElfMachine::HOST);
    }
}

#[test]
fn scripts_of_scripts_are_followed_as_far_as_the_kernel_does() {
    let programs = Programs::new();
    let mut below = PathBuf::from("/bin/true");
    for number in 1..=6 {
        below = programs.script(&number.to_string(), &format!("#!{}\n", below.display()));
        let before = preload_prospect(&below, &here());
        assert_eq!(before.is_ok(), Command::new(&below).output().is_ok(), "{number} deep");
        assert_eq!(before.is_ok(), number <= 5, "{number} deep");
    }
}

#[test]
fn what_cannot_be_run_has_no_prospect() {
    let programs = Programs::new();
    let text = programs.script("text", "hello\n");
    let plain = programs.path("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    let endless = programs.path("endless");
    programs.script("endless", &format!("#!{}\n", endless.display()));
    let nothing = programs.script("nothing", "#!\n");
    let of = |path: &Path| preload_prospect(path, &here()).unwrap_err();
    assert!(matches!(of(&text), NoProspect::NotExecutable { .. }));
    assert!(matches!(of(&plain), NoProspect::NotExecutable { .. }));
    assert!(matches!(of(&endless), NoProspect::TooDeep(_)));
    assert!(matches!(of(&nothing), NoProspect::NotFound(_)));
    assert!(matches!(of("no-such-program".as_ref()), NoProspect::NotFound(_)));
    assert!(matches!(of(&programs.path("")), NoProspect::Unreadable { .. }));
    assert!(matches!(of("/dev/null".as_ref()), NoProspect::Unreadable { .. }));
    // The kernel agrees.
    for path in [&plain, &endless, &nothing] {
        assert!(Command::new(path).output().is_err(), "{}", path.display());
    }
}

#[test]
fn libraries_are_found_by_the_cache_of_their_root_and_where_libraries_usually_are() {
    let Some(here) = library(JEMALLOC) else {
        return;
    };
    assert_eq!(here.c_library, CLibrary::Glibc);
    assert_eq!(here.file.kind, Some(AllocatorKind::Jemalloc));
    assert!(here.file.build_id.is_some(), "{here:?}");
    let place = Programs::new();
    let root = Root::at(place.path(""));
    let find = |soname| find_library(&root, soname, ElfMachine::HOST);
    for folder in ["usr/lib64", "opt/odd", "etc"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    let real = place.path("opt/odd/libjemalloc.so.2.9");
    std::fs::copy(&here.file.path, &real).unwrap();
    assert!(find(JEMALLOC.0).is_err());
    // An absolute link leads to a place below the root.
    symlink("/opt/odd/libjemalloc.so.2.9", place.path("usr/lib64/libjemalloc.so.2")).unwrap();
    let found = find(JEMALLOC.0).unwrap();
    assert_eq!(found.file.path, "/opt/odd/libjemalloc.so.2.9");
    assert_eq!(found.file.build_id, here.file.build_id);
    std::fs::remove_file(place.path("usr/lib64/libjemalloc.so.2")).unwrap();
    std::fs::write(place.path("etc/ld.so.conf"), "/opt/odd\n").unwrap();
    let made = Command::new("/sbin/ldconfig").arg("-r").arg(place.path("")).output();
    if made.is_ok_and(|made| made.status.success()) {
        assert_eq!(find(JEMALLOC.0).unwrap().file.path, "/opt/odd/libjemalloc.so.2.9");
    }
    let by_path = find("/opt/odd/libjemalloc.so.2.9").unwrap();
    assert_eq!(by_path.file.soname.as_deref(), Some(JEMALLOC.0));
}

#[test]
fn a_library_for_another_processor_is_refused_by_name() {
    let place = Programs::new();
    let root = Root::at(place.path(""));
    std::fs::create_dir_all(place.path("lib")).unwrap();
    let path = place.path("lib/libmimalloc.so.2");
    std::fs::write(&path, "no library\n").unwrap();
    let of = || find_library(&root, MIMALLOC.0, ElfMachine::HOST).unwrap_err().unfit;
    assert_eq!(of()[0].path, Path::new("/lib/libmimalloc.so.2"));
    assert!(of()[0].why.contains("ELF"));
    let mut file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    // The number of IBM's s390.
    file[18..20].copy_from_slice(&22_u16.to_le_bytes());
    std::fs::write(&path, file).unwrap();
    assert!(of()[0].why.contains("another processor"), "{:?}", of());
}

#[test]
fn this_test_is_a_program_of_this_machine() {
    let own = prospect(&std::env::current_exe().unwrap());
    assert_eq!((own.machine, own.extra_rights), (ElfMachine::HOST, None));
}
