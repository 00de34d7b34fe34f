//! What is no file, and files that unpack to far more than they are.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::Hostile;
use super::making::{self, Making, repeat};

const MEMINFO: &[u8] = b"MemTotal: 4000000 kB\nMemFree: 1000000 kB\nMemAvailable: 3000000 kB\n";

pub(crate) const ALL: &[Hostile] = &[
    ("file: empty", |m| m.file("empty", "")),
    ("file: a pipe without a writer", |m| {
        let path = m.path("pipe");
        making::pipe(&path);
        path
    }),
    ("file: /dev/zero", |_| PathBuf::from("/dev/zero")),
    ("file: /dev/full", |_| PathBuf::from("/dev/full")),
    ("file: /dev/null", |_| PathBuf::from("/dev/null")),
    ("file: /dev/urandom", |_| PathBuf::from("/dev/urandom")),
    ("file: the kernel's log, which never ends", |_| PathBuf::from("/dev/kmsg")),
    ("file: a socket", |m| {
        let path = m.path("socket");
        std::os::unix::net::UnixListener::bind(&path).unwrap();
        path
    }),
    ("file: links in a circle", |m| {
        symlink(m.path("b"), m.path("a")).unwrap();
        symlink(m.path("a"), m.path("b")).unwrap();
        m.path("a")
    }),
    ("file: a link to nothing", |m| {
        symlink(m.path("nothing"), m.path("link")).unwrap();
        m.path("link")
    }),
    ("file: a link to /dev/zero", |m| {
        symlink("/dev/zero", m.path("link")).unwrap();
        m.path("link")
    }),
    ("file: its own memory", |_| PathBuf::from("/proc/self/mem")),
    ("file: a terabyte of holes", |m| m.sparse("sparse", b"", 1 << 40)),
    ("file: a terabyte of holes below a text", |m| m.sparse("sparse", MEMINFO, 1 << 40)),
    ("file: a terabyte of holes below a capture", |m| {
        m.sparse("sparse", b"{\"interval_s\":1}\n", 1 << 40)
    }),
    ("file: a terabyte of holes below sadf JSON", |m| {
        m.sparse("sparse", b"{\"sysstat\": {\"hosts\": [\n", 1 << 40)
    }),
    ("file: a terabyte of holes below a table", |m| {
        m.sparse("sparse", b"ts,rss,live,free\n1,4096,1,1\n", 1 << 40)
    }),
    ("file: 20 GiB of zeros in gzip", |m| gzip(m, &[0; 1 << 16], 20 << 30)),
    ("file: 20 GiB of text in gzip", |m| gzip(m, &MEMINFO.repeat(1000), 20 << 30)),
    ("file: 20 GiB of log in gzip", |m| {
        gzip(m, &super::captures::report(1).repeat(100).into_bytes(), 20 << 30)
    }),
    ("file: 20 GiB of text in zstd", |m| {
        m.packed("bomb.zst", |out| repeat(out, MEMINFO, m.count(20 << 30) / 64))
    }),
    ("file: 20 GiB of one line in zstd", |m| {
        m.packed("bomb.zst", |out| repeat(out, b"oom-killer ", m.count(20 << 30) / 11))
    }),
    ("file: 2 GiB of text in xz", |m| xz(m, MEMINFO, 2 << 30)),
    ("file: a million empty members of gzip", |m| {
        let empty = GzEncoder::new(Vec::new(), Compression::fast()).finish().unwrap();
        m.written("empty.gz", |out| repeat(out, &empty, m.count(1_000_000)))
    }),
    ("file: a million empty frames of zstd", |m| {
        let empty = zstd::encode_all(&b""[..], 1).unwrap();
        m.written("empty.zst", |out| repeat(out, &empty, m.count(1_000_000)))
    }),
    ("file: gzip in gzip in gzip", |m| {
        let pack = |inner: Vec<u8>| {
            let mut out = GzEncoder::new(Vec::new(), Compression::fast());
            out.write_all(&inner).unwrap();
            out.finish().unwrap()
        };
        m.file("nested.gz", (0..20).fold(MEMINFO.to_vec(), |inner, _| pack(inner)))
    }),
    // A frame header that asks for a window of 2 GiB, and a raw block.
    ("file: zstd with a window of 2 GiB", |m| {
        m.file(
            "window.zst",
            [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x25, 0, 0, b'M', b'e', b'm', b'T'],
        )
    }),
    ("file: xz with a dictionary of 4 GiB", |m| {
        let mut options = lzma_rust2::XzOptions::with_preset(0);
        options.lzma_options.dict_size = 1 << 20;
        let mut out = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        out.write_all(MEMINFO).unwrap();
        let mut bytes = out.finish().unwrap();
        // The properties of the filter stand behind its ID (0x21) and their length (1); 40 is 4 GiB - 1.
        let at = bytes.windows(2).position(|pair| pair == [0x21, 1]).unwrap();
        bytes[at + 2] = 40;
        let header = 12..12 + (usize::from(bytes[12]) + 1) * 4;
        let sum = crc32(&bytes[header.start..header.end - 4]);
        bytes[header.end - 4..header.end].copy_from_slice(&sum.to_le_bytes());
        m.file("dictionary.xz", bytes)
    }),
];

/// CRC-32 (IEEE).
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

/// A text again and again, in members of 1 MiB.
fn gzip(making: &Making, text: &[u8], len: u64) -> PathBuf {
    let times = (1usize << 20).div_ceil(text.len());
    let mut member = GzEncoder::new(Vec::new(), Compression::fast());
    (0..times).for_each(|_| member.write_all(text).unwrap());
    let member = member.finish().unwrap();
    let members = making.count(len) / (text.len() * times) as u64;
    making.written("bomb.gz", |out| repeat(out, &member, members.max(1)))
}

/// A text again and again, in streams of 1 MiB.
fn xz(making: &Making, text: &[u8], len: u64) -> PathBuf {
    let times = (1usize << 20).div_ceil(text.len());
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut stream = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    (0..times).for_each(|_| stream.write_all(text).unwrap());
    let stream = stream.finish().unwrap();
    let streams = making.count(len) / (text.len() * times) as u64;
    making.written("bomb.xz", |out| repeat(out, &stream, streams.max(1)))
}
