//! Hostile captures: lines of JSON with the texts of kernel files.

use std::io::Write;
use std::path::PathBuf;

use super::Hostile;
use super::making::{Making, repeat};

pub(crate) const ALL: &[Hostile] = &[
    ("capture: a million processes, 20 samples", |m| entities(m, 20, 1_000_000, process)),
    ("capture: a million processes, 200 samples", |m| entities(m, 200, 1_000_000, process)),
    ("capture: a million cgroups, 20 samples", |m| entities(m, 20, 1_000_000, cgroup)),
    ("capture: the same 40,000 processes, 50 samples", |m| {
        entities(m, 50, 40_000 * 50, |n| process(n % 40_000))
    }),
    ("capture: a million disks", |m| {
        one_file(m, 2, "/proc/diskstats", 500_000, |n| {
            format!("8 {n} sd{n} 1 0 8 1 1 0 8 1 0 1 1\\n")
        })
    }),
    ("capture: a million slab caches", |m| {
        one_file(m, 2, "/proc/slabinfo", 500_000, |n| {
            format!("s{n} 1 1 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\\n")
        })
    }),
    ("capture: a million swap areas", |m| {
        one_file(m, 2, "/proc/swaps", 500_000, |n| format!("/s{n} file 1000 10 -2\\n"))
    }),
    ("capture: a million zones", |m| {
        one_file(m, 2, "/proc/zoneinfo", 500_000, |n| {
            format!("Node {n}, zone Normal\\n  pages free 1\\n")
        })
    }),
    ("capture: a million fields that nobody knows", |m| {
        one_file(m, 2, "/proc/meminfo", 1_000_000, |n| format!("Strange{n}: 1 kB\\n"))
    }),
    ("capture: labels of 1 MiB", |m| {
        entities(m, 30, 300, |n| {
            let name = "n".repeat(1 << 20);
            format!(",\"/proc/{n}/status\":\"Name:\\t{name}{n}\\nRssAnon:\\t10 kB\\n\"")
        })
    }),
    ("capture: names of 1 MiB in stat", |m| {
        entities(m, 30, 300, |n| stat(n, &"n".repeat(1 << 20)))
    }),
    ("capture: paths of 4,000 bytes", |m| {
        entities(m, 50, 200_000, |n| {
            let path = "p".repeat(3_900);
            format!(",\"/sys/fs/cgroup/{path}{n}/memory.current\":\"4096\\n\"")
        })
    }),
    ("capture: services of 1 MiB", |m| {
        entities(m, 30, 300, |n| {
            let service = "s".repeat(1 << 20);
            format!(
                "{},\"/proc/{n}/cgroup\":\"0::/system.slice/{service}{n}.service\\n\"",
                process(n)
            )
        })
    }),
    ("capture: a million samples", |m| capture(m, 1_000_000, |t, out| host(out, t))),
    ("capture: 100,000 kernel reports", |m| {
        capture(m, 100_000, |t, out| {
            host(out, t);
            write!(out, ",\"/dev/kmsg\":\"{}\"", report(t).replace('\n', "\\n")).unwrap();
        })
    }),
    ("capture: a report with 100,000 tasks", |m| {
        capture(m, 20, |t, out| {
            host(out, t);
            write!(out, ",\"/dev/kmsg\":\"{}", report(t).replace('\n', "\\n")).unwrap();
            (0..m.count(100_000)).for_each(|n| {
            write!(out, "[  100.000000] [ {n:6}]     0 {n:6}     4096     1024    45056        0             0 task{n}\\n").unwrap();
        });
            out.write_all(b"\"").unwrap();
        })
    }),
    ("capture: a line of tiny paths", |m| {
        capture(m, 3, |t, out| {
            host(out, t);
            (0..m.count(2_500_000)).for_each(|n| write!(out, ",\"{n:x}\":\"\"").unwrap());
        })
    }),
    ("capture: a line of tiny names", |m| {
        m.written("names.jsonl", |out| {
            let name = b"{\"kind\":\"user\",\"id\":\"\",\"name\":\"\"}";
            out.write_all(b"{\"t\":0,\"files\":{},\"names\":[").unwrap();
            out.write_all(name).unwrap();
            for _ in 0..m.count(800_000) {
                out.write_all(b",").unwrap();
                out.write_all(name).unwrap();
            }
            out.write_all(b"]}\n").unwrap();
        })
    }),
    ("capture: a line of one path again and again", |m| {
        capture(m, 3, |t, out| {
            host(out, t);
            repeat(out, b",\"/proc/meminfo\":\"\"", m.count(1_500_000));
        })
    }),
    ("capture: /proc/version of 10 MB that changes", |m| {
        capture(m, 40, |t, out| {
            host(out, t);
            write!(out, ",\"/proc/version\":\"Linux {t} ").unwrap();
            repeat(out, b"v", m.count(10_000_000));
            out.write_all(b"\"").unwrap();
        })
    }),
    ("capture: 50 tunables that change 100,000 times", |m| {
        capture(m, 100_000, |t, out| {
            host(out, t);
            for name in [
                "swappiness",
                "dirty_ratio",
                "min_free_kbytes",
                "overcommit_memory",
                "watermark_scale_factor",
            ] {
                write!(out, ",\"/proc/sys/vm/{name}\":\"{t}\"").unwrap();
            }
        })
    }),
    ("capture: mounts of 10 MB that change", |m| {
        capture(m, 30, |t, out| {
            host(out, t);
            out.write_all(b",\"/proc/self/mounts\":\"").unwrap();
            (0..m.count(200_000))
                .for_each(|n| write!(out, "tmpfs /m{t}-{n} tmpfs rw,size={n}k 0 0\\n").unwrap());
            out.write_all(b"\"").unwrap();
        })
    }),
    ("capture: a line of 1 GiB", |m| {
        m.packed("c.jsonl.zst", |out| {
            out.write_all(b"{\"interval_s\":1}\n{\"t\":0,\"files\":{\"/proc/meminfo\":\"").unwrap();
            repeat(out, b"x", m.count(1 << 30));
            out.write_all(b"\"}}\n").unwrap();
        })
    }),
    ("capture: a thousand million empty lines", |m| {
        m.packed("c.jsonl.zst", |out| {
            out.write_all(b"{\"interval_s\":1}\n").unwrap();
            repeat(out, b"\n", m.count(1_000_000_000));
        })
    }),
    ("capture: arrays in arrays", |m| {
        m.packed("c.jsonl.zst", |out| {
            out.write_all(b"{\"t\":0,\"files\":").unwrap();
            repeat(out, b"[", m.count(20_000_000));
            out.write_all(b"\n").unwrap();
        })
    }),
    ("capture: a header of a million rounded signals", |m| {
        m.packed("c.jsonl.zst", |out| {
            out.write_all(b"{\"interval_s\":1,\"rounded\":{\"x\":1").unwrap();
            (0..m.count(1_500_000)).for_each(|n| write!(out, ",\"mem.{n}\":1").unwrap());
            out.write_all(b"}}\n").unwrap();
            sample(out, 0, &|out| host(out, 0));
        })
    }),
    ("capture: a header of a million signs", |m| {
        m.packed("c.jsonl.zst", |out| {
            out.write_all(b"{\"interval_s\":1,\"container\":[\"x\"").unwrap();
            repeat(out, b",\"\"", m.count(10_000_000));
            out.write_all(b"]}\n").unwrap();
            sample(out, 0, &|out| host(out, 0));
        })
    }),
    ("capture: times that are none", |m| {
        times(
            m,
            &[
                "NaN",
                "1e999",
                "-1e999",
                "-1",
                "9223372036854775808",
                "1e10",
                "9999999999",
                "null",
                "\"1\"",
                "1e-320",
            ],
        )
    }),
    ("capture: walls at both ends of time", |m| {
        let line = |(t, wall): (usize, &str)| {
            format!("{{\"t\":{t},\"wall_ns\":{wall},\"awake\":-1e300,\"files\":{{\"/proc/meminfo\":\"MemTotal: 9 kB\\nMemFree: {t} kB\\n\"}}}}\n").replace("\n\"", "\\n\"").replace("kB\nM", "kB\\nM")
        };
        let walls =
            ["0", "9223372036854775807", "-9223372036854775808", "-1", "9223372036854775807", "1"];
        m.file("c.jsonl", walls.into_iter().enumerate().map(line).collect::<String>())
    }),
    ("capture: figures of 2^64 everywhere", |m| {
        capture(m, 60, |t, out| {
            let most = u64::MAX - t;
            write!(out, "\"/proc/meminfo\":\"MemTotal: {most} kB\\nMemFree: {most} kB\\nMemAvailable: {most} kB\\nSwapTotal: {most} kB\\n\",\"/proc/vmstat\":\"pswpin {most}\\npswpout {most}\\nnr_free_pages {most}\\n\",\"/proc/pressure/memory\":\"some avg10=99.99 avg60=inf avg300=nan total={most}\\nfull avg10=1e308 avg60=-1 avg300=0 total={most}\\n\"").unwrap();
        })
    }),
    ("capture: figures up and down by 2^63", |m| {
        capture(m, 60, |t, out| {
            let kib = (t % 2) << 53;
            let pages = (t % 2) << 63;
            write!(out, "\"/proc/meminfo\":\"MemTotal: 18014398509481983 kB\\nMemFree: {kib} kB\\nMemAvailable: {kib} kB\\nAnonPages: {kib} kB\\nSlab: {kib} kB\\n\",\"/proc/vmstat\":\"pswpin {pages}\\npswpout {pages}\\npgmajfault {pages}\\n\"").unwrap();
        })
    }),
    ("capture: maps of a million lines", |m| {
        capture(m, 3, |t, out| {
            host(out, t);
            out.write_all(b",\"/proc/1/smaps_rollup\":\"").unwrap();
            repeat(out, b"Rss: 1 kB\\nPss: 1 kB\\n", m.count(1_000_000));
            out.write_all(b"\"").unwrap();
        })
    }),
    ("capture: cut in the middle of zstd", |m| {
        let whole = capture(m, 2_000, |t, out| host(out, t));
        let bytes = std::fs::read(&whole).unwrap();
        m.file("cut.jsonl.zst", &bytes[..bytes.len() / 2])
    }),
    ("capture: names of control characters", |m| {
        capture(m, 30, |t, out| {
            host(out, t);
            out.write_all(stat(t, "\\u001b[2J\\u0000\\u202e</script>\\ud83d\\ude00").as_bytes())
                .unwrap();
        })
    }),
];

/// A capture of so many samples.
fn capture(making: &Making, samples: u64, fill: impl Fn(u64, &mut dyn Write)) -> PathBuf {
    // Few samples stay few: what each has is made smaller.
    let samples = if samples > 1_000 { making.count(samples) } else { samples };
    making.packed("c.jsonl.zst", |out| {
        out.write_all(b"{\"interval_s\":1,\"page_size\":4096}\n").unwrap();
        for t in 0..samples {
            sample(out, t, &|out| fill(t, out));
        }
    })
}

fn sample(out: &mut dyn Write, t: u64, fill: &dyn Fn(&mut dyn Write)) {
    write!(out, "{{\"t\":{t},\"files\":{{").unwrap();
    fill(out);
    out.write_all(b"}}\n").unwrap();
}

fn host(out: &mut dyn Write, t: u64) {
    write!(out, "\"/proc/meminfo\":\"MemTotal: 4000000 kB\\nMemFree: {} kB\\nMemAvailable: 3000000 kB\\n\",\"/proc/vmstat\":\"pswpin {t}\\n\"", 1_000_000 + t % 1000).unwrap();
}

/// So many entities in all, each in one of the samples.
fn entities(making: &Making, samples: u64, count: u64, file: impl Fn(u64) -> String) -> PathBuf {
    let each = making.count(count).div_ceil(samples);
    capture(making, samples, |t, out| {
        host(out, t);
        (t * each..(t + 1) * each).for_each(|n| out.write_all(file(n).as_bytes()).unwrap());
    })
}

/// Samples of a single file with so many lines.
fn one_file(
    making: &Making,
    samples: u64,
    path: &str,
    lines: u64,
    line: impl Fn(u64) -> String,
) -> PathBuf {
    capture(making, samples, |_, out| {
        write!(out, "\"{path}\":\"").unwrap();
        (0..making.count(lines)).for_each(|n| out.write_all(line(n).as_bytes()).unwrap());
        out.write_all(b"\"").unwrap();
    })
}

fn process(n: u64) -> String {
    let kib = n % 900;
    format!(
        "{},\"/proc/{n}/status\":\"Name:\\tp{n}\\nRssAnon:\\t{kib} kB\\nRssFile:\\t8 kB\\nVmSwap:\\t0 kB\\n\"",
        stat(n, "p")
    )
}

fn stat(n: u64, name: &str) -> String {
    format!(
        ",\"/proc/{n}/stat\":\"{n} ({name}) S 1 1 1 0 -1 0 1 0 9 0 1 1 0 0 20 0 1 0 {n} 1048576 20 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\\n\""
    )
}

fn cgroup(n: u64) -> String {
    format!(
        ",\"/sys/fs/cgroup/g{n}/memory.current\":\"{}\\n\",\"/sys/fs/cgroup/g{n}/memory.max\":\"max\\n\"",
        n * 4096
    )
}

/// Samples at these times.
fn times(making: &Making, times: &[&str]) -> PathBuf {
    let line =
        |t: &&str| format!("{{\"t\":{t},\"files\":{{\"/proc/meminfo\":\"MemTotal: 9 kB\\n\"}}}}\n");
    making.file("c.jsonl", times.iter().map(line).collect::<String>())
}

/// A kernel report of its own.
pub(crate) fn report(n: u64) -> String {
    let seconds = 100 + n;
    let lines = [
        format!(
            "p{n} invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, \
             oom_score_adj=0"
        ),
        "Mem-Info:".to_owned(),
        format!("active_anon:{n} inactive_anon:100 isolated_anon:0"),
        " free:3000 free_pcp:0 free_cma:0".to_owned(),
        "Tasks state (memory values in pages):".to_owned(),
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
            .to_owned(),
        format!("[ {n:6}]     0 {n:6}     4096     1024    45056        0             0 p{n}"),
        format!(
            "Out of memory: Killed process {n} (p{n}) total-vm:16384kB, anon-rss:4096kB, \
             file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:44kB oom_score_adj:0"
        ),
    ];
    lines.iter().map(|line| format!("[{seconds:5}.000000] {line}\n")).collect()
}
