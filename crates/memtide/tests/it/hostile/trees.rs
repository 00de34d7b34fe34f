//! Hostile directories and archives.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::Hostile;
use super::captures::report;
use super::making::{self, Making, repeat};

const MEMINFO: &[u8] = b"MemTotal: 4000000 kB\nMemFree: 1000000 kB\nMemAvailable: 3000000 kB\n";

pub(crate) const ALL: &[Hostile] = &[
    ("tree: a directory named like a capture", |m| m.directory("c.jsonl.gz")),
    ("tree: 5,000 directories deep", |m| {
        let top = m.directory("deep");
        let mut at = std::fs::File::open(&top).unwrap();
        for _ in 0..m.count(5_000) {
            rustix::fs::mkdirat(&at, "d", rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY;
            at = rustix::fs::openat(&at, "d", flags, rustix::fs::Mode::empty()).unwrap().into();
        }
        top
    }),
    ("tree: 300,000 files wide", |m| {
        let top = m.directory("wide/proc");
        (0..m.count(300_000))
            .for_each(|n| drop(std::fs::File::create(top.join(n.to_string())).unwrap()));
        m.path("wide")
    }),
    ("tree: 100,000 cgroups", |m| {
        let top = m.directory("wide/sys/fs/cgroup");
        for n in 0..m.count(100_000) {
            let group = top.join(format!("g{n}"));
            std::fs::create_dir(&group).unwrap();
            std::fs::write(group.join("memory.current"), "4096\n").unwrap();
        }
        m.path("wide")
    }),
    ("tree: kernel files of 16 MiB", |m| {
        let of = |path: &str, line: &dyn Fn(u64) -> String| {
            m.written(&format!("b/{path}"), |out| {
                (0..m.count(300_000)).for_each(|n| out.write_all(line(n).as_bytes()).unwrap());
            });
        };
        m.file("b/proc/meminfo", MEMINFO);
        of("proc/slabinfo", &|n| format!("s{n} 1 1 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n"));
        of("proc/diskstats", &|n| format!("8 {n} sd{n} 1 0 8 1 1 0 8 1 0 1 1\n"));
        of("proc/swaps", &|n| format!("/s{n} file 1000 10 -2\n"));
        of("proc/zoneinfo", &|n| format!("Node {n}, zone Normal\n  pages free 1\n"));
        of("proc/buddyinfo", &|n| format!("Node {n}, zone Normal 1 1 1 1 1 1 1 1 1 1 1\n"));
        of("proc/vmallocinfo", &|n| {
            format!("0x{n:x}-0x{:x} 4096 f{n}+0x1/0x2 pages=1 vmalloc\n", n + 1)
        });
        of("proc/allocinfo", &|n| format!("{n}4096 1 net/a{n}.c:{n} [m{n}] func:f{n}\n"));
        of("proc/mounts", &|n| format!("tmpfs /m{n} tmpfs rw,size=1k 0 0\n"));
        of("proc/sysvipc/shm", &|n| format!("{n} {n} 600 4096 1 1 0 0 0 0 0 0 0 0 4096 0\n"));
        m.path("b")
    }),
    ("tree: pipes named like kernel files", |m| {
        ["proc/meminfo", "proc/vmstat", "sos_commands/memory/free"]
            .iter()
            .for_each(|name| making::pipe(&m.path(&format!("b/{name}"))));
        m.file("b/proc/swaps", "Filename Type Size Used Priority\n");
        m.path("b")
    }),
    ("tree: directories named like kernel files", |m| {
        ["proc/meminfo", "proc/vmstat", "date", "var/log/messages"]
            .iter()
            .for_each(|name| drop(m.directory(&format!("b/{name}"))));
        m.path("b")
    }),
    ("tree: names that are no text", |m| {
        let top = m.directory("b/proc");
        for n in 0..200u8 {
            let _ = std::fs::write(
                top.join(std::ffi::OsStr::from_bytes(&[0xff, 0x1b, b'[', n.max(1) | 0x80])),
                MEMINFO,
            );
        }
        m.file("b/proc/meminfo", MEMINFO);
        m.path("b")
    }),
    ("tree: links in circles, and to devices", |m| {
        let top = m.directory("b/proc");
        symlink("..", top.join("up")).unwrap();
        symlink("/dev/zero", top.join("meminfo")).unwrap();
        symlink("/proc/kmsg", top.join("vmstat")).unwrap();
        symlink("self", top.join("self")).unwrap();
        m.path("b")
    }),
    ("tree: a terabyte of holes as /proc/meminfo", |m| {
        m.sparse("b/proc/meminfo", MEMINFO, 1 << 40);
        m.sparse("b/var/log/messages", b"x invoked oom-killer\n", 1 << 40);
        m.path("b")
    }),
    ("tree: 2,000 logs full of reports", |m| {
        let log = (0..200).map(report).collect::<String>();
        (0..m.count(2_000)).for_each(|n| drop(m.file(&format!("b/var/log/kern.log.{n}"), &log)));
        m.path("b")
    }),
    ("tree: 100 outputs of 4 MB", |m| {
        (0..m.count(100)).for_each(|n| {
            drop(m.written(&format!("b/sos_commands/memory/free_{n}"), |out| {
                repeat(out, b"MemTotal: 1 kB\nMemFree: 1 kB\n", 130_000)
            }))
        });
        m.path("b")
    }),
    ("archive: names that lead outside", |m| {
        tar(m, |out| {
            for name in [
                &b"../../etc/passwd"[..],
                b"/etc/shadow",
                b"proc/../../meminfo",
                b"proc/\xff\xfe",
                b"\x1b[2J/proc/meminfo",
                b"proc/meminfo",
            ] {
                entry(out, name, b'0', MEMINFO.len() as u64);
                body(out, MEMINFO);
            }
        })
    }),
    ("archive: a name of 1 GiB", |m| {
        tar(m, |out| {
            entry(out, b"././@LongLink", b'L', m.count(1 << 30));
            repeat(out, &[b'n'; 512], m.count(1 << 30).div_ceil(512));
        })
    }),
    ("archive: a million long names", |m| {
        tar(m, |out| {
            for _ in 0..m.count(1_000_000) {
                entry(out, b"././@LongLink", b'L', 512);
                body(out, &[b'n'; 512]);
            }
        })
    }),
    ("archive: an extended header of 1 GiB", |m| {
        tar(m, |out| {
            entry(out, b"pax", b'x', m.count(1 << 30));
            repeat(out, &[b'1'; 512], m.count(1 << 30).div_ceil(512));
        })
    }),
    ("archive: a million files", |m| {
        tar(m, |out| {
            for n in 0..m.count(1_000_000) {
                entry(out, format!("proc/{n}/status").as_bytes(), b'0', 24);
                body(out, b"Name:\tp\nRssAnon:\t9 kB\n\n\n");
            }
        })
    }),
    ("archive: a file of 2^63 bytes", |m| {
        tar(m, |out| {
            let mut header = header(b"proc/meminfo", b'0', 0);
            header[124..136]
                .copy_from_slice(&[0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
            sum(&mut header);
            out.write_all(&header).unwrap();
            body(out, MEMINFO);
        })
    }),
    ("archive: pipes, devices and links", |m| {
        tar(m, |out| {
            for kind in *b"1234567SVMDKg" {
                entry(out, b"proc/meminfo", kind, 0);
            }
            entry(out, b"proc/meminfo", b'0', MEMINFO.len() as u64);
            body(out, MEMINFO);
        })
    }),
    ("archive: a sparse file of a terabyte", |m| {
        tar(m, |out| {
            let mut header = header(b"proc/meminfo", b'S', 512);
            header[257..265].copy_from_slice(b"ustar  \0");
            header[386..398].copy_from_slice(b"00000000000\0");
            header[398..410].copy_from_slice(b"00000001000\0");
            header[483..495].copy_from_slice(b"77777777777\0");
            sum(&mut header);
            out.write_all(&header).unwrap();
            body(out, MEMINFO);
        })
    }),
    ("archive: 7 GiB of zeros in one file", |m| {
        tar(m, |out| {
            entry(out, b"proc/meminfo", b'0', MEMINFO.len() as u64);
            body(out, MEMINFO);
            entry(out, b"var/log/messages", b'0', m.count(7 << 30));
            repeat(out, &[0; 512], m.count(7 << 30) / 512);
        })
    }),
    ("archive: in an archive", |m| {
        let inner = std::fs::read(tar(m, |out| {
            entry(out, b"proc/meminfo", b'0', MEMINFO.len() as u64);
            body(out, MEMINFO);
        }));
        tar(m, |out| {
            let inner = inner.unwrap();
            entry(out, b"sos_commands/memory/free", b'0', inner.len() as u64);
            body(out, &inner);
        })
    }),
];

fn tar(making: &Making, fill: impl FnOnce(&mut dyn Write)) -> PathBuf {
    making.packed("b.tar.zst", |out| {
        fill(out);
        out.write_all(&[0; 1024]).unwrap();
    })
}

fn header(name: &[u8], kind: u8, size: u64) -> [u8; 512] {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    sum(&mut header);
    header
}

fn sum(header: &mut [u8; 512]) {
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn entry(out: &mut dyn Write, name: &[u8], kind: u8, size: u64) {
    out.write_all(&header(name, kind, size)).unwrap();
}

/// Content, up to a whole number of blocks.
fn body(out: &mut dyn Write, content: &[u8]) {
    out.write_all(content).unwrap();
    let rest = content.len().next_multiple_of(512) - content.len();
    out.write_all(&[0; 512][..rest]).unwrap();
}
