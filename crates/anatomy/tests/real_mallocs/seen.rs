//! What the slots of running programs point into.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anatomy::SettingLimit;
use anatomy::{AllocatorKind, EffectiveAllocator, EnvironmentUse, ProviderFile, SettingEffect};

use crate::programs::{
    JEMALLOC, MIMALLOC, Programs, Running, TCMALLOC, has, library, prospect, seen,
};

/// The file that all bound slots point into.
fn only(seen: &EffectiveAllocator) -> &ProviderFile {
    seen.only().and_then(|one| one.file()).unwrap_or_else(|| panic!("{seen:#?}"))
}

fn kinds(seen: &EffectiveAllocator) -> Vec<Option<AllocatorKind>> {
    seen.providers.iter().map(|one| one.kind()).collect()
}

fn bundled(seen: &EffectiveAllocator) -> Vec<AllocatorKind> {
    seen.bundled.iter().map(|one| one.kind).collect()
}

fn preloaded(program: &Path, library: &str) -> Running {
    Running::start(Command::new(program).env("LD_PRELOAD", library))
}

#[test]
fn a_program_that_was_linked_as_usual_has_glibcs_malloc() {
    let programs = Programs::new();
    for flags in [&[][..], &["-no-pie", "-fno-pie"], &["-Wl,-z,now"], &["-Wl,-z,lazy"]] {
        let process = Running::start(Command::new(programs.allocating(flags)).arg("1"));
        let seen = process.seen();
        let file = only(&seen);
        assert_eq!(file.kind, Some(AllocatorKind::Ptmalloc), "{flags:?}");
        assert_eq!(file.soname.as_deref(), Some("libc.so.6"), "{flags:?}");
        assert!(file.version.as_ref().is_some_and(|text| text.starts_with("2.")), "{file:?}");
        assert!(!seen.is_static && !seen.has_several() && seen.bundled.is_empty(), "{seen:#?}");
        assert_eq!((seen.environment, seen.unread.len()), (EnvironmentUse::Obeyed, 0));
        let callers = &seen.providers[0].callers;
        let program = callers.iter().find(|one| one.is_program).unwrap();
        assert_eq!(program.functions, ["malloc", "free", "calloc", "realloc"], "{flags:?}");
    }
}

#[test]
fn a_function_that_was_not_called_yet_has_no_slot_that_is_bound() {
    let programs = Programs::new();
    let process = Running::start(&mut Command::new(programs.allocating(&["-Wl,-z,lazy"])));
    let seen = process.seen();
    assert_eq!(only(&seen).kind, Some(AllocatorKind::Ptmalloc));
    let mut callers = seen.providers[0].callers.iter();
    let program = callers.find(|one| one.is_program).unwrap();
    assert_eq!(program.functions, ["free", "calloc", "realloc"], "malloc is for threads");
}

#[test]
fn a_library_that_was_preloaded_by_its_soname_serves_the_process() {
    let programs = Programs::new();
    let program = programs.allocating(&[]);
    assert_eq!(prospect(&program).preload(), SettingEffect::Full);
    for (soname, kind) in [
        (JEMALLOC, AllocatorKind::Jemalloc),
        (TCMALLOC, AllocatorKind::Gperftools),
        (MIMALLOC, AllocatorKind::Mimalloc),
    ] {
        let Some(library) = library(soname) else {
            continue;
        };
        let process = preloaded(&program, soname.0);
        let seen = process.seen();
        let file = only(&seen);
        assert_eq!(file.kind, Some(kind), "{seen:#?}");
        assert!(file.version.is_some(), "{file:?}");
        assert_eq!(*file, library.file, "found before the run");
        assert!(!seen.has_several(), "{seen:#?}");
    }
}

#[test]
fn a_wrong_path_leaves_everything_as_it_was_and_the_program_ends_well() {
    let programs = Programs::new();
    let process = preloaded(&programs.allocating(&[]), "/nowhere/libjemalloc.so.2");
    let seen = process.seen();
    assert_eq!(only(&seen).kind, Some(AllocatorKind::Ptmalloc));
    let environ = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap();
    assert!(String::from_utf8_lossy(&environ).contains("LD_PRELOAD=/nowhere"));
    let (is_well, complaints) = process.end();
    assert!(is_well && complaints.contains("cannot be preloaded"), "{complaints}");
}

#[test]
fn redis_is_linked_to_jemalloc_and_reports_it_whatever_serves_it() {
    if !has("redis-check-rdb", "redis-tools") {
        return;
    }
    let linked = prospect("redis-check-rdb".as_ref()).linked;
    if linked.first().map(|one| one.kind) != Some(AllocatorKind::Jemalloc) {
        eprintln!("skipped: this Redis is not linked to jemalloc as Debian's is");
        return;
    }
    let before = prospect("redis-check-rdb".as_ref());
    assert_eq!(before.preload(), SettingEffect::Full);
    let limit = SettingLimit::Linked(AllocatorKind::Jemalloc);
    assert_eq!(before.malloc_settings(), SettingEffect::None(limit));
    let mut expected = vec![("", AllocatorKind::Jemalloc), ("libc.so.6", AllocatorKind::Ptmalloc)];
    expected.extend(library(MIMALLOC).map(|_| (MIMALLOC.0, AllocatorKind::Mimalloc)));
    for (preload, kind) in expected {
        let programs = Programs::new();
        let socket = programs.path("socket");
        let mut command = Command::new("redis-check-rdb");
        // The program is one, and goes by its name; the package of the server starts one.
        command.arg0("redis-server").env("LD_PRELOAD", preload).current_dir(programs.path(""));
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket);
        let process = Running::start_until(&mut command, "eady to accept connections");
        let seen = process.seen();
        assert_eq!(only(&seen).kind, Some(kind), "{preload}: {seen:#?}");
        let reported = info(&socket);
        assert!(reported.contains("mem_allocator:jemalloc"), "{preload}: {reported}");
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.pid)).unwrap();
        assert!(maps.contains("libjemalloc"), "{preload}: it stays mapped");
    }
}

/// What Redis reports of its memory.
fn info(socket: &Path) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(b"INFO memory\r\nQUIT\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn an_allocator_in_the_programs_file_is_named_beside_that_of_the_libraries() {
    let programs = Programs::new();
    let program = programs.allocating(&["-DEXPORTS_JE_MALLOC", "-rdynamic"]);
    let before = prospect(&program);
    let limit = SettingLimit::Bundled(AllocatorKind::Jemalloc);
    assert_eq!(before.preload(), SettingEffect::Part(limit));
    for one in [None, library(MIMALLOC)] {
        let kind = one.as_ref().map_or(AllocatorKind::Ptmalloc, |_| AllocatorKind::Mimalloc);
        let process = preloaded(&program, one.map_or("", |_| MIMALLOC.0));
        let seen = process.seen();
        assert_eq!(only(&seen).kind, Some(kind));
        assert_eq!(bundled(&seen), [AllocatorKind::Jemalloc]);
        assert!(seen.has_several(), "{seen:#?}");
    }
}

#[test]
fn a_program_with_a_malloc_of_its_own_takes_it_before_what_is_preloaded() {
    let programs = Programs::new();
    let program = programs.allocating(&["-DHAS_OWN_MALLOC"]);
    let before = prospect(&program);
    let none = SettingEffect::None(SettingLimit::OwnMalloc);
    assert_eq!((before.preload(), before.malloc_settings()), (none.clone(), none));
    for one in [None, library(JEMALLOC)] {
        let process = preloaded(&program, one.map_or("", |_| JEMALLOC.0));
        let seen = process.seen();
        let file = only(&seen);
        assert_eq!((Path::new(&file.path), file.kind), (program.as_path(), None), "{seen:#?}");
        assert!(!seen.has_several() && !seen.is_static, "{seen:#?}");
    }
}

#[test]
fn a_library_that_keeps_its_own_allocator_is_a_second_one() {
    let Some(mimalloc) = library(MIMALLOC) else {
        return;
    };
    let programs = Programs::new();
    let flags = ["-shared", "-fPIC", &mimalloc.file.path];
    let caller = programs.compile("cc", "caller.c", "libcaller.so", &flags).unwrap();
    let program = programs.allocating(&["-DHAS_DLOPEN", "-D_GNU_SOURCE"]);
    let process = Running::start(Command::new(program).arg("0").arg(&caller));
    let seen = process.seen();
    let expected = [Some(AllocatorKind::Ptmalloc), Some(AllocatorKind::Mimalloc)];
    assert_eq!(kinds(&seen), expected, "{seen:#?}");
    assert!(seen.has_several() && seen.only().is_none());
    let mut callers = seen.providers[1].callers.iter();
    assert!(callers.any(|one| Path::new(&one.file) == caller), "{seen:#?}");
}

#[test]
fn a_function_by_its_address_in_a_program_at_a_fixed_address_is_no_second_allocator() {
    let programs = Programs::new();
    let flags = ["-DTAKES_ADDRESSES", "-no-pie", "-fno-pie", "-Wl,-z,lazy"];
    let process = Running::start(&mut Command::new(programs.allocating(&flags)));
    let seen = process.seen();
    assert_eq!(only(&seen).kind, Some(AllocatorKind::Ptmalloc));
}

#[test]
fn every_process_of_a_wrapper_is_seen_for_itself() {
    let Some(_) = library(JEMALLOC) else {
        return;
    };
    let programs = Programs::new();
    let program = programs.allocating(&[]);
    for (inner, kind) in
        [("", AllocatorKind::Jemalloc), ("env -u LD_PRELOAD ", AllocatorKind::Ptmalloc)]
    {
        let line = format!("{inner}{}; true", program.display());
        let mut command = Command::new("sh");
        let process = Running::start(command.arg("-c").arg(line).env("LD_PRELOAD", JEMALLOC.0));
        assert_ne!(process.pid, process.first_pid());
        let wrapper = seen(process.first_pid());
        assert_eq!(only(&wrapper).kind, Some(AllocatorKind::Jemalloc), "{inner}");
        assert_eq!(only(&process.seen()).kind, Some(kind), "{inner}");
    }
}

#[test]
fn files_without_section_headers_are_read_and_one_that_was_removed_is_named_so() {
    let Some(jemalloc) = library(JEMALLOC) else {
        return;
    };
    let programs = Programs::new();
    let program = programs.allocating(&[]);
    let own = programs.path("libown.so");
    for (from, to) in [(program.as_path(), program.as_path()), (jemalloc.file.path.as_ref(), &own)]
    {
        let mut file = std::fs::read(from).unwrap();
        // Where the section headers are, and how many.
        file[40..48].fill(0);
        file[58..64].fill(0);
        let again = programs.path("again");
        std::fs::copy(&program, &again).unwrap();
        std::fs::write(&again, file).unwrap();
        std::fs::rename(again, to).unwrap();
    }
    let process = preloaded(&program, own.to_str().unwrap());
    std::fs::remove_file(&own).unwrap();
    let seen = process.seen();
    let file = only(&seen);
    assert!(file.is_deleted && Path::new(&file.path) == own, "{file:?}");
    if rustix::process::geteuid().is_root() {
        assert_eq!(file.kind, Some(AllocatorKind::Jemalloc), "by its symbols");
        assert_eq!(file.soname.as_deref(), Some(JEMALLOC.0));
        assert_eq!(seen.unread, []);
    } else {
        assert!(seen.unread.iter().any(|one| one.file == file.path), "{seen:#?}");
    }
}

#[test]
fn a_program_of_musl_has_musls_malloc_and_does_not_start_with_a_library_for_glibc() {
    let programs = Programs::new();
    if !has("musl-gcc", "musl-tools") {
        return;
    }
    let program = programs.compile("musl-gcc", "allocating.c", "musl", &[]).unwrap();
    let process = Running::start(&mut Command::new(&program));
    let seen = process.seen();
    assert_eq!(only(&seen).kind, Some(AllocatorKind::Musl), "{seen:#?}");
    assert!(seen.bundled.is_empty() && !seen.has_several(), "{seen:#?}");
    let before = prospect(&program);
    assert_eq!(before.preload(), SettingEffect::Part(SettingLimit::Musl));
    assert_eq!(before.malloc_settings(), SettingEffect::None(SettingLimit::Musl));
    let Some(jemalloc) = library(JEMALLOC) else {
        return;
    };
    let ended = Command::new(&program).env("LD_PRELOAD", jemalloc.file.path).output().unwrap();
    assert!(!ended.status.success() && ended.stdout.is_empty(), "{ended:?}");
}

#[test]
fn a_piece_of_the_program_that_is_mapped_once_more_is_no_second_program() {
    let programs = Programs::new();
    let process = Running::start(&mut Command::new(programs.allocating(&["-DMAPS_ITSELF"])));
    let seen = process.seen();
    assert_eq!(only(&seen).kind, Some(AllocatorKind::Ptmalloc));
    assert_eq!(seen.unread, []);
}

#[test]
fn a_process_with_another_root_directory_is_read_by_the_files_that_it_has() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root changes a root directory");
        return;
    }
    let programs = Programs::new();
    let program = programs.allocating(&[]);
    let seen = Running::start(&mut Command::new(&program)).seen();
    let mut files = vec![prospect(&program).loader().unwrap().to_owned()];
    files.push(only(&seen).path.clone().into());
    for file in &files {
        let to = programs.path("root").join(file.strip_prefix("/").unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(file, to).unwrap();
    }
    std::fs::copy(&program, programs.path("root/program")).unwrap();
    let mut command = Command::new("chroot");
    let process = Running::start(command.arg(programs.path("root")).arg("/program"));
    let inside = process.seen();
    let file = only(&inside);
    assert!(Path::new(&file.path).starts_with(programs.path("root")), "{file:?}");
    assert_eq!(file.build_id, only(&seen).build_id);
    assert_eq!(inside.unread, []);
    assert!(inside.providers[0].callers.iter().any(|one| one.is_program), "{inside:#?}");
}

#[test]
fn threads_of_the_kernel_and_processes_that_are_gone_have_none() {
    let of = |pid| {
        let page = units::PageSize::USUAL;
        anatomy::effective_allocator(&probe::Root::default(), pid, page).unwrap_err()
    };
    assert!(of(0x3fff_ffff).to_string().contains("cannot read"));
    if rustix::process::geteuid().is_root()
        && std::fs::read("/proc/2/maps").is_ok_and(|maps| maps.is_empty())
    {
        assert!(of(2).to_string().contains("kernel"), "{}", of(2));
    }
}
