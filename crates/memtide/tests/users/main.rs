//! What an ordinary user of a host with systemd tries against root's memtide: a virtual machine with cgroup v2, the recorder as
//! its unit, and a user `al` whom systemd gave a slice of his own.
//!
//! `make test-users` runs it (some ten minutes under emulation); without `--ignored` it does nothing. The same program has three
//! roles: outside it starts the machine (`scripts/systemd-vm.sh`), inside it is root, who asks memtide and prints what was seen, and
//! the parts of al that no shell can play.
//!
//! `MEMTIDE_USERS_ONLY=homes` runs one chapter, `MEMTIDE_USERS_PROGRAM=FILE` tries another memtide.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::string_slice, clippy::exit)] // helpers fail as the test does, and print what was seen

mod al;
mod asked;
mod floods;
mod homes;
mod host;
mod inside;
mod names;
mod outside;
mod score;
mod units;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["inside"] => inside::play(),
        ["al", part, ref rest @ ..] => al::play(part, rest),
        _ if words.contains(&"--ignored") || words.contains(&"--include-ignored") => {
            outside::play();
        }
        _ => println!("ignored: it boots a machine with systemd: make test-users"),
    }
}
