//! `where` names the processes that have kernel memory: each test takes some of a kind and looks for it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{asked_until, json, memtide};

/// A process that takes kernel memory of a kind: a function of `take.py`.
struct Taker {
    process: Child,
    taken: u64,
}

impl Taker {
    /// `None` if this machine or user may not.
    fn takes(kind: &str) -> Option<Self> {
        let mut process = Command::new("python3")
            .arg("-c")
            .arg(include_str!("where_kernel_objects/take.py"))
            .arg(kind)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.as_mut().unwrap());
        output.read_line(&mut line).unwrap();
        let taken = line.trim().parse();
        let mut taker = Self { process, taken: 0 };
        taker.taken = taken.ok()?;
        Some(taker)
    }

    /// `(812) `, as it stands behind the name.
    fn in_parentheses(&self) -> String {
        format!("({})", self.process.id())
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The child of a node.
fn child<'a>(node: &'a Value, label: &str) -> Option<&'a Value> {
    let mut children = node["children"].as_array()?.iter();
    children.find(|child| {
        child["label"]
            .as_str()
            .is_some_and(|found| found.contains(label))
    })
}

/// `64.2 MiB` at the start of a text, in bytes.
fn size(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()?.get(..3)? {
        "KiB" => 1_u64 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    Some((number * unit as f64) as u64)
}

/// What `where` names of a taker, in the branch of the tree at these labels or in the sentence that begins so.
fn named(report: &Value, taker: &Taker, place: &Place) -> Option<u64> {
    let this = taker.in_parentheses();
    match place {
        Place::Branch(labels) => {
            let branch = labels
                .iter()
                .try_fold(&report["tree"], |node, label| child(node, label))?;
            child(branch, &this)?["bytes"].as_u64()
        }
        Place::Uncounted(label) => {
            let unaccounted = child(&report["tree"], "unaccounted")?;
            let note = child(unaccounted, label)?["note"].as_str()?;
            size(note.split_once(&this)?.1)
        }
        Place::Sentence(start) => {
            let mut texts = report["explanations"]
                .as_array()?
                .iter()
                .filter_map(Value::as_str);
            let text = texts.find(|text| text.starts_with(start))?;
            size(text.split_once(&this)?.1)
        }
    }
}

/// Where the answer names an owner.
enum Place {
    Branch(&'static [&'static str]),
    /// A child of unaccounted memory.
    Uncounted(&'static str),
    Sentence(&'static str),
}

#[test]
#[allow(clippy::print_stdout)] // a table, and what was skipped
fn each_kind_of_kernel_memory_names_its_process_and_size() {
    use Place::{Branch, Sentence, Uncounted};
    let kinds = [
        ("page_tables", Branch(&["kernel", "page tables"]), 1.05),
        ("kernel_stacks", Branch(&["kernel", "kernel stacks"]), 1.05),
        ("pipes", Uncounted("data in pipes"), 1.05),
        ("io_rings", Uncounted("rings of io_uring"), 1.05),
        ("packet_rings", Uncounted("rings of packet sockets"), 1.05),
        ("locked", Sentence("Mlocked"), 1.05),
        // A buffer has more than the bytes that were sent, up to its parts of a page.
        ("unix_sockets", Sentence("Buffers of sockets"), 1.5),
        ("tcp_sockets", Sentence("Buffers of sockets"), 1.5),
    ];
    println!("{:16} {:>12} {:>12}", "kind", "taken", "named");
    for (kind, place, most) in kinds {
        let Some(taker) = Taker::takes(kind) else {
            println!("{kind:16} skipped: this machine or this user may not take it");
            continue;
        };
        let ask = || json(&memtide(&["where", "--format", "json"]));
        #[allow(clippy::cast_precision_loss)] // a ratio
        let ratio = |report: &Value| {
            let named = named(report, &taker, &place)?;
            println!("{kind:16} {:>12} {named:>12}", taker.taken);
            Some(named as f64 / taker.taken as f64)
        };
        let is_near = |ratio: f64| (0.95..=most).contains(&ratio);
        let report = asked_until(ask, |report| ratio(report).is_some_and(is_near));
        let ratio = ratio(&report).unwrap_or_else(|| panic!("{kind}: {report:#}"));
        assert!(is_near(ratio), "{kind}: {ratio}");
    }
}

#[test]
#[allow(clippy::print_stdout)] // why it was skipped
fn removed_cgroups_that_hold_memory_are_counted() {
    let count = || {
        let report = json(&memtide(&["where", "--format", "json"]));
        let mut texts = report["explanations"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str);
        let text = texts.find(|text| text.contains("removed cgroups are still in the kernel"));
        text.map_or(0, |text| {
            text.split_once(' ')
                .unwrap()
                .0
                .replace(',', "")
                .parse()
                .unwrap()
        })
    };
    let Some(taker) = Taker::takes("removed_cgroups") else {
        println!("skipped: no memory cgroup (v1) can be made; run as root");
        return;
    };
    let (taken, found): (u64, u64) = (taker.taken, count());
    assert!(found >= taken, "{found} of {taken}");
}
