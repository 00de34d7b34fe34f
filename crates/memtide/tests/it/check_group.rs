//! `check`, `events`, `headroom` and `report` about one cgroup: of captures, and of one that the test makes.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cases;
use crate::record::{Group, is_root, skip};
use crate::support::{folded, json, memtide, stderr, stdout};

/// What `check` says of a cgroup of a capture.
fn check(case: &str, group: &str, more: &[&str]) -> std::process::Output {
    memtide(&[&["check", &cases::path(case), "--cgroup", group], more].concat())
}

#[test]
fn the_verdict_is_about_the_group_and_its_own_limit() {
    for (case, group, code, words) in [
        (
            "cgroup-high-throttle--6.12-1g-200m",
            "/batch",
            1..=2,
            &["memory.high of /batch", "cgroup-high-throttle", "throttled"][..],
        ),
        (
            "cgroup-cache-starved--7.2-1g-256m",
            "/search",
            1..=2,
            &["memory.max of /search: 256 MiB", "cgroup-cache-starved", "working set"],
        ),
        (
            "oom-cgroup--6.18-640m-64m",
            "/pod",
            2..=2,
            &["memory.max of /pod: 64 MiB", "oom-cgroup", "kill"],
        ),
        ("cgroup-oom--96m", "/app", 2..=2, &["memory.max of /app: 96 MiB", "oom-cgroup"]),
    ] {
        let answer = check(case, group, &[]);
        let text = folded(&answer);
        assert!(code.contains(&answer.status.code().unwrap()), "{case}: {text}");
        for word in words {
            assert!(text.contains(word), "{case}: {word} is not in {}", stdout(&answer));
        }
        let wide = stdout(&answer);
        let wide = wide.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{case}");
    }
}

#[test]
fn a_calm_group_beside_a_sick_one_is_fine_and_the_host_comes_second() {
    for (case, calm, rule) in [
        ("cgroup-oom--96m", "/quiet", "oom-cgroup"),
        ("cgroup-high-throttle--6.12-1g-200m", "/web", "cgroup-high-throttle"),
        ("oom-cgroup--6.18-640m-64m", "/web", "oom-cgroup"),
    ] {
        let answer = json(&check(case, calm, &["--format", "json"]));
        assert_eq!(answer["verdict"], "ok", "{case}");
        assert_eq!(answer["findings"].as_array().unwrap().len(), 0, "{case}");
        let around = &answer["group"]["around"];
        assert_ne!(around["verdict"], "ok", "{case}");
        assert_eq!(around["findings"][0]["id"], rule, "{case}");
    }
}

#[test]
fn sizes_of_a_group_add_up_in_json() {
    for (case, group) in [
        ("cgroup-cache-starved--6.1-768m-120m", "/web"),
        ("cgroup-cache-starved--6.12-80m", "/web"),
        ("cgroup-cache-starved--7.2-1g-256m", "/search"),
        ("cgroup-high-throttle--5.10-512m-48m", "/job"),
        ("cgroup-high-throttle--80m", "/app"),
        ("oom-cgroup--5.10-768m-150m", "/db"),
    ] {
        let answer = json(&check(case, group, &["--format", "json"]));
        let section = &answer["group"];
        let parts = section["parts"].as_array().unwrap().iter();
        let sum: u64 = parts.map(|part| part["bytes"].as_u64().unwrap()).sum();
        let current = section["current_bytes"].as_u64().unwrap();
        // Counters of one sample drift by a few pages for each CPU.
        assert!(
            sum == 0 || sum.abs_diff(current) <= current / 10 + (1 << 20),
            "{case}: {section:#}"
        );
        assert!(section["working_set_bytes"].as_u64() <= Some(current), "{case}");
    }
}

#[test]
fn a_wrong_name_is_an_error_with_the_nearest_ones() {
    let answer = check("cgroup-high-throttle--6.12-1g-200m", "/btach", &[]);
    assert_eq!(answer.status.code(), Some(3));
    let error = stderr(&answer);
    assert!(error.contains("no cgroup is called `/btach`; the nearest are /batch"), "{error}");
    let names = format!(
        "help: `memtide where {} --by cgroup` shows the names",
        cases::path("cgroup-high-throttle--6.12-1g-200m")
    );
    assert!(error.contains(&names), "{error}");
    let none = memtide(&["check", &cases::path("healthy--idle"), "--unit", "nginx"]);
    assert!(stderr(&none).contains("has no cgroups"), "{}", stderr(&none));
    let both = memtide(&["check", "--unit", "a", "--pod", "b"]);
    assert_eq!(both.status.code(), Some(3));
}

/// A kill near that time is the answer, not a cgroup that re-reads files from the first to the last second.
#[test]
fn what_happened_near_a_time_comes_before_what_was_there_all_along() {
    let case = cases::path("oom-cgroup--6.18-24g-beside-chronic");
    let first = |more: &[&str]| {
        let answer = json(&memtide(&[&["check", &case, "--format", "json"], more].concat()));
        answer["findings"][0]["id"].as_str().unwrap().to_owned()
    };
    assert_eq!(first(&["--at", "+80s"]), "oom-cgroup");
    assert_eq!(first(&["--at", "+100s"]), "oom-cgroup");
    // Nothing else happened then; and at the end of the source it goes on.
    assert_eq!(first(&["--at", "+10s"]), "cgroup-cache-starved");
    assert_eq!(first(&[]), "cgroup-cache-starved");
}

/// A real capture, in which the second half has no files of a cgroup.
#[test]
fn a_cgroup_of_another_time_is_named_with_that_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.jsonl");
    let lines = cases::lines_of(&cases::played("room-without-kills"));
    let cut = lines.iter().enumerate().map(|(at, line)| match at {
        0..=12 => line.clone(),
        _ => line.replace("/sys/fs/cgroup/memory/near/", "/gone/"),
    });
    std::fs::write(&path, cut.collect::<Vec<_>>().join("\n")).unwrap();
    let path = path.to_str().unwrap();
    for command in ["check", "events", "headroom"] {
        let answer = memtide(&[command, path, "--cgroup", "/near", "--since", "+15s"]);
        let error = stderr(&answer);
        assert!(error.contains("cgroup /near existed from 20"), "{command}: {error}");
        assert!(!error.contains("no cgroup is called"), "{error}");
        let (_, asked) = error.split_once("help: ask with `--at '").unwrap();
        let (at, _) = asked.split_once('\'').unwrap();
        let answer = memtide(&["check", path, "--cgroup", "/near", "--at", at]);
        assert_eq!(answer.status.code(), Some(0), "{}", stderr(&answer));
    }
    // One that never was is unknown, and one of the range is answered.
    let none = memtide(&["check", path, "--cgroup", "/never", "--since", "+15s"]);
    assert!(stderr(&none).contains("no cgroup is called `/never`"), "{}", stderr(&none));
    let there = memtide(&["check", path, "--cgroup", "/stream", "--since", "+15s"]);
    assert_eq!(there.status.code(), Some(0), "{}", stderr(&there));
    // A pipe is read once, and then is not empty: the name is what is wrong.
    let piped = Command::new("sh")
        .args(["-c", "cat \"$1\" | \"$0\" check /dev/stdin --cgroup /near --since +15s"])
        .args([env!("CARGO_BIN_EXE_memtide"), path])
        .output()
        .unwrap();
    assert_eq!(piped.status.code(), Some(3));
    assert!(stderr(&piped).contains("no cgroup is called `/near`"), "{}", stderr(&piped));
}

#[test]
fn events_headroom_and_the_page_take_the_same_names() {
    let case = cases::path("cgroup-oom--96m");
    let all = stdout(&memtide(&["events", &case]));
    let app = stdout(&memtide(&["events", &case, "--cgroup", "/app"]));
    let quiet = stdout(&memtide(&["events", &case, "--cgroup", "/quiet"]));
    assert!(app.contains("/app hit its limit of 96 MiB"), "{app}");
    assert!(app.lines().count() <= all.lines().count());
    assert!(!quiet.contains("/app"), "{quiet}");
    let case = cases::path("cgroup-high-throttle--6.12-1g-200m");
    let room = folded(&memtide(&["headroom", &case, "--cgroup", "/batch", "--add", "10M"]));
    assert!(!room.contains("around memtide"), "{room}");
    let page = memtide(&["report", &case, "--cgroup", "/batch", "-o", "-"]);
    assert!(stdout(&page).contains("memory.high of /batch"));
}

#[test]
fn a_kill_in_a_v1_group_is_found_live_with_the_words_of_v1() {
    if !is_root() {
        return skip("making a cgroup needs root: run the tests as root");
    }
    let group = match Group::make("check-group", "33554432") {
        Ok(group) => group,
        Err(why) => return skip(&why),
    };
    let path = format!("/{}", group.name());
    let mut watching = Command::new(env!("CARGO_BIN_EXE_memtide"))
        .args(["check", "--no-history", "--for", "5s", "--every", "500ms", "--cgroup", &path])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // However long it takes to start, some of the kills are between its samples.
    while watching.try_wait().unwrap().is_none() {
        group.have_one_killed();
        std::thread::sleep(Duration::from_millis(200));
    }
    let answer = watching.wait_with_output().unwrap();
    let text = folded(&answer);
    assert_eq!(answer.status.code(), Some(2), "{text} {}", stderr(&answer));
    assert!(text.contains(&format!("memory.limit_in_bytes of {path}: 32 MiB")), "{text}");
    assert!(text.contains("oom-cgroup"), "{text}");
    assert!(!text.contains("memory.max"), "{text}");
    assert!(text.contains("The whole host, with all its cgroups"), "{text}");
}

#[test]
fn within_a_container_the_answer_is_about_the_container() {
    if !is_root() {
        return skip("making a cgroup needs root: run the tests as root");
    }
    let group = match Group::make("container", "67108864") {
        Ok(group) => group,
        Err(why) => return skip(&why),
    };
    // As a container runtime does: own namespaces, and a hierarchy with the cgroup as its root.
    let script = "echo $$ > \"$0/cgroup.procs\" && exec unshare --cgroup --mount --pid --fork sh -c '
        umount -R /sys/fs/cgroup; mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory &&
        mount -t cgroup -o memory none /sys/fs/cgroup/memory && mount -t proc none /proc && exec \"$@\"' sh \"$@\"";
    let check = |more: &[&str]| {
        Command::new("sh")
            .args(["-c", script])
            .arg(group.path())
            .arg(env!("CARGO_BIN_EXE_memtide"))
            .args(["check", "--no-history", "--for", "2s"])
            .args(more)
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let own = check(&[]);
    let text = folded(&own);
    if text.is_empty() && stderr(&own).contains("unshare") {
        return skip("this user may not make namespaces");
    }
    assert!(text.contains("/, this container: "), "{text} {}", stderr(&own));
    assert!(text.contains("memory.limit_in_bytes of this container: 64 MiB"), "{text}");
    assert!(text.contains("The whole host (memtide check --host)"), "{text}");
    let named = folded(&check(&["--cgroup", "/"]));
    assert!(named.contains("/, this container: "), "{named}");
    let host = folded(&check(&["--host"]));
    assert!(!host.contains("memory.limit_in_bytes of this container: 64 MiB"), "{host}");
}
