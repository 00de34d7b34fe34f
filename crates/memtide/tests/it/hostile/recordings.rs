//! Hostile recordings: sound ones with files that are replaced, cut or forged, with checksums that fit.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::Hostile;
use super::files::crc32;
use super::making::{self, Making, repeat};
use crate::support::memtide;

pub(crate) const ALL: &[Hostile] = &[
    ("recording: recording.json is a pipe", |m| replaced(m, "recording.json", making::pipe)),
    ("recording: recording.json of 300 MiB", |m| {
        replaced(m, "recording.json", |path| {
            large(path, b"{\"format\":2,\"x\":\"", m.count(300 << 20))
        })
    }),
    ("recording: segment.json is a pipe", |m| replaced(m, "segment.json", making::pipe)),
    ("recording: segment.json is a directory", |m| {
        replaced(m, "segment.json", |path| std::fs::create_dir(path).unwrap())
    }),
    ("recording: segment.json of arrays in arrays", |m| {
        replaced(m, "segment.json", |path| std::fs::write(path, "[".repeat(1 << 19)).unwrap())
    }),
    ("recording: segment.json of samples without number", |m| {
        manifest(m, |text| text.replace("\"samples\":", "\"samples\":1844674407370955161"))
    }),
    ("recording: segment.json at the ends of time", |m| {
        manifest(m, |text| {
            let (before, rest) = text.split_once("\"from\":").unwrap();
            let (_, rest) = rest.split_once(",\"lasts\":").unwrap();
            let (_, rest) = rest.split_once(',').unwrap();
            format!(
                "{before}\"from\":-9223372036854775808,\"until\":9223372036854775807,\"lasts\":18446744073709551615,{rest}"
            )
        })
    }),
    ("recording: about.json of 300 MiB", |m| {
        replaced(m, "about.json", |path| {
            large(path, b"{\"absent\":{\"x\":{\"failed\":\"", m.count(300 << 20))
        })
    }),
    ("recording: about.json of 15 MiB of fields", |m| {
        forged(m, "about.json", |_| {
            let fields: Vec<String> =
                (0..m.count(400_000)).map(|n| format!("[\"/proc/meminfo\",\"f{n}\",1]")).collect();
            format!("{{\"unknown\":[{}]}}", fields.join(",")).into_bytes()
        })
    }),
    ("recording: facts.jsonl of 1 GiB", |m| {
        replaced(m, "facts.jsonl", |path| {
            let line = format!(
                "{{\"wall\":1,\"boot_ns\":1,\"name\":\"vm.swappiness\",\"value\":\"{}\"}}\n",
                "9".repeat(1000)
            );
            let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
            repeat(&mut out, line.as_bytes(), m.count(1_000_000));
            out.flush().unwrap();
        })
    }),
    ("recording: facts.jsonl is /dev/zero", |m| {
        replaced(m, "facts.jsonl", |path| symlink("/dev/zero", path).unwrap())
    }),
    ("recording: names.jsonl of 1 GiB", |m| {
        replaced(m, "names.jsonl", |path| {
            let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
            for n in 0..m.count(1_000_000) {
                let name = "n".repeat(1000);
                let line =
                    format!("{{\"kind\":\"container\",\"id\":\"{n}\",\"name\":\"{name}\"}}\n");
                out.write_all(line.as_bytes()).unwrap();
            }
            out.flush().unwrap();
        })
    }),
    ("recording: names.jsonl is /dev/zero", |m| {
        replaced(m, "names.jsonl", |path| symlink("/dev/zero", path).unwrap())
    }),
    ("recording: names.jsonl is a pipe", |m| replaced(m, "names.jsonl", making::pipe)),
    ("recording: host.parquet is /dev/zero", |m| {
        replaced(m, "host.parquet", |path| symlink("/dev/zero", path).unwrap())
    }),
    ("recording: host.parquet is a pipe", |m| replaced(m, "host.parquet", making::pipe)),
    ("recording: host.parquet of 255 MiB of nothing", |m| {
        forged(m, "host.parquet", |_| vec![0; usize::try_from(m.count(255 << 20)).unwrap()])
    }),
    ("recording: host.parquet of 255 MiB before its footer", |m| {
        forged(m, "host.parquet", |sound| padded(sound, m.count(255 << 20)))
    }),
    ("recording: process.parquet of 255 MiB before its footer", |m| {
        forged(m, "process.parquet", |sound| padded(sound, m.count(255 << 20)))
    }),
    ("recording: a footer of 4 GiB", |m| {
        forged(m, "host.parquet", |mut bytes| {
            let end = bytes.len();
            bytes[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
            bytes
        })
    }),
    ("recording: a footer of varints", |m| forged(m, "host.parquet", |_| footer(&[0x19; 1 << 20]))),
    ("recording: a footer of lists without number", |m| {
        forged(m, "host.parquet", |_| {
            footer(&[0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x15, 0])
        })
    }),
    ("recording: a footer of structs in structs", |m| {
        forged(m, "host.parquet", |_| footer(&[0x1c; 1 << 20]))
    }),
    ("recording: each byte of a footer is the largest", |m| each_byte(m, 0xff)),
    ("recording: each byte of a footer is the smallest", |m| each_byte(m, 0)),
    ("recording: each byte of a footer has another bit", |m| each_byte(m, 0x7f)),
    ("recording: all tables are cut in half", |m| {
        let recording = sound(m);
        tables(&recording).iter().for_each(|path| {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        });
        recording
    }),
    ("recording: 100,000 segments", |m| {
        let recording = sound(m);
        (2..m.count(100_000)).for_each(|n| {
            std::fs::create_dir(recording.join(format!("segments/{n:08}-undated"))).unwrap()
        });
        recording
    }),
    ("recording: 2,000 whole segments", |m| {
        let recording = sound(m);
        let segment = segment(&recording);
        for n in 2..m.count(2_000).max(3) {
            let to = recording.join(format!("segments/{n:08}-undated"));
            std::fs::create_dir(&to).unwrap();
            for file in std::fs::read_dir(&segment).unwrap() {
                let file = file.unwrap();
                std::fs::hard_link(file.path(), to.join(file.file_name())).unwrap();
            }
        }
        recording
    }),
    ("recording: a head of nothing", |m| {
        with_head(m, |path| {
            m.sparse("head.log", b"", 1 << 40);
            std::fs::rename(m.path("head.log"), path).unwrap();
        })
    }),
    ("recording: a head is a pipe", |m| with_head(m, making::pipe)),
    ("recording: a head is /dev/zero", |m| {
        with_head(m, |path| symlink("/dev/zero", path).unwrap())
    }),
    ("recording: a head of 500 MiB of marks", |m| {
        with_head(m, |path| {
            let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
            repeat(&mut out, b"\xff\xff\xff\x03\0\0\0\0\x01memtide\x01", m.count(30_000_000));
            out.flush().unwrap();
        })
    }),
    ("recording: a frame of 64 MiB of names", |m| {
        with_head(m, |path| {
            let mut frame = vec![0; 9];
            frame[8] = 1;
            frame.extend_from_slice(b"memtide\x01");
            frame.resize(usize::try_from(m.count(64 << 20)).unwrap().max(32), 1);
            let length = u32::try_from(frame.len() - 9).unwrap();
            frame[..4].copy_from_slice(&length.to_le_bytes());
            let summed = [&frame[..4], &frame[8..]].concat();
            let sum = crc32(&summed);
            frame[4..8].copy_from_slice(&sum.to_le_bytes());
            std::fs::write(path, frame).unwrap();
        })
    }),
];

/// A sound recording of a labelled capture.
fn sound(making: &Making) -> PathBuf {
    let recording = making.path("recording");
    let capture = &crate::cases::named("cgroup-oom--96m").source;
    let made = memtide(&[
        "record",
        "--from",
        capture.to_str().unwrap(),
        "--to",
        recording.to_str().unwrap(),
    ]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    recording
}

fn segment(recording: &Path) -> PathBuf {
    let mut segments = std::fs::read_dir(recording.join("segments")).unwrap();
    segments.next().unwrap().unwrap().path()
}

fn tables(recording: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(segment(recording)).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|form| form == "parquet")).collect()
}

/// The path of a file of a recording, in its segment or above.
fn place(recording: &Path, name: &str) -> PathBuf {
    match name {
        "recording.json" | "facts.jsonl" | "names.jsonl" => recording.join(name),
        name => segment(recording).join(name),
    }
}

/// A recording with something else in a file's place.
fn replaced(making: &Making, name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let recording = sound(making);
    let path = place(&recording, name);
    // Not each recording has names.
    let _ = std::fs::remove_file(&path);
    make(&path);
    recording
}

/// A recording with other bytes in a file of its segment, which its list names as they are.
fn forged(making: &Making, name: &str, forge: impl FnOnce(Vec<u8>) -> Vec<u8>) -> PathBuf {
    let recording = sound(making);
    let path = place(&recording, name);
    let bytes = forge(std::fs::read(&path).unwrap());
    std::fs::write(&path, &bytes).unwrap();
    let (len, sum) = (bytes.len(), crc32(&bytes));
    listed(&recording, |text| {
        let (before, rest) = text.split_once(&format!("\"{name}\":{{")).unwrap();
        let (_, rest) = rest.split_once('}').unwrap();
        format!("{before}\"{name}\":{{\"bytes\":{len},\"crc32\":{sum}}}{rest}")
    });
    recording
}

/// A recording with another list of a segment's files.
fn manifest(making: &Making, change: impl FnOnce(&str) -> String) -> PathBuf {
    let recording = sound(making);
    listed(&recording, change);
    recording
}

/// Changes the list of a segment's files, and its checksum.
fn listed(recording: &Path, change: impl FnOnce(&str) -> String) {
    let path = segment(recording).join("segment.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let (text, _) = text.rsplit_once(",\"crc32\":").unwrap();
    let text = change(text);
    let sum = crc32(text.as_bytes());
    std::fs::write(path, format!("{text},\"crc32\":{sum}}}")).unwrap();
}

/// A recording with a file of a head.
fn with_head(making: &Making, make: impl FnOnce(&Path)) -> PathBuf {
    let recording = sound(making);
    let head = recording.join("head");
    std::fs::create_dir_all(&head).unwrap();
    make(&head.join("00000009.log"));
    recording
}

fn large(path: &Path, start: &[u8], len: u64) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    out.write_all(start).unwrap();
    repeat(&mut out, b"x", len);
    out.write_all(b"\"}}}").unwrap();
    out.flush().unwrap();
}

/// A table with nothing of this length between its start and its columns' ends.
fn padded(sound: Vec<u8>, len: u64) -> Vec<u8> {
    let footer = u32::from_le_bytes(sound[sound.len() - 8..sound.len() - 4].try_into().unwrap());
    let mut bytes = sound;
    let end = bytes.split_off(bytes.len() - 8 - usize::try_from(footer).unwrap());
    bytes.resize(bytes.len() + usize::try_from(len).unwrap(), 0);
    bytes.extend(end);
    bytes
}

/// A table of nothing but a footer.
fn footer(thrift: &[u8]) -> Vec<u8> {
    let len = u32::try_from(thrift.len()).unwrap();
    [b"PAR1", thrift, &len.to_le_bytes(), b"PAR1"].concat()
}

/// A recording with a segment for each of 60 places in a footer, at which its byte is another.
fn each_byte(making: &Making, mask: u8) -> PathBuf {
    const PLACES: usize = 60;
    let recording = sound(making);
    let first = segment(&recording);
    let table = std::fs::read(first.join("host.parquet")).unwrap();
    let end = table.len() - 8;
    let len = u32::from_le_bytes(table[end..end + 4].try_into().unwrap());
    let len = usize::try_from(len).unwrap();
    for number in 0..PLACES {
        let to = recording.join(format!("segments/{:08}-undated", number + 2));
        std::fs::create_dir(&to).unwrap();
        for file in std::fs::read_dir(&first).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
        let mut bytes = table.clone();
        let at = end - len + number * len / PLACES;
        bytes[at] = match mask {
            0x7f => bytes[at] ^ (1 << (number % 8)),
            mask => mask,
        };
        std::fs::write(to.join("host.parquet"), &bytes).unwrap();
        // Without its list, the segment is read as it is.
        std::fs::remove_file(to.join("segment.json")).unwrap();
    }
    recording
}
