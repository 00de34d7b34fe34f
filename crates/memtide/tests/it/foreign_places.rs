//! Places that somebody else can write: what a user puts there neither stops memtide, nor makes it open a device, nor gives
//! another's cgroup a name.
//!
//! A test has a host of its own in a mount namespace: `/etc/passwd` and `/var/lib` are others, and a user `al` has a home and
//! cgroups. Needs root, the v1 memory controller, `/dev/fuse` and python3.

mod fuse;

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, inotify, makedev, mknodat};

use crate::record::{Group, is_root, skip, status, until};
use crate::support::{folded, stderr};
use fuse::SilentFuse;

const ID: &str = "abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd";
/// Longer than any command takes, also in a debug build on a busy machine.
const HANGS: Duration = Duration::from_secs(60);

/// A host with a user, in the directory of a test.
struct Host {
    place: tempfile::TempDir,
    /// Of the user `al`, who has cgroups for the whole machine: each test has its own.
    al: u32,
    /// Removed with the test, the innermost first.
    groups: Vec<PathBuf>,
}

impl Host {
    fn make(al: u32) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let host = Self { place, al, groups: Vec::new() };
        let home = host.path("home");
        let passwd =
            format!("root:x:0:0::/root:/bin/sh\nal:x:{al}:{al}::{}:/bin/sh\n", home.display());
        fs::write(host.path("passwd"), passwd).unwrap();
        fs::create_dir_all(host.path("lib")).unwrap();
        host.mine("home", |path| fs::create_dir(path).unwrap());
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A container's cgroup in al's slice.
    fn of_al(&self, id: &str) -> String {
        format!("user.slice/user-{}.slice/docker-{id}.scope", self.al)
    }

    /// Makes something of al's, with the directories around it.
    fn mine(&self, name: &str, make: impl FnOnce(&Path)) -> PathBuf {
        let path = self.path(name);
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        for above in above.into_iter().rev().filter(|above| above.starts_with(self.path("home"))) {
            if fs::create_dir(above).is_ok() {
                chown(above, Some(self.al), Some(self.al)).unwrap();
            }
        }
        make(&path);
        let _ = std::os::unix::fs::lchown(&path, Some(self.al), Some(self.al));
        path
    }

    /// Makes a cgroup with a process in it.
    fn group(&mut self, path: &str) -> Sleeper {
        let whole = Path::new("/sys/fs/cgroup/memory").join(path);
        let above: Vec<&Path> = whole.ancestors().take_while(|above| !above.exists()).collect();
        for new in above.into_iter().rev() {
            fs::create_dir(new).unwrap();
            self.groups.push(new.to_owned());
        }
        Sleeper::in_group(&whole)
    }

    /// Gives a container of root a name, as Docker does.
    fn docker_names(&self, id: &str, name: &str) {
        let state = self.path(&format!("lib/docker/containers/{id}"));
        fs::create_dir_all(&state).unwrap();
        fs::write(state.join("config.v2.json"), format!(r#"{{"Name":"/{name}"}}"#)).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_by(&[], arguments)
    }

    /// memtide as root without the rights that BPF needs, so that it reads `/proc`.
    fn command_without_bpf(&self, arguments: &[&str]) -> Command {
        let bounding = "--bounding-set=-bpf,-perfmon,-sys_admin";
        self.command_by(&["setpriv", bounding], arguments)
    }

    /// memtide, started by another program.
    fn command_by(&self, by: &[&str], arguments: &[&str]) -> Command {
        let script = "mount --bind \"$0/passwd\" /etc/passwd && mount --bind \"$0/lib\" /var/lib \
                      && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]);
        command.arg(self.place.path()).args(by).arg(env!("CARGO_BIN_EXE_memtide")).args(arguments);
        command.env("TZ", "UTC").stdin(Stdio::null());
        command
    }

    /// Runs memtide, which must come to an answer.
    fn answers(&self, arguments: &[&str]) {
        let output = self.run(arguments);
        let code = output.status.code();
        assert!(code.is_some_and(|code| code < 3), "{arguments:?}: {output:?}");
    }

    /// Runs memtide; a command that hangs is ended and fails the test.
    fn run(&self, arguments: &[&str]) -> Output {
        in_time(self.command(arguments), &arguments.join(" "))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for group in self.groups.iter().rev() {
            let until = Instant::now() + Duration::from_secs(5);
            while fs::remove_dir(group).is_err() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

fn in_time(mut command: Command, what: &str) -> Output {
    let output = |to| fs::File::create(to).unwrap();
    let place = tempfile::tempdir().unwrap();
    let (out, err) = (place.path().join("out"), place.path().join("err"));
    let mut child = command.stdout(output(&out)).stderr(output(&err)).spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > HANGS {
            let _ = child.kill();
            panic!("`memtide {what}` hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Output { status, stdout: fs::read(out).unwrap(), stderr: fs::read(err).unwrap() }
}

/// A process that waits, ended with its test.
struct Sleeper(Child);

impl Sleeper {
    fn in_group(group: &Path) -> Self {
        let script = "echo $$ > \"$0/cgroup.procs\" && echo ready && exec sleep 600";
        Self::ready(Command::new("sh").args(["-c", script]).arg(group))
    }

    /// A process that has a file open and mapped, and its directory as the working directory.
    fn with_file(file: &Path) -> Self {
        let script = "import mmap,os,sys,time\nf=open(sys.argv[1])\nm=mmap.mmap(f.fileno(),4096,mmap.MAP_SHARED,mmap.PROT_READ)\nos.chdir(os.path.dirname(sys.argv[1]))\nprint('ready',flush=True)\ntime.sleep(600)";
        Self::ready(Command::new("python3").args(["-c", script]).arg(file))
    }

    /// A process of which the root directory lies there, with a tmpfs in it.
    fn with_root(root: &Path) -> Self {
        let script = "mount -t tmpfs tmpfs \"$0/below\" && exec python3 -c '\nimport os,sys,time\nos.chroot(sys.argv[1])\nprint(\"ready\",flush=True)\ntime.sleep(600)' \"$0\"";
        Self::ready(Command::new("unshare").args(["--mount", "sh", "-c", script]).arg(root))
    }

    /// A process that holds the lock of its address space for ever once `flag` exists: a thread waits for a page of the file,
    /// and another for the lock, behind which all readers wait.
    fn with_held_lock(file: &Path, flag: &Path) -> Self {
        let script = "import ctypes,mmap,os,sys,threading,time\nf=open(sys.argv[1])\nm=mmap.mmap(f.fileno(),4096,mmap.MAP_PRIVATE,mmap.PROT_READ|mmap.PROT_WRITE)\nat=ctypes.addressof(ctypes.c_char.from_buffer(m))\nmem=os.open('/proc/self/mem',os.O_RDONLY)\nt=[threading.Thread(target=os.pread,args=(mem,1,at)),threading.Thread(target=lambda:mmap.mmap(-1,4096))]\nprint('ready',flush=True)\nwhile not os.path.exists(sys.argv[2]): time.sleep(.05)\nt[0].start()\ntime.sleep(1)\nt[1].start()\ntime.sleep(600)";
        Self::ready(Command::new("python3").args(["-c", script]).args([file, flag]))
    }

    /// A process of a user that starts another program once `flag` exists, and never gets there: the kernel closes the file on
    /// the way.
    fn with_endless_exec(uid: u32, file: &Path, flag: &Path) -> Self {
        let script = "import os,sys,time\nos.setuid(int(sys.argv[1]))\nf=os.open(sys.argv[2],os.O_RDONLY)\nprint('ready',flush=True)\nwhile not os.path.exists(sys.argv[3]): time.sleep(.05)\nos.execv('/bin/sleep',['sleep','600'])";
        Self::ready(
            Command::new("python3").args(["-c", script, &uid.to_string()]).args([file, flag]),
        )
    }

    /// A process with a pipe of which the lock is held for ever once `flag` exists: it writes a page of the file.
    fn with_held_pipe(file: &Path, flag: &Path) -> Self {
        let script = "import ctypes,mmap,os,sys,time\nf=open(sys.argv[1])\nm=mmap.mmap(f.fileno(),4096,mmap.MAP_PRIVATE,mmap.PROT_READ|mmap.PROT_WRITE)\nat=ctypes.addressof(ctypes.c_char.from_buffer(m))\nr,w=os.pipe()\nos.write(w,b'x'*100)\nprint('ready',flush=True)\nwhile not os.path.exists(sys.argv[2]): time.sleep(.05)\nctypes.CDLL(None).write(w,ctypes.c_void_p(at),4096)";
        Self::ready(Command::new("python3").args(["-c", script]).args([file, flag]))
    }

    fn ready(command: &mut Command) -> Self {
        use std::io::BufRead as _;
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufReader::new(out).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A device, `/dev/fuse` by another name, and whether somebody opened it.
struct Device {
    path: PathBuf,
    events: rustix::fd::OwnedFd,
}

impl Device {
    fn make(path: PathBuf) -> Self {
        let (harmless, mode) = (makedev(10, 229), Mode::from_raw_mode(0o666));
        mknodat(CWD, &path, FileType::CharacterDevice, mode, harmless).unwrap();
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let events = inotify::init(flags).unwrap();
        inotify::add_watch(&events, &path, inotify::WatchFlags::OPEN).unwrap();
        Self { path, events }
    }

    #[track_caller]
    fn assert_unopened(&self, by: &str) {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 512];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        assert!(events.next().is_err(), "{by} opened the device");
    }
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
}

/// Whether this machine has what the tests of this file need; else it says so.
fn can_make_a_host() -> bool {
    if !is_root() {
        skip("making devices, cgroups and mounts needs root: run the tests as root");
        return false;
    }
    if let Err(why) = Group::make("places", "max").or_else(|_| Group::make("places", "67108864")) {
        skip(&format!("{why}: mount the v1 memory controller"));
        return false;
    }
    let unshare = Command::new("unshare").args(["--mount", "true"]).output();
    if !unshare.is_ok_and(|answer| answer.status.success()) {
        skip("this user may not make mount namespaces");
        return false;
    }
    true
}

const STORAGE: &str = "home/.local/share/containers/storage/overlay-containers";

fn list(name: &str) -> String {
    format!(r#"[{{"id":"{ID}","names":["{name}"]}}]"#)
}

#[test]
fn whatever_lies_in_a_users_home_nothing_is_opened_there_but_the_users_own_file() {
    if !can_make_a_host() {
        return;
    }
    let mut host = Host::make(4711);
    let group = host.of_al(ID);
    let _sleeper = host.group(&group);
    let device = Device::make(host.path("watchdog"));
    fs::write(host.path("secret"), list("secret")).unwrap();
    let state = format!("{STORAGE}/containers.json");
    let called = |host: &Host| folded(&host.run(&["where", "--by", "container"]));
    let unnamed = "docker abcdefabcdef of user al";

    host.mine(&state, |path| fs::write(path, list("own")).unwrap());
    assert!(called(&host).contains("own (docker abcdefabcdef) of user al"));
    let replaced = |make: &dyn Fn(&Path)| {
        let _ = fs::remove_file(host.path(&state));
        host.mine(&state, |path| make(path));
    };
    let secret = host.path("secret");
    type Replacement<'a> = (&'a str, &'a dyn Fn(&Path));
    let cases: [Replacement<'_>; 5] = [
        ("a link to a device", &|path| symlink(&device.path, path).unwrap()),
        ("a link to root's file", &|path| symlink(&secret, path).unwrap()),
        ("a pipe", &|path| pipe(path)),
        ("a device", &|path| drop(Device::make(path.to_owned()))),
        ("10 GiB", &|path| {
            fs::write(path, list("long")).unwrap();
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_len(10 << 30).unwrap();
        }),
    ];
    for (what, make) in cases {
        replaced(make);
        let text = called(&host);
        assert!(text.contains(unnamed), "{what}: {text}");
        device.assert_unopened(what);
    }
    replaced(&|path| fs::hard_link(&secret, path).unwrap());
    chown(&secret, Some(0), Some(0)).unwrap();
    assert!(called(&host).contains(unnamed), "a link of root's file");

    // The commands that read names, with a link to the device.
    replaced(&|path| symlink(&device.path, path).unwrap());
    let capture = host.path("capture.jsonl");
    let recording = host.path("recording");
    for arguments in [
        &["where"][..],
        &["check", "--for", "5s"],
        &["capture", "--for", "1s", "-o", capture.to_str().unwrap()],
    ] {
        host.run(arguments);
        device.assert_unopened(&arguments.join(" "));
    }
    let to = recording.to_str().unwrap();
    let mut recorder = host.command(&["record", "--to", to]);
    let recorder = Sleeper(recorder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until("al's name", || {
        fs::read_to_string(recording.join("names.jsonl")).is_ok_and(|names| names.contains("al"))
    });
    drop(recorder);
    device.assert_unopened("record");
}

/// Has the kernel say that it has no `openat2(2)`, as systemd does for a service with `RestrictSUIDSGID=`.
#[allow(unsafe_code)]
fn without_openat2(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    let line =
        |code: u32, k, jt, jf| libc::sock_filter { code: u16::try_from(code).unwrap(), jt, jf, k };
    let number = u32::try_from(libc::SYS_openat2).unwrap();
    let errno = u32::try_from(libc::ENOSYS).unwrap();
    let lines = [
        // The number of the system call is what a filter's data begin with.
        line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        line(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number, 0, 1),
        line(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno, 0, 0),
        line(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let install = move || {
        let mut lines = lines;
        let program = libc::sock_fprog { len: 4, filter: lines.as_mut_ptr() };
        // SAFETY: `prctl` reads the program and its four lines, which live until it returns, and writes nothing.
        let is_installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
                    == 0
        };
        is_installed.then_some(()).ok_or_else(std::io::Error::last_os_error)
    };
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    unsafe { command.pre_exec(install) };
}

#[test]
fn a_users_container_has_its_name_where_a_service_has_no_openat2() {
    if !can_make_a_host() {
        return;
    }
    let mut host = Host::make(4719);
    let group = host.of_al(ID);
    let _sleeper = host.group(&group);
    host.mine(&format!("{STORAGE}/containers.json"), |path| {
        fs::write(path, list("own")).unwrap();
    });
    let mut command = host.command(&["where", "--by", "container"]);
    without_openat2(&mut command);
    let text = folded(&in_time(command, "where --by container"));
    assert!(text.contains("own (docker abcdefabcdef) of user al"), "{text}");
}

#[test]
fn a_file_system_of_a_user_that_never_answers_stops_nothing() {
    if !can_make_a_host() {
        return;
    }
    let mut host = Host::make(4712);
    let group = host.of_al(ID);
    let _sleeper = host.group(&group);
    let silent = host.mine("home/silent", |path| fs::create_dir(path).unwrap());
    let fuse = match SilentFuse::mount(&silent, host.al) {
        Ok(fuse) => fuse,
        Err(why) => return skip(&why),
    };
    let process = Sleeper::with_file(&silent.join("file"));
    let pid = process.pid();
    // In this order: a process with a file there does not end while nobody answers.
    let flag = host.path("flag");
    let locked = Sleeper::with_held_lock(&silent.join("file"), &flag);
    let locked_pid = locked.pid();
    let used = (fuse, process, Sleeper::with_root(&silent), locked);
    let fuse = &used.0;
    host.mine("home/tree/a/b", |path| fs::create_dir(path).unwrap());
    symlink(&silent, host.path("home/tree/a/link")).unwrap();
    pipe(&host.path("home/tree/pipe"));
    let device = Device::make(host.path("home/tree/device"));
    fuse.be_silent();
    fs::write(flag, "").unwrap();
    until("the lock", || {
        let mut cat = Command::new("timeout");
        let cat = cat.args(["-s", "KILL", "1", "cat", &format!("/proc/{locked_pid}/smaps_rollup")]);
        !cat.output().unwrap().status.success()
    });
    let by_lock = fuse.unanswered();

    let capture = host.path("capture.jsonl");
    // The home's state lies there, by a link, and then by a mount over the home itself.
    let storage = host.mine("home/.local", |path| symlink(&silent, path).unwrap());
    let tree = host.path("home/tree");
    let home = host.path("home");
    for arguments in [
        &["where", "--by", "container"][..],
        &["where"],
        &["where", "--files"],
        &["where", "--files-in", tree.to_str().unwrap()],
        &["where", "--files-in", home.to_str().unwrap()],
        &["where", "--by", "process"],
        &["capture", "--for", "1s", "-o", capture.to_str().unwrap()],
        &["explain", &pid],
        &["check", "--for", "5s"],
    ] {
        host.answers(arguments);
    }
    device.assert_unopened("where --files-in");
    assert_eq!(fuse.unanswered(), by_lock, "no request reached the file system");

    fs::remove_file(storage).unwrap();
    drop(used);
    let over = match SilentFuse::mount(&home, host.al) {
        Ok(fuse) => fuse,
        Err(why) => return skip(&why),
    };
    over.be_silent();
    host.run(&["where", "--by", "container"]);
    assert_eq!(over.unanswered(), [0; 0]);
}

#[test]
fn processes_that_never_end_exec_or_a_write_stop_nothing() {
    if !can_make_a_host() {
        return;
    }
    let host = Host::make(4720);
    let silent = host.mine("home/silent", |path| fs::create_dir(path).unwrap());
    let fuse = match SilentFuse::mount(&silent, host.al) {
        Ok(fuse) => fuse,
        Err(why) => return skip(&why),
    };
    let (file, flag) = (silent.join("file"), host.path("flag"));
    // One of al's, which is read beside them, by a name that no process of another test has.
    let mut other = Command::new("setpriv");
    let reuid = format!("--reuid={}", host.al);
    let program = host.path("lib/dozer");
    fs::copy("/bin/sleep", &program).unwrap();
    other.args([&reuid, "--clear-groups", program.to_str().unwrap(), "600"]);
    let _other = Sleeper(other.spawn().unwrap());
    let endless = |_| Sleeper::with_endless_exec(host.al, &file, &flag);
    let writer = Sleeper::with_held_pipe(&file, &flag);
    // In this order: the processes do not end while nobody answers.
    let used = (fuse, [0; 6].map(endless), writer);
    let recording = host.path("recording");
    let to = recording.to_str().unwrap();
    let options = ["record", "--processes", "1s", "--to", to];
    let mut recorder = Sleeper(host.command_without_bpf(&options).spawn().unwrap());
    let samples = |of: &Path| {
        let taken = &status(of)["recorder"]["samples"]["taken"];
        taken.as_u64().unwrap_or_default()
    };
    until("the first sample", || samples(&recording) > 0);
    used.0.be_silent();
    fs::write(flag, "").unwrap();
    // FLUSH of each process, and READ of the writer.
    until("all processes to wait", || used.0.unanswered().len() >= 7);
    let waiting = samples(&recording);

    let capture = host.path("capture.jsonl");
    for arguments in [
        &["where"][..],
        &["where", "--files"],
        &["where", "--deep"],
        &["capture", "--for", "1s", "-o", capture.to_str().unwrap()],
        &["explain", "dozer"],
        &["check", "--for", "5s"],
    ] {
        host.answers(arguments);
    }
    let by_proc = in_time(host.command_without_bpf(&["check", "--for", "1s"]), "check");
    let text = folded(&by_proc);
    assert!(text.contains("left out: 6 processes, without an answer"), "{text}");
    let refused = host.run(&["explain", &used.1[0].pid()]);
    assert!(stderr(&refused).contains("could not be read within"), "{refused:?}");
    until("those that do not answer", || {
        status(&recording)["recorder"]["seen"]["processes_left_out"] == 6
    });
    until("samples beside them", || samples(&recording) >= waiting + 3);
    let terminated = Command::new("sh").args(["-c", "kill \"$0\"", &recorder.pid()]).status();
    assert!(terminated.unwrap().success());
    until("the recorder's end", || recorder.0.try_wait().unwrap().is_some());
    // One that starts beside them, and compares BPF with `/proc` first.
    let late = host.path("late");
    let late_to = late.to_str().unwrap();
    let recorder = host.command(&["record", "--to", late_to]).spawn();
    let _recorder = Sleeper(recorder.unwrap());
    until("its first sample", || samples(&late) > 0);
    drop(used);
}

#[test]
fn a_directory_that_is_swapped_all_the_time_leads_nowhere() {
    if !can_make_a_host() {
        return;
    }
    let mut host = Host::make(4713);
    let group = host.of_al(ID);
    let _sleeper = host.group(&group);
    let device = Device::make(host.path("watchdog"));
    fs::create_dir_all(host.path("trap/share/containers/storage/overlay-containers")).unwrap();
    let trap = host.path("trap/share/containers/storage/overlay-containers/containers.json");
    symlink(&device.path, trap).unwrap();
    host.mine(&format!("{STORAGE}/containers.json"), |path| {
        fs::write(path, list("own")).unwrap();
    });
    let (place, away, trap) = (host.path("home/.local"), host.path("home/away"), host.path("trap"));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                fs::rename(&place, &away).unwrap();
                symlink(&trap, &place).unwrap();
                fs::remove_file(&place).unwrap();
                fs::rename(&away, &place).unwrap();
            }
        });
        for _ in 0..12 {
            let text = folded(&host.run(&["where", "--by", "container"]));
            assert!(text.contains("docker abcdefabcdef"), "{text}");
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    device.assert_unopened("a swapped directory");
}

#[test]
fn a_user_gives_no_cgroup_of_the_host_a_name_and_gets_none_of_root() {
    if !can_make_a_host() {
        return;
    }
    let mut host = Host::make(4714);
    let id = ID.replace('a', "9");
    host.docker_names(&id, "ledger");
    let state = format!("{STORAGE}/containers.json");
    host.mine(&state, |path| {
        fs::write(path, format!(r#"[{{"id":"{id}","names":["evil"]}}]"#)).unwrap();
    });
    let root_group = format!("memtide-test-docker-{}/docker/{id}", std::process::id());
    let _root = host.group(&root_group);
    let recording = host.path("recording");
    let to = recording.to_str().unwrap();
    let mut recorder = host.command(&["record", "--to", to]);
    let recorder = Sleeper(recorder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let names = || fs::read_to_string(recording.join("names.jsonl")).unwrap_or_default();
    until("the name of root's container", || names().contains("ledger"));
    // Later, in a search of its own.
    let group = host.of_al(&id);
    let _forged = host.group(&group);
    until("the name of al's cgroup", || names().contains("evil"));
    let forged = format!("/sys/fs/cgroup/memory/{}", host.of_al(&id));
    fs::write(format!("{forged}/memory.limit_in_bytes"), "6M").unwrap();
    let script = "echo $$ > \"$0/cgroup.procs\" && x=0123456789abcdef && while :; do x=$x$x; done";
    let killed = Command::new("sh").args(["-c", script, &forged]).status().unwrap();
    assert!(!killed.success());
    // All cgroups are read every ten seconds.
    std::thread::sleep(Duration::from_secs(13));
    let terminated = Command::new("sh").args(["-c", "kill \"$0\"", &recorder.pid()]).status();
    assert!(terminated.unwrap().success());
    let mut recorder = recorder;
    recorder.0.wait().unwrap();
    let short = &id[..12];
    let of_root = format!("ledger (docker {short})");
    let of_user = format!("evil (docker {short}) of user al");
    for arguments in [&["where", to, "--by", "container"][..], &["where", "--by", "container"]] {
        let table = host.run(arguments);
        let text = folded(&table);
        assert_eq!(text.matches("ledger").count(), 1, "{text}");
        assert!(text.contains(&of_root) && text.contains(&of_user), "{text}");
    }
    for arguments in [&["check", to][..], &["events", to]] {
        let text = folded(&host.run(arguments));
        assert!(!text.contains("ledger"), "{text}");
    }
    // Both have the id; the host's is meant.
    let text = folded(&host.run(&["check", to, "--container", &id]));
    let (of_container, _of_host) = text.split_once("The whole host").unwrap();
    assert!(of_container.contains(&of_root), "{text}");
    assert!(!of_container.contains("evil"), "{text}");
}

#[test]
fn devices_in_a_recording_and_in_a_bundle_are_not_opened() {
    if !can_make_a_host() {
        return;
    }
    let host = Host::make(4715);
    let recording = host.path("recording");
    let to = recording.to_str().unwrap();
    let mut recorder = host.command(&["record", "--every", "100ms", "--to", to]);
    let mut recorder =
        Sleeper(recorder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until("a status", || recording.join("status.json").exists());
    std::thread::sleep(Duration::from_secs(2));
    let _ = Command::new("sh").args(["-c", "kill \"$0\"", &recorder.pid()]).status();
    recorder.0.wait().unwrap();
    let files =
        ["names.jsonl", "status.json", "facts.jsonl", "lock", "head", "segments", "events.jsonl"];
    for name in files {
        let place = recording.join(name);
        let aside = host.path("aside");
        let _ = fs::rename(&place, &aside);
        let device = Device::make(place.clone());
        for arguments in [&["check", to][..], &["where", to], &["record", "--status", "--to", to]] {
            host.run(arguments);
            device.assert_unopened(&format!("{arguments:?} with {name}"));
        }
        fs::remove_file(&place).unwrap();
        let _ = fs::rename(&aside, &place);
    }
    let bundle = host.path("bundle");
    fs::create_dir_all(bundle.join("proc")).unwrap();
    fs::write(bundle.join("proc/vmstat"), "nr_free_pages 1\n").unwrap();
    let devices = ["proc/meminfo", "free", "dmesg"].map(|name| Device::make(bundle.join(name)));
    host.run(&["check", bundle.to_str().unwrap()]);
    for device in &devices {
        device.assert_unopened("check of a directory");
        // Named by the operator, or reached by a link that somebody made.
        host.run(&["check", device.path.to_str().unwrap()]);
        device.assert_unopened("check of a device");
    }
}
