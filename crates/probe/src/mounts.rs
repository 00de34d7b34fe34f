//! Mounted file systems: `/proc/self/mounts` (also saved as `/proc/mounts`) and `/proc/self/mountinfo`.
//!
//! Both list the mounts in the reader's mount namespace, oldest first; a later mount hides an earlier one at the same
//! point. Blanks, tabs, newlines and backslashes in paths are written as octal (`\040`). `mountinfo` also shows which
//! directory of the file system is mounted, which is needed for a cgroup path inside a container. Cost: 10 to 50 µs,
//! more on hosts with thousands of container mounts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use timeline::facts::{CgroupMode, MemoryMount};
use units::Bytes;

use crate::octal::{self, Piece};
use crate::text;

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount<'a> {
    /// Its id, as `statx` has it; `mounts` has none.
    pub(crate) id: Option<u64>,
    /// The mounted directory of the file system; `/` if it is mounted as a whole.
    pub(crate) inside: Cow<'a, [u8]>,
    /// Where it is mounted.
    pub(crate) point: Cow<'a, [u8]>,
    /// Its type: `tmpfs`, `cgroup2`.
    pub(crate) kind: &'a [u8],
    /// Major and minor number of its device, as files on it show them; `mounts` has none.
    pub(crate) device: Option<DeviceNumbers>,
    options: &'a [u8],
}

impl Mount<'_> {
    /// Whether it keeps its data in RAM.
    pub(crate) fn is_in_memory(&self) -> bool {
        is_in_memory(self.kind)
    }

    /// Whether it has this option.
    fn has(&self, option: &[u8]) -> bool {
        self.options.split(|b| *b == b',').any(|o| o == option)
    }

    /// Returns the `size=` option in bytes; the kernel writes it in KiB.
    fn size(&self) -> Option<Bytes> {
        let mut options = self.options.split(|b| *b == b',');
        let size = options.find_map(|option| option.strip_prefix(b"size="))?;
        let (digits, shift) = match size.split_last()? {
            (b'k' | b'K', digits) => (digits, 10),
            (b'm' | b'M', digits) => (digits, 20),
            (b'g' | b'G', digits) => (digits, 30),
            _ => (size, 0),
        };
        text::number(digits)?.checked_mul(1 << shift).map(Bytes::new)
    }
}

/// Parses the lines of `/proc/self/mounts`: `DEVICE POINT TYPE OPTIONS 0 0`. Lines of another form are skipped.
pub(crate) fn mounts(text: &[u8]) -> impl Iterator<Item = Mount<'_>> {
    let lines = text::lines(text).filter_map(|(_, line)| {
        let mut words = text::words(line).skip(1);
        Some(Mount {
            id: None,
            inside: Cow::Borrowed(b"/"),
            point: unescaped(words.next()?),
            kind: words.next()?,
            device: None,
            options: words.next()?,
        })
    });
    lines.take(MOUNTS_MAX)
}

/// The kernel's default of the most mounts of a namespace (`fs.mount-max`, 4.9).
const MOUNTS_MAX: usize = 100_000;

/// Parses the lines of `/proc/self/mountinfo`: `ID PARENT MAJOR:MINOR INSIDE POINT OPTIONS [TAG…] - TYPE DEVICE
/// OPTIONS`.
pub(crate) fn mountinfo(text: &[u8]) -> impl Iterator<Item = Mount<'_>> {
    text::lines(text).filter_map(|(_, line)| {
        let mut words = text::words(line);
        let id = text::number(words.next()?);
        let device = device(words.nth(1)?);
        let inside = unescaped(words.next()?);
        let point = unescaped(words.next()?);
        words.find(|word| *word == b"-")?;
        Some(Mount { id, inside, point, kind: words.next()?, device, options: words.nth(1)? })
    })
}

/// Major and minor number of a device or file system.
pub(crate) type DeviceNumbers = (u32, u32);

/// Returns the numbers in `st_dev`.
pub(crate) fn device_numbers(device: u64) -> DeviceNumbers {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// Returns a device's numbers in `MAJOR:MINOR`.
fn device(word: &[u8]) -> Option<DeviceNumbers> {
    let colon = memchr::memchr(b':', word)?;
    let number = |digits| u32::try_from(text::number(digits)?).ok();
    Some((number(&word[..colon])?, number(&word[colon + 1..])?))
}

/// Returns the device numbers of the file systems in a `mountinfo` that keep their data in RAM: files on them are shared
/// memory.
pub fn tmpfs_devices(text: &[u8]) -> Vec<(u32, u32)> {
    let in_memory = mountinfo(text).filter(|mount| is_in_memory(mount.kind));
    let mut devices: Vec<(u32, u32)> = in_memory.filter_map(|mount| mount.device).collect();
    devices.sort_unstable();
    devices.dedup();
    devices
}

/// Whether a file system of this type may wait for another machine or program.
pub(crate) fn may_not_answer(kind: &[u8]) -> bool {
    const KINDS: [&[u8]; 9] =
        [b"nfs", b"cifs", b"smb", b"fuse", b"9p", b"ceph", b"afs", b"autofs", b"lustre"];
    KINDS.iter().any(|remote| kind.starts_with(remote))
}

/// Whether file systems of this type keep their data in RAM.
fn is_in_memory(kind: &[u8]) -> bool {
    // An initramfs that is still the root file system is a `rootfs`, which is another name for a tmpfs or ramfs.
    matches!(kind, b"tmpfs" | b"ramfs" | b"devtmpfs" | b"rootfs")
}

/// Returns the file systems that keep their data in RAM; a later mount at the same point replaces an earlier one.
pub(crate) fn in_memory<'a>(mounts: impl Iterator<Item = Mount<'a>>) -> Vec<MemoryMount> {
    let mut found: BTreeMap<Cow<'a, [u8]>, Mount<'a>> = BTreeMap::new();
    for mount in mounts {
        if is_in_memory(mount.kind) {
            found.insert(mount.point.clone(), mount);
        } else {
            found.remove(&mount.point);
        }
    }
    let visible = found.into_values().map(|mount| MemoryMount {
        point: text::lossy(&mount.point).into_owned(),
        kind: text::lossy(mount.kind).into_owned(),
        size: mount.size(),
    });
    visible.collect()
}

/// Returns the lines of a mount table about memory: visible file systems in RAM, huge pages, cgroups. Other lines name
/// servers, users and paths, which are private.
pub(crate) fn about_memory(text: &[u8]) -> Vec<u8> {
    let seen: std::collections::HashMap<_, _> =
        mounts(text).enumerate().map(|(i, mount)| (mount.point, i)).collect();
    let lines = text::lines(text).filter(|(_, line)| mounts(line).next().is_some());
    let mut about = Vec::new();
    for (i, ((_, line), mount)) in lines.zip(mounts(text)).enumerate() {
        let is_kept = match mount.kind {
            b"cgroup" | b"cgroup2" => true,
            kind => (is_in_memory(kind) || kind == b"hugetlbfs") && seen[&mount.point] == i,
        };
        if is_kept {
            about.extend_from_slice(line);
            about.push(b'\n');
        }
    }
    about
}

/// Returns the version that manages memory, as far as mounts show it: v1 if its memory controller is mounted, else the
/// unified one.
pub(crate) fn cgroup_mode<'a>(mounts: impl Iterator<Item = Mount<'a>>) -> Option<CgroupMode> {
    let mut mode = None;
    for mount in mounts {
        match mount.kind {
            b"cgroup" if mount.has(b"memory") => return Some(CgroupMode::V1),
            b"cgroup2" => mode = Some(CgroupMode::V2),
            _ => {}
        }
    }
    mode
}

/// Whether a mount is a hierarchy of this version; of v1, the one with the memory controller.
pub(crate) fn is_cgroup(mount: &Mount<'_>, mode: CgroupMode) -> bool {
    match mode {
        CgroupMode::V1 => has_controller(mount, b"memory"),
        CgroupMode::V2 => mount.kind == b"cgroup2",
    }
}

/// Whether it is the v1 hierarchy with this controller.
pub(crate) fn has_controller(mount: &Mount<'_>, controller: &[u8]) -> bool {
    mount.kind == b"cgroup" && mount.has(controller)
}

/// Replaces octal escapes by the bytes they stand for.
fn unescaped(word: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', word).is_none() {
        return Cow::Borrowed(word);
    }
    let mut bytes = Vec::with_capacity(word.len());
    for piece in octal::pieces(word) {
        match piece {
            Piece::Plain(plain) => bytes.extend_from_slice(plain),
            Piece::Escape(byte, _) => bytes.push(byte),
        }
    }
    Cow::Owned(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// From a 6.18 host.
    const MOUNTS: &[u8] = b"proc /proc proc rw,relatime 0 0\n\
        devtmpfs /dev devtmpfs rw,relatime,size=12334492k,nr_inodes=3083623,mode=755 0 0\n\
        tmpfs /dev/shm tmpfs rw,relatime,size=24684092k 0 0\n\
        /dev/vda / ext4 rw,relatime,discard 0 0\n\
        tmpfs /dev/shm tmpfs rw,relatime,size=1024k 0 0\n\
        none /mnt/two\\040words ramfs rw,relatime 0 0\n\
        tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0\n\
        cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";

    #[test]
    fn file_systems_in_ram_have_a_point_a_kind_and_perhaps_a_size() {
        let found = in_memory(mounts(MOUNTS));
        let listed: Vec<_> = found
            .iter()
            .map(|m| (m.point.as_str(), m.kind.as_str(), m.size.map(Bytes::get)))
            .collect();
        assert_eq!(
            listed,
            [
                ("/dev", "devtmpfs", Some(12_334_492 << 10)),
                ("/dev/shm", "tmpfs", Some(1 << 20)),
                ("/mnt/two words", "ramfs", None),
                ("/sys/fs/cgroup", "tmpfs", None),
            ]
        );
    }

    #[test]
    fn files_of_a_tmpfs_have_its_device() {
        let text = b"23 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n\
            25 28 0:5 / /dev rw master:2 shared:2 - devtmpfs udev rw,size=4k\n\
            26 25 0:23 / /dev/shm rw - tmpfs tmpfs rw\n27 28 0:23 /x /mnt rw - tmpfs tmpfs rw\n\
            28 1 254:0 / / rw - ext4 /dev/vda rw\n29 28 x:1 / /y rw - tmpfs t rw\n30 28 0:9 / /z rw -\n";
        assert_eq!(tmpfs_devices(text), [(0, 5), (0, 23)]);
    }

    #[test]
    fn an_initramfs_root_is_in_ram_until_another_root_hides_it() {
        let text = b"rootfs / rootfs rw,size=363216k,nr_inodes=90804,inode64 0 0\n";
        let found = in_memory(mounts(text));
        assert_eq!(found[0].size, Some(Bytes::from_kib(363_216)));
        let text = [&text[..], b"/dev/vda1 / ext4 rw 0 0\n"].concat();
        assert_eq!(in_memory(mounts(&text)), []);
    }

    #[test]
    fn sizes_that_are_no_bytes_are_absent() {
        for option in ["size=50%", "size=", "size=-1k", "size=99999999999999999999k", "size=k"] {
            let line = format!("tmpfs /t tmpfs rw,{option} 0 0");
            assert_eq!(in_memory(mounts(line.as_bytes()))[0].size, None, "{option}");
        }
        let found = in_memory(mounts(b"tmpfs /t tmpfs rw,size=2g 0 0"));
        assert_eq!(found[0].size, Some(Bytes::from_gib(2)));
    }

    #[test]
    fn the_lines_about_memory_have_the_same_mounts_in_memory_and_no_others() {
        let text = [&b"rootfs / rootfs rw 0 0\ncut\n"[..], MOUNTS].concat();
        let about = about_memory(&text);
        assert_eq!(in_memory(mounts(&about)), in_memory(mounts(&text)));
        assert_eq!(cgroup_mode(mounts(&about)), cgroup_mode(mounts(&text)));
        let about = String::from_utf8(about).unwrap();
        assert!(!about.contains("ext4") && !about.contains(" proc "), "{about}");
    }

    #[test]
    fn a_v1_memory_mount_decides_over_a_unified_one() {
        assert_eq!(cgroup_mode(mounts(MOUNTS)), Some(CgroupMode::V1));
        let unified = b"c /sys/fs/cgroup cgroup2 rw,relatime 0 0\n";
        assert_eq!(cgroup_mode(mounts(unified)), Some(CgroupMode::V2));
        let no_memory = b"cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
        assert_eq!(cgroup_mode(mounts(no_memory)), None);
    }

    #[test]
    fn mountinfo_tells_which_directory_is_mounted() {
        let text = b"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
            40 31 0:33 /docker/ab /sys/fs/cgroup/memory ro,nosuid master:15 shared:2 - cgroup cgroup rw,memory\n\
            41 cut\n";
        let all: Vec<_> = mountinfo(text).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(&*all[0].inside, b"/");
        assert_eq!(&*all[1].inside, b"/docker/ab");
        assert_eq!(&*all[1].point, b"/sys/fs/cgroup/memory");
        assert!(is_cgroup(&all[1], CgroupMode::V1));
    }

    #[test]
    fn octal_escapes_become_bytes_and_others_stay() {
        for (escaped, plain) in [
            (&b"/a\\040b\\134"[..], &b"/a b\\"[..]),
            (b"/a\\", b"/a\\"),
            (b"/\\999\\777", b"/\\999\\777"),
            (b"\\012", b"\n"),
        ] {
            assert_eq!(&*unescaped(escaped), plain);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>, lines in "([a-z/\\\\0-9=,-]{0,5} ?){0,12}") {
            for text in [&text[..], lines.as_bytes()] {
                in_memory(mounts(text));
                in_memory(mountinfo(text));
                cgroup_mode(mounts(text));
            }
        }
    }
}
