//! Hostile texts: logs, tables, output of tools, sysstat.

use std::io::Write;
use std::path::PathBuf;

use super::Hostile;
use super::captures::report;
use super::making::{Making, repeat};

const FREE: &[u8] = b"              total        used        free      shared  buff/cache   available\nMem:        4000000     1000000     1000000       1000     2000000     3000000\nSwap:             0           0           0\n\n";

pub(crate) const ALL: &[Hostile] = &[
    ("text: 16 MiB of line ends", |m| {
        m.written("t.txt", |out| repeat(out, b"\n", m.count(16 << 20)))
    }),
    ("text: 16 MiB on one line", |m| {
        m.written("t.txt", |out| repeat(out, b"MemTotal: ", m.count(1_600_000)))
    }),
    ("text: a million outputs of free", |m| {
        m.written("t.txt", |out| repeat(out, FREE, m.count(64_000)))
    }),
    ("text: a million rows of ps", |m| {
        m.written("t.txt", |out| {
            out.write_all(b"$ ps aux\nUSER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\n")
                .unwrap();
            (0..m.count(280_000))
                .for_each(|n| writeln!(out, "root {n} 0.0 0.1 9 {n} ? S 10:00 0:00 p{n}").unwrap());
        })
    }),
    ("text: a million rows of top", |m| {
        m.written("t.txt", |out| {
        out.write_all(b"top - 10:00:00 up 1 day\nMiB Mem :   3900.0 total,   1000.0 free,   1000.0 used,   1900.0 buff/cache\n\n    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n").unwrap();
        (0..m.count(250_000)).for_each(|n| writeln!(out, "{n:7} root      20   0    1000    {n}      0 S   0.0   0.1   0:00.00 p{n}").unwrap());
    })
    }),
    ("text: a million rows of vmstat", |m| {
        m.written("t.txt", |out| {
            out.write_all(b"$ vmstat 1\n r b swpd free buff cache si so\n").unwrap();
            repeat(out, b" 1 0 0 349408 123456 654321 0 0\n", m.count(500_000));
        })
    }),
    ("text: a million rows of slabtop", |m| {
        m.written("t.txt", |out| {
            out.write_all(b"  OBJS ACTIVE  USE OBJ SIZE  SLABS OBJ/SLAB CACHE SIZE NAME\n")
                .unwrap();
            (0..m.count(300_000)).for_each(|n| {
                writeln!(out, "  1000   900  90%    0.19K     50       21      200K c{n}").unwrap()
            });
        })
    }),
    ("text: a table of a million columns", |m| {
        m.written("t.csv", |out| {
            for row in 0..3 {
                out.write_all(b"time").unwrap();
                (0..m.count(700_000)).for_each(|n| {
                    if row == 0 {
                        write!(out, ",m{n}").unwrap()
                    } else {
                        out.write_all(b",1").unwrap()
                    }
                });
                out.write_all(b"\n").unwrap();
            }
        })
    }),
    ("text: a table of a million rows", |m| {
        m.written("t.csv", |out| {
            out.write_all(b"date,MemFree,pswpin\n").unwrap();
            (0..m.count(900_000)).for_each(|n| writeln!(out, "{n},{n},{n}").unwrap());
        })
    }),
    ("text: a process table of ten million rows", |m| {
        m.packed("p.csv.zst", |out| {
            out.write_all(b"ts,rss,live,free\n").unwrap();
            (0..m.count(10_000_000))
                .for_each(|n| writeln!(out, "{n},{},{n},7", 4096 * (n % 9999)).unwrap());
        })
    }),
    ("text: metrics of a million series", |m| {
        m.written("t.prom", |out| {
            (0..m.count(300_000))
                .for_each(|n| writeln!(out, "node_memory_MemFree_bytes{{i=\"{n}\"}} {n}").unwrap());
        })
    }),
    ("text: 100,000 kernel reports", |m| {
        m.packed("kern.log.zst", |out| {
            (0..m.count(100_000)).for_each(|n| out.write_all(report(n).as_bytes()).unwrap());
        })
    }),
    ("text: a kernel report of a million tasks", |m| {
        m.packed("kern.log.zst", |out| {
        let whole = report(1);
        let (head, end) = whole.split_at(whole.rfind("[  101.000000] Out of").unwrap());
        out.write_all(head.as_bytes()).unwrap();
        (0..m.count(1_000_000)).for_each(|n| writeln!(out, "[  101.000000] [ {n:6}]     0 {n:6}     4096     1024    45056        0             0 t{n}").unwrap());
        out.write_all(end.as_bytes()).unwrap();
    })
    }),
    ("text: a million kills", |m| {
        m.packed("kern.log.zst", |out| {
            (0..m.count(1_000_000)).for_each(|n| {
                writeln!(
                    out,
                    "Nov 27 10:00:00 web kernel: Out of memory: Killed process {n} (p{n}) \
                     total-vm:16384kB, anon-rss:4096kB, file-rss:0kB"
                )
                .unwrap()
            });
        })
    }),
    ("text: a million messages of a killer", |m| {
        m.written("t.log", |out| {
            (0..m.count(120_000)).for_each(|n| {
                writeln!(
                    out,
                    "Nov 27 10:00:00 web systemd-oomd[1]: Killed /system.slice/s{n}.service due to \
                     memory pressure"
                )
                .unwrap()
            });
        })
    }),
    ("text: signatures of reports and nothing else", |m| {
        m.packed("kern.log.zst", |out| {
            repeat(out, b"invoked oom-killer\nOut of memory\n", m.count(20_000_000))
        })
    }),
    ("text: JSON records in records", |m| {
        m.packed("j.json.zst", |out| {
            repeat(out, b"{\"MESSAGE\":", m.count(1_000_000));
            out.write_all(b"\"x invoked oom-killer: gfp_mask=0x0, order=0\"\n").unwrap();
        })
    }),
    ("text: a million JSON records", |m| {
        m.packed("j.json.zst", |out| {
            (0..m.count(1_000_000)).for_each(|n| {
                writeln!(
                    out,
                    "{{\"__REALTIME_TIMESTAMP\":\"{n}000000\",\"MESSAGE\":\"Out of memory: Killed \
                     process {n} (p) total-vm:4kB, anon-rss:4kB, file-rss:0kB\"}}"
                )
                .unwrap()
            });
        })
    }),
    ("text: mail that is quoted without end", |m| {
        m.written("m.eml", |out| {
            out.write_all(b"Content-Transfer-Encoding: quoted-printable\n\n").unwrap();
            repeat(out, b"=3D=\n", m.count(3_000_000));
        })
    }),
    ("text: UTF-16 cut in half a character", |m| {
        m.written("t.txt", |out| {
            out.write_all(&[0xff, 0xfe]).unwrap();
            repeat(out, b"M\0e\0m\0\xd8\xd8", m.count(1_000_000));
            out.write_all(b"M").unwrap();
        })
    }),
    ("sar: text of a million rows", |m| {
        m.packed("sar.txt.zst", |out| {
        out.write_all(b"Linux 6.1.0 (web)  11/27/26  _x86_64_  (4 CPU)\n\n10:00:00 AM kbmemfree kbavail kbmemused %memused kbbuffers kbcached kbcommit %commit kbactive kbinact kbdirty\n").unwrap();
        (0..m.count(1_000_000)).for_each(|n| writeln!(out, "{:02}:{:02}:{:02} AM 1 1 1 1.0 1 1 1 \
                                                            1.0 1 1 1", n / 3600 % 12, n / 60 % 60, n % 60).unwrap());
    })
    }),
    ("sar: JSON of a million statistics", |m| {
        sadf(m, "", |out| {
            (0..m.count(1_000_000)).for_each(|n| write!(out, "{}{{\"timestamp\":{{\"date\":\"2026-11-27\",\"time\":\"{:02}:{:02}:{:02}\"}},\"memory\":{{\"memfree\":{n},\"memused\":1}}}}", if n > 0 { "," } else { "" }, n / 3600 % 24, n / 60 % 60, n % 60).unwrap());
        })
    }),
    ("sar: JSON of a million disks", |m| {
        sadf(m, "", |out| {
            out.write_all(
                b"{\"timestamp\":{\"date\":\"2026-11-27\",\"time\":\"10:00:00\"},\"disk\":[",
            )
            .unwrap();
            (0..m.count(1_000_000)).for_each(|n| {
                write!(
                    out,
                    "{}{{\"disk-device\":\"d{n}\",\"tps\":1.0}}",
                    if n > 0 { "," } else { "" }
                )
                .unwrap()
            });
            out.write_all(b"]}").unwrap();
        })
    }),
    ("sar: JSON of a statistic of a million fields", |m| {
        sadf(m, "", |out| {
            out.write_all(b"{\"timestamp\":{\"date\":\"2026-11-27\",\"time\":\"10:00:00\"},\"memory\":{\"memfree\":1").unwrap();
            (0..m.count(2_000_000)).for_each(|n| write!(out, ",\"m{n}\":{n}").unwrap());
            out.write_all(b"}}").unwrap();
        })
    }),
    ("sar: JSON of arrays in arrays", |m| {
        sadf(m, "", |out| repeat(out, b"[", m.count(20_000_000)))
    }),
    ("sar: JSON with a host of 1 GiB", |m| sadf(m, "x", |out| repeat(out, b"x", m.count(1 << 30)))),
    ("sar: XML of a million statistics", |m| {
        m.packed("sar.xml.zst", |out| {
        out.write_all(b"<?xml version=\"1.0\"?>\n<sysstat><host nodename=\"web\"><statistics>\n").unwrap();
        (0..m.count(1_000_000)).for_each(|n| writeln!(out, "<timestamp date=\"2026-11-27\" time=\"{:02}:{:02}:{:02}\"><memory><memfree>{n}</memfree></memory></timestamp>", n / 3600 % 24, n / 60 % 60, n % 60).unwrap());
    })
    }),
    ("sar: XML of elements in elements", |m| {
        m.packed("sar.xml.zst", |out| {
            out.write_all(b"<?xml version=\"1.0\"?>\n<sysstat>").unwrap();
            repeat(out, b"<a>", m.count(20_000_000));
        })
    }),
    ("sar: XML with a million attributes", |m| {
        m.packed("sar.xml.zst", |out| {
            out.write_all(b"<?xml version=\"1.0\"?>\n<sysstat><host").unwrap();
            repeat(out, b" a=\"1\"", m.count(3_000_000));
            out.write_all(b">").unwrap();
        })
    }),
    ("sar: lines of sadf, a million", |m| {
        m.packed("sadf.csv.zst", |out| {
            out.write_all(b"# hostname;interval;timestamp;kbmemfree;kbavail;kbmemused;%memused\n")
                .unwrap();
            (0..m.count(2_000_000))
                .for_each(|n| writeln!(out, "web;1;{};1;1;1;1.0", 1_700_000_000 + n).unwrap());
        })
    }),
    ("sar: a binary file of nothing", |m| {
        m.written("sa27", |out| {
            out.write_all(&[0x96, 0xd5, 0x75, 0x21]).unwrap();
            repeat(out, b"\0", m.count(64 << 20));
        })
    }),
];

/// A document of sadf with these statistics.
fn sadf(making: &Making, host: &str, fill: impl FnOnce(&mut dyn Write)) -> PathBuf {
    making.packed("sar.json.zst", |out| {
        let is_name = !host.is_empty();
        out.write_all(b"{\"sysstat\": {\"hosts\": [{\"nodename\": \"").unwrap();
        if is_name {
            fill(out);
            out.write_all(b"\", \"statistics\": []}]}}\n").unwrap();
        } else {
            out.write_all(b"web\", \"number-of-cpus\": 4, \"statistics\": [").unwrap();
            fill(out);
            out.write_all(b"]}]}}\n").unwrap();
        }
    })
}
