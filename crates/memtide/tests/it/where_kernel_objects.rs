//! `where` names the owners of shared and kernel memory: each test takes some of a kind and searches the answer for it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{asked_until, json, memtide};

/// A process that takes memory of a kind: a function of `take.py`.
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
    children.find(|child| child["label"].as_str().is_some_and(|found| found.contains(label)))
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
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some((number * unit as f64) as u64)
}

/// What `where` names of a taker, in the branch of the tree at these labels or in the sentence that begins so.
fn named(report: &Value, taker: &Taker, place: &Place) -> Option<u64> {
    let this = taker.in_parentheses();
    match place {
        Place::Branch(labels) => {
            let branch =
                labels.iter().try_fold(&report["tree"], |node, label| child(node, label))?;
            child(branch, &this)?["bytes"].as_u64()
        }
        Place::Node(labels) => {
            let node = labels.iter().try_fold(&report["tree"], |node, label| child(node, label))?;
            node["bytes"].as_u64()
        }
        Place::Uncounted(label) => {
            let unaccounted = child(&report["tree"], "unaccounted")?;
            let note = child(unaccounted, label)?["note"].as_str()?;
            size(note.split_once(&this)?.1)
        }
        Place::Sentence(start) => {
            let mut texts = report["explanations"].as_array()?.iter().filter_map(Value::as_str);
            let text = texts.find(|text| text.starts_with(start))?;
            size(text.split_once(&this)?.1)
        }
    }
}

/// Where the answer names an owner.
enum Place {
    /// The node itself.
    Node(&'static [&'static str]),
    /// The process's child of this node.
    Branch(&'static [&'static str]),
    /// A child of unaccounted memory.
    Uncounted(&'static str),
    Sentence(&'static str),
}

#[test]
#[allow(clippy::print_stdout)] // a table, and what was skipped
fn each_kind_of_memory_is_named_with_its_owner_and_size() {
    use Place::{Branch, Node, Sentence, Uncounted};
    let kinds = [
        ("tmpfs", Node(&["shared memory", "memtide-take-"]), 1.05),
        ("memfd", Node(&["shared memory", "memfd:take-"]), 1.05),
        ("system_v", Node(&["shared memory", "System V segment"]), 1.05),
        ("huge_2m", Node(&["huge pages"]), 1.05),
        ("huge_1g", Node(&["huge pages"]), 1.05),
        ("bpf_map", Sentence("BPF maps and programs"), 1.05),
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
            Some((named, named as f64 / taker.taken as f64))
        };
        let is_near = |(_, ratio): (u64, f64)| (0.95..=most).contains(&ratio);
        let report = asked_until(ask, |report| ratio(report).is_some_and(is_near));
        let named = ratio(&report).unwrap_or_else(|| panic!("{kind}: {report:#}"));
        println!("{kind:16} {:>12} {:>12}", taker.taken, named.0);
        assert!(is_near(named), "{kind}: {named:?}");
    }
}

#[test]
#[allow(clippy::print_stdout)] // why it was skipped
fn removed_cgroups_that_hold_memory_are_counted() {
    let count = || {
        let report = json(&memtide(&["where", "--format", "json"]));
        let mut texts = report["explanations"].as_array().unwrap().iter().filter_map(Value::as_str);
        let text = texts.find(|text| text.contains("removed cgroups are still in the kernel"));
        text.map_or(0, |text| text.split_once(' ').unwrap().0.replace(',', "").parse().unwrap())
    };
    let Some(taker) = Taker::takes("removed_cgroups") else {
        println!("skipped: no memory cgroup (v1) can be made; run as root");
        return;
    };
    let (taken, found): (u64, u64) = (taker.taken, count());
    assert!(found >= taken, "{found} of {taken}");
}
