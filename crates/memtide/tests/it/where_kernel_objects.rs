//! `where` names the processes that have kernel memory of other names: this test fills sockets and looks for itself.

use std::io::{ErrorKind, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::support::{json, memtide};

/// Writes until a connection takes no more; nobody reads.
fn fill(connection: &mut TcpStream) -> u64 {
    connection.set_nonblocking(true).unwrap();
    let mut sent = 0;
    loop {
        match connection.write(&[7; 64 << 10]) {
            Ok(bytes) => sent += bytes as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return sent,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_process_of_full_sockets_is_named_with_their_size() {
    const MIB: u64 = 1 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut open = Vec::new();
    let mut sent = 0;
    while sent < 64 * MIB {
        assert!(open.len() < 1_000, "{sent} bytes in 1,000 connections");
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        sent += fill(&mut client);
        open.push((client, server));
    }
    let report = json(&memtide(&["where", "--format", "json"]));
    let texts = report["explanations"].as_array().unwrap();
    let sentence = texts
        .iter()
        .filter_map(|text| text.as_str())
        .find(|text| text.starts_with("Buffers of sockets"))
        .unwrap_or_else(|| panic!("{texts:?}"));
    // `… it-1a2b3c (812) 64.2 MiB, …`
    let behind = format!("({}) ", std::process::id());
    let size = sentence.split_once(&behind).map(|(_, size)| size);
    let mib: f64 = size
        .and_then(|size| size.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{sentence}"));
    // A buffer has more than the bytes that were sent, up to its parts of a page.
    assert!((64.0..96.0).contains(&mib), "{sentence}");
    drop(open);
}
