//! Whose name a container has: al takes the id of root's container, before it, beside it, and in cgroups that he makes by hand.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::asked::{OwnerRow, lines_with, memtide, rows, rows_once, shown, until_kept};
use crate::host::{
    OF_AL, RECORDING, Started, al, container_of_root, group_of_al, id, of_al, run, until,
};
use crate::score::Score;

/// All cgroups are read every ten seconds, or more rarely where that costs much, and names are searched for every ten.
const KEPT_MAX: Duration = Duration::from_secs(300);
const POD: &str = "b312a30a-d345-42c8-a659-32a04d5fd529";
/// Where rootless Podman keeps its list.
pub(crate) const LISTS: &str = "/home/al/.local/share/containers/storage/overlay-containers";

/// Al's list of containers, each id with its name.
pub(crate) fn al_lists(containers: &[(&str, &str)]) {
    let entries =
        containers.iter().map(|(id, name)| format!(r#"{{"id":"{id}","names":["{name}"]}}"#));
    let list = entries.collect::<Vec<_>>().join(",");
    al(&format!("mkdir -p {LISTS}; printf %s '[{list}]' > {LISTS}/containers.json"));
}

/// A container of al's, as his systemd makes it.
fn scope_of_al(id: &str, limit: &str, size: &str) -> Started {
    // One that was killed keeps its name taken.
    run(&mut of_al(&["systemctl", "--user", "reset-failed"]));
    let unit = format!("--unit=docker-{id}.scope");
    let limit = format!("MemoryMax={limit}");
    let words = [
        "systemd-run",
        "--user",
        "--scope",
        "--quiet",
        &unit,
        "-p",
        &limit,
        "-p",
        "MemorySwapMax=0",
        "memtide",
        "lab",
        "hog",
        size,
    ];
    Started::by(&mut of_al(&words))
}

fn end_scope_of_al(id: &str) {
    run(&mut of_al(&["systemctl", "--user", "stop", &format!("docker-{id}.scope")]));
}

/// The rows of which the name has a word.
fn called<'a>(rows: &'a [OwnerRow], word: &str) -> Vec<&'a OwnerRow> {
    rows.iter().filter(|row| row.name.contains(word)).collect()
}

pub(crate) fn tried(score: &mut Score) {
    let (a, b) = (id('a'), id('b'));
    before_root(score, &b);
    let payments = container_of_root(&a, "payments", "30M");
    let took = until_kept("payments", KEPT_MAX);
    score.check(
        "",
        "the name of root's container is recorded",
        took.is_some(),
        &format!("after {took:?}"),
    );
    a_kill(score, &a);
    memory(score, &a);
    by_hand(score, &a);
    pods(score);
    as_text(score);
    drop(payments);
}

/// Row 2: al has the id, and a name for it, before root's container is started (again).
fn before_root(score: &mut Score, id: &str) {
    al_lists(&[(id, "early")]);
    let of_al = scope_of_al(id, "64M", "8M");
    let took = until_kept("early", KEPT_MAX);
    score.note(&format!("al's own name is kept after {took:?}"));
    let of_root = container_of_root(id, "invoices", "12M");
    let took = until_kept("invoices", KEPT_MAX);
    score.check(
        "row 2",
        "root's container is named, though al had its id before",
        took.is_some(),
        &format!("kept: {took:?}"),
    );
    for source in [None, Some(RECORDING)] {
        two_rows(score, "row 2", "invoices", source);
    }
    end_scope_of_al(id);
    drop((of_al, of_root));
}

/// Of two cgroups with the id of root's container, root's has the name, and al's says whose it is.
fn two_rows(score: &mut Score, row: &str, name: &str, source: Option<&str>) {
    let place = source.map_or("live", |_| "recorded");
    let is_read = |rows: &[OwnerRow]| {
        !called(rows, name).is_empty() && !called(rows, "of user al").is_empty()
    };
    let rows = rows_once("container", source, is_read);
    let named = called(&rows, name);
    let is_one = named.len() == 1 && !named[0].name.contains("of user");
    let with_al = called(&rows, "of user al");
    let must = format!("one row has root's name, and al's says `of user al`, {place}");
    score.check(row, &must, is_one && !with_al.is_empty(), &shown(&rows));
}

/// Row 3: a process of al is killed at the limit of a cgroup with the id of root's container.
fn a_kill(score: &mut Score, id: &str) {
    al_lists(&[]);
    let killed = scope_of_al(id, "6M", "20M");
    let has_kill = || {
        let events = memtide(&["events", RECORDING, "--json"]);
        events.out.contains("oom") && events.out.contains("hog")
    };
    let came = until(Duration::from_secs(90), has_kill);
    score.check("row 3", "the kill is recorded", came.is_some(), &format!("after {came:?}"));
    for words in [&["events", RECORDING][..], &["check", RECORDING]] {
        let answer = memtide(words);
        // Its start is an event, too.
        let wrong = lines_with(&answer, &["payments", "imit"])
            + &lines_with(&answer, &["payments", "kill"]);
        let must = format!("`memtide {}` names no kill after root's container", words.join(" "));
        let seen = if wrong.is_empty() { answer.short() } else { wrong.clone() };
        score.check("row 3", &must, wrong.is_empty() && answer.code.is_some(), &seen);
    }
    let events = lines_with(&memtide(&["events", RECORDING]), &["hog"]);
    score.check("row 3", "the kill is said to be of user al", events.contains("user al"), &events);
    let report = memtide(&["check", RECORDING, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap_or_default();
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let titles: Vec<String> = findings.iter().map(|finding| finding["title"].to_string()).collect();
    let titles = titles.join("; ");
    let is_right = !titles.contains("payments") && titles.contains("user al");
    score.check(
        "row 3",
        "no finding is of root's container, and one is of user al",
        is_right,
        &titles,
    );
    drop(killed);
}

/// Rows 2 and 3: al's cgroup with that id lives on, with memory and a name for it.
fn memory(score: &mut Score, id: &str) {
    al_lists(&[(id, "evil")]);
    let of_al = scope_of_al(id, "64M", "20M");
    let group = format!("{OF_AL}/app.slice/docker-{id}.scope");
    let came = until(Duration::from_secs(30), || Path::new(&group).exists());
    assert!(came.is_some(), "{group}");
    for source in [None, Some(RECORDING)] {
        two_rows(score, "row 3", "payments", source);
        let rows = rows("container", source);
        let of_root = rows.iter().find(|row| row.name.contains("payments"));
        let is_own = of_root.is_some_and(|row| (25 << 20..45 << 20).contains(&row.bytes));
        score.check("row 3", "root's row has root's 30 MiB only", is_own, &shown(&rows));
        let evil =
            rows.iter().filter(|row| row.name.contains("evil") && !row.name.contains("of user al"));
        score.check("row 2", "no row has al's name without al", evil.count() == 0, &shown(&rows));
    }
    let answer = memtide(&["check", RECORDING, "--container", "payments"]);
    // A finding of the host may name al's container, as al's.
    let evil: Vec<&str> = answer
        .out
        .lines()
        .filter(|line| line.contains("evil") && !line.contains("of user al"))
        .collect();
    score.check(
        "row 2",
        "`check --container payments` is of root's",
        answer.out.contains("payments") && evil.is_empty(),
        &format!("{} {}", evil.concat(), answer.short()),
    );
    end_scope_of_al(id);
    drop(of_al);
}

/// Cgroups below al's slice that look like those of the host's systemd, and an own container of the same name.
fn by_hand(score: &mut Score, id: &str) {
    let own = crate::host::id('c');
    al_lists(&[(id, "evil"), (&own, "payments")]);
    let groups = [
        format!("system.slice/docker-{id}.scope"),
        format!("docker/{id}"),
        format!("machine.slice/libpod-{id}.scope/container"),
        format!("system.slice:docker:{id}"),
        format!("user-0.slice/docker-{id}.scope"),
        format!("docker-{own}.scope"),
    ];
    let made = groups.each_ref().map(|group| group_of_al(group));
    for source in [None, Some(RECORDING)] {
        let is_read = |rows: &[OwnerRow]| called(rows, "payments").len() > 1;
        let rows = rows_once("container", source, is_read);
        let named = called(&rows, "payments");
        let without_al = named.iter().filter(|row| !row.name.contains("of user al")).count();
        let must = "al's cgroups that look like root's, and his own container of that name, are \
                    said to be his";
        score.check("row 3", must, without_al == 1, &shown(&rows));
    }
    let answer = memtide(&["check", "--for", "1s", "--container", "payments"]);
    let is_root = answer.code.is_some_and(|code| code < 3) && answer.out.contains("aaaaaaaaaaaa");
    score.check(
        "row 8",
        "`check --container payments` finds root's beside al's of that name",
        is_root,
        &answer.short(),
    );
    drop(made);
}

/// The same with the UID of root's pod.
fn pods(score: &mut Score) {
    fs::create_dir_all(format!("/var/log/pods/shop_cart-0_{POD}/app")).unwrap();
    let slice = format!("kubepods-burstable-pod{}.slice", POD.replace('-', "_"));
    let part = format!("--slice={slice}");
    let words = ["--scope", "--quiet", "--unit=in-pod.scope", &part, "memtide", "lab", "hog", "8M"];
    let of_root = Started::by(std::process::Command::new("systemd-run").args(words));
    let part = [
        "systemd-run",
        "--user",
        "--scope",
        "--quiet",
        "--unit=in-pod.scope",
        &part,
        "memtide",
        "lab",
        "hog",
        "9M",
    ];
    let his = Started::by(&mut of_al(&part));
    let took = until_kept("cart-0", KEPT_MAX);
    score.note(&format!("the pod's name is kept after {took:?}"));
    for source in [None, Some(RECORDING)] {
        let rows = rows_once("pod", source, |rows| rows.len() > 1);
        let named = called(&rows, "cart-0");
        score.check("row 3", "one row has the name of root's pod", named.len() == 1, &shown(&rows));
    }
    run(&mut of_al(&["systemctl", "--user", "stop", "in-pod.scope"]));
    drop((of_root, his));
}

/// A name that would move the cursor of root's terminal.
fn as_text(score: &mut Score) {
    let id = id('d');
    al_lists(&[(&id, r"\u001b[2J\u202eowned\u0007\n")]);
    let of_al = scope_of_al(&id, "64M", "8M");
    rows_once("container", None, |rows| !called(rows, "owned").is_empty());
    let answer = memtide(&["where", "--by", "container"]);
    let is_plain =
        answer.out.contains("owned") && !answer.out.contains(['\u{1b}', '\u{202e}', '\u{7}']);
    score.check("", "a name of al's moves no cursor", is_plain, &answer.short());
    end_scope_of_al(&id);
    drop(of_al);
}
