//! What root opens in al's home: al puts there what blocks, what does something when it is opened, and what is not his.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, inotify, makedev, mknodat};

use crate::asked::{OwnerRow, memtide, rows_once, shown, until_kept};
use crate::host::{AlService, GroupOfRoot, RECORDING, al, group_of_al, id, root, until};
use crate::names::LISTS;
use crate::score::Score;

const DOCKER: &str = "/home/al/.local/share/docker/containers";
/// A device that nobody should open.
const DEVICE: &str = "/dev/watched";
/// A name in a file that only root may read.
const SECRET: &str = "secret-of-root";
/// A container that starts while al's trap is there has its name by then, also on a busy host under emulation.
const NAMED_MAX: Duration = Duration::from_secs(300);

/// Opens of a file, or of files in a directory, as the kernel counts them.
struct Opens {
    events: OwnedFd,
}

impl Opens {
    fn of(path: &str) -> Self {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let events = inotify::init(flags).unwrap();
        let what = inotify::WatchFlags::OPEN | inotify::WatchFlags::ACCESS;
        inotify::add_watch(&events, path, what).unwrap();
        Self { events }
    }

    /// How many there were since the last time.
    fn count(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        let mut count = 0;
        while events.next().is_ok() {
            count += 1;
        }
        count
    }
}

pub(crate) fn tried(score: &mut Score) {
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, DEVICE, FileType::CharacterDevice, mode, makedev(1, 3)).unwrap();
    let device = Opens::of(DEVICE);
    assert!(fs::File::open(DEVICE).is_ok() && device.count() > 0, "opens of the device are seen");
    let b = id('b');
    fs::create_dir_all("/root/trap/storage/overlay-containers").unwrap();
    let list = format!(r#"[{{"id":"{b}","names":["{SECRET}"]}}]"#);
    fs::write("/root/secret.json", &list).unwrap();
    std::os::unix::fs::symlink(DEVICE, "/root/trap/storage/overlay-containers/containers.json")
        .unwrap();
    let of_al = group_of_al(&format!("docker-{b}.scope"));
    let homes = Homes { score, device, b };
    homes.all();
    drop(of_al);
}

/// Homes of users who run no containers are not looked into.
pub(crate) fn untouched(score: &mut Score) {
    let of_bo = LISTS.replace("/al/", "/bo/");
    al(&format!("rm -rf /home/al/.local; mkdir -p {LISTS}; echo '[]' > {LISTS}/containers.json"));
    fs::create_dir_all(&of_bo).unwrap();
    fs::write(format!("{of_bo}/containers.json"), "[]").unwrap();
    let opens = [Opens::of(LISTS), Opens::of(&of_bo)];
    let root_container = GroupOfRoot::make(&id('0'), "first");
    for words in [
        &["where", "--by", "container"][..],
        &["where"],
        &["check", "--for", "1s"],
        &["capture", "--for", "1s", "--force", "-o", "/tmp/capture.jsonl"],
    ] {
        let answer = memtide(words);
        let counts = opens.each_ref().map(Opens::count);
        let must =
            format!("`memtide {}` opens no list of a user without containers", words.join(" "));
        score.check(
            "row 1",
            &must,
            counts == [0, 0],
            &format!("opens of al's and bo's: {counts:?}; {}", answer.short()),
        );
    }
    let took = until_kept("first", NAMED_MAX);
    let counts = opens.each_ref().map(Opens::count);
    let seen = format!("opens {counts:?}, and root's container is named after {took:?}");
    score.check(
        "row 1",
        "the recorder opens none either",
        counts == [0, 0] && took.is_some(),
        &seen,
    );
    drop(root_container);
}

/// Who the recorder is asked about in a trap.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// The commands only.
    Commands,
    /// The recorder, too.
    Recorder,
}

struct Homes<'a> {
    score: &'a mut Score,
    device: Opens,
    b: String,
}

impl Homes<'_> {
    fn all(mut self) {
        let b = self.b.clone();
        let files = [
            format!("{LISTS}/containers.json"),
            format!("{LISTS}/volatile-containers.json"),
            format!("{DOCKER}/{b}/config.v2.json"),
        ];
        let each = |make: &str| {
            let made = files.each_ref().map(|file| format!("{make} {file}; "));
            made.concat()
        };
        self.clear();
        al(&format!("echo '[{{\"id\":\"{b}\",\"names\":[\"own\"]}}]' > {}", files[0]));
        let is_own = |rows: &[OwnerRow]| rows.iter().any(|row| row.name.contains("own"));
        let rows = rows_once("container", None, is_own);
        let is_named = is_own(&rows);
        self.score.check("row 1", "al's own list names his container", is_named, &shown(&rows));

        let traps: [(&str, String, Asked); 8] = [
            ("links to a device", each(&format!("ln -s {DEVICE}")), Asked::Recorder),
            ("pipes", each("mkfifo"), Asked::Recorder),
            ("links to a file of root", each("ln -s /root/secret.json"), Asked::Commands),
            (
                "a link midway to a directory of root",
                "rm -r /home/al/.local/share/containers; ln -s /root/trap \
                 /home/al/.local/share/containers"
                    .to_owned(),
                Asked::Commands,
            ),
            (
                "a link midway through /proc",
                "rm -r /home/al/.local/share/containers; ln -s /proc/1/root/root/trap \
                 /home/al/.local/share/containers"
                    .to_owned(),
                Asked::Commands,
            ),
            ("links to themselves", each("ln -s containers.json"), Asked::Commands),
            (
                "a list of 10 GiB",
                format!("cp {0} {0}.kept 2>/dev/null || true; truncate -s 10G {0}", files[0]),
                Asked::Commands,
            ),
            ("directories instead of files", each("mkdir"), Asked::Commands),
        ];
        for (number, (what, script, asked)) in (1..).zip(traps) {
            self.clear();
            al(&script);
            self.ask(what, number, asked);
        }
        self.clear();
        for words in [
            &["where"][..],
            &["check", "--for", "1s"],
            &["check", "--for", "1s", "--container", "none-of-this"],
            &["capture", "--for", "1s", "--force", "-o", "/tmp/capture.jsonl"],
            &["headroom"],
            &["record", "--status"],
        ] {
            al(&format!("rm -f {0}; ln -s {DEVICE} {0}", files[0]));
            let answer = memtide(words);
            let opens = self.device.count();
            let must = format!("`memtide {}` opens no device by al's link", words.join(" "));
            self.score.check(
                "row 1",
                &must,
                opens == 0 && answer.code.is_some(),
                &format!("{opens} opens; {}", answer.short()),
            );
        }
        self.swapped();
        self.leased(&files[0]);
        self.silent();
    }

    /// Al's home as it was at first.
    fn clear(&self) {
        al(&format!("rm -rf /home/al/.local; mkdir -p {LISTS} {DOCKER}/{}", self.b));
    }

    /// Asks who runs containers, and lets the recorder find a new one of al and of root.
    fn ask(&mut self, what: &str, number: u32, asked: Asked) {
        self.device.count();
        let answer = memtide(&["where", "--by", "container"]);
        let opens = self.device.count();
        let is_kept_out = !answer.out.contains(SECRET);
        let is_ok = answer.code == Some(0) && opens == 0 && is_kept_out;
        let seen = format!("{opens} opens of the device; {}", answer.short());
        self.score.check(
            "row 1",
            &format!("{what}: `where` answers, opens nothing, names nothing"),
            is_ok,
            &seen,
        );
        if asked == Asked::Recorder {
            self.ask_recorder(what, number);
        }
    }

    fn ask_recorder(&mut self, what: &str, number: u32) {
        let new = format!("{number:064x}");
        let of_al = group_of_al(&format!("docker-{}.scope", new.replacen('0', "e", 1)));
        let name = format!("while-{number}");
        let of_root = GroupOfRoot::make(&new.replacen('0', "f", 1), &name);
        let took = until_kept(&name, NAMED_MAX);
        let opens = self.device.count();
        let seen = format!("named after {took:?}, {opens} opens of the device");
        let must = format!("{what}: the recorder goes on to name root's new container");
        self.score.check("row 1", &must, took.is_some() && opens == 0, &seen);
        drop((of_root, of_al));
    }

    /// The directory is a link to root's in every other moment.
    fn swapped(&mut self) {
        self.clear();
        let (here, there) = ("/home/al/.local/share/containers", "/home/al/away");
        al(&format!("rm -f {there}; ln -s /root/trap {there}"));
        let swap = AlService::start("swap", &["swap", here, there]);
        for number in 0..3 {
            self.ask(
                &format!("a directory that is swapped all the time ({number})"),
                32 + number,
                Asked::Commands,
            );
        }
        self.ask("a directory that is swapped all the time", 31, Asked::Recorder);
        drop(swap);
        al(&format!("rm -rf {there} {here}"));
    }

    /// Whoever opens the list waits for al.
    fn leased(&mut self, list: &str) {
        self.clear();
        al(&format!("echo '[]' > {list}"));
        let lease = AlService::start("lease", &["lease", list]);
        let has = until(Duration::from_secs(20), || Path::new("/tmp/al-has-a-lease").exists());
        self.score.note(&format!("al has a lease on his list: {}", has.is_some()));
        let before = memtide(&["where", "--by", "container"]).took;
        let seen = format!("took {:.1} s", before.as_secs_f64());
        self.score.check(
            "row 1",
            "a lease on the list delays no answer (45 s)",
            before < Duration::from_secs(30),
            &seen,
        );
        self.ask_recorder("a lease on the list", 41);
        drop(lease);
    }

    /// File systems of al's that never answer.
    fn silent(&mut self) {
        let point = LISTS;
        let cases = [
            ("a silent FUSE for al alone", point, "rw,nosuid,nodev,fsname=x,subtype=x"),
            (
                "a silent FUSE that root may enter",
                point,
                "rw,nosuid,nodev,fsname=x,subtype=x,allow_other",
            ),
            (
                "a silent FUSE over the whole home",
                "/home/al",
                "rw,nosuid,nodev,nonempty,fsname=x,subtype=x,allow_other",
            ),
        ];
        fs::write("/etc/fuse.conf", "user_allow_other\n").unwrap();
        let _ = root(&["modprobe", "fuse"]);
        for (number, (what, point, options)) in (51..).zip(cases) {
            self.clear();
            // Once his home is silent, al's systemd starts nothing that begins there.
            let ids = format!("{number:064x}");
            let of_al = group_of_al(&format!("docker-{}.scope", ids.replacen('0', "d", 1)));
            let count = format!("/tmp/unanswered-{number}");
            let options = options.replace("nonempty,", "");
            let fuse =
                AlService::start(&format!("fuse-{number}"), &["fuse", point, &options, &count]);
            let is_mounted = || {
                fs::read_to_string("/proc/self/mounts").unwrap().contains(&format!(" {point} fuse"))
            };
            let came = until(Duration::from_secs(20), is_mounted);
            if came.is_none() {
                let log = root(&["journalctl", "--no-pager", "-n", "5", "_UID=1000"]);
                self.score.check("row 1", &format!("{what} is mounted"), false, &log.short());
                continue;
            }
            // Programs of al's ask in their own home.
            let asked = || fs::read_to_string(&count).unwrap_or_default();
            let by_root = || asked().lines().filter(|line| line.starts_with("0 ")).count();
            let before = by_root();
            let answer = memtide(&["where", "--by", "container"]);
            let seen = format!("requests that reached al: {:?}; {}", asked(), answer.short());
            let is_ok = answer.code == Some(0) && by_root() == before;
            self.score.check(
                "row 1",
                &format!("{what}: `where` answers and asks it nothing"),
                is_ok,
                &seen,
            );
            let name = format!("while-{number}");
            let of_root = GroupOfRoot::make(&ids.replacen('0', "f", 1), &name);
            let took = until_kept(&name, NAMED_MAX);
            let must = format!("{what}: the recorder goes on to name root's new container");
            self.score.check(
                "row 1",
                &must,
                took.is_some(),
                &format!("after {took:?}, requests that reached al: {:?}", asked()),
            );
            drop((of_root, fuse, of_al));
            root(&["umount", "-l", point]);
        }
        let recorded = memtide(&["check", RECORDING, "--recent", "1m"]);
        self.score.note(&format!("check of the recording: {}", recorded.short()));
    }
}
