//! The kernel that a lab boots: an image and its modules.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::host::cache::cache_directory;

/// Where the header of a bzImage holds the offset of the version's text, less 0x200 (Documentation/arch/x86/boot.rst,
/// `kernel_version`).
const VERSION_POINTER: usize = 0x20e;
/// The start of an image that holds its header and the version's text.
const HEADER_BYTES: u64 = 64 << 10;

/// A kernel image with its modules.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The bzImage.
    pub image: PathBuf,
    /// As `uname -r` prints it.
    pub version: String,
    /// The directory of its modules: `…/lib/modules/VERSION`.
    pub modules: PathBuf,
}

impl Kernel {
    /// The kernel of an image. Its modules are beside it, as in an unpacked package (`boot/` and `lib/modules/`), or below
    /// `/lib/modules`.
    ///
    /// # Errors
    /// [`LabError::Kernel`] where the image cannot be read, is not one, or has no modules.
    pub fn at(image: &Path) -> Result<Self, LabError> {
        let fails = |why: String| LabError::Kernel { image: image.to_owned(), why };
        let version = version(image).map_err(fails)?;
        // `ROOT/boot/vmlinuz-VERSION` of an unpacked package, or `…/lib/modules/VERSION/vmlinuz`.
        let own = image.parent().map(Path::to_owned);
        let root = own.as_deref().and_then(Path::parent);
        let beside = ["lib/modules", "usr/lib/modules"]
            .map(|place| root.map(|root| root.join(place).join(&version)));
        let of_host = Some(Path::new("/lib/modules").join(&version));
        let mut places = beside.into_iter().chain([own, of_host]).flatten();
        let modules =
            places.find(|modules| modules.join("modules.builtin").is_file()).ok_or_else(|| {
                fails(format!(
                    "there are no modules of {version}, neither beside it nor in /lib/modules"
                ))
            })?;
        Ok(Self { image: image.to_owned(), version, modules })
    }

    /// The kernel of an unpacked package.
    pub(crate) fn of_package(root: &Path) -> Result<Self, LabError> {
        let image = images_of_package(root).into_iter().next();
        let why = "it has no kernel image".to_owned();
        Self::at(&image.ok_or(LabError::Kernel { image: root.to_owned(), why })?)
    }

    /// The kernels that can be booted, the default first.
    pub fn all() -> Vec<Self> {
        let mut kernels: Vec<Self> = Vec::new();
        for kernel in images().iter().filter_map(|image| Self::at(image).ok()) {
            if !kernels.iter().any(|known| known.version == kernel.version) {
                kernels.push(kernel);
            }
        }
        kernels
    }

    /// The kernel that is wanted: an image, or the begin of a version, as `6.12`. Without a wish the one that was fetched
    /// without one, else that of this host, else any.
    ///
    /// # Errors
    /// [`LabError::NoKernel`] with what was tried, where none can be read.
    pub fn find(wanted: Option<&Path>) -> Result<Self, LabError> {
        let version = match wanted {
            // A file, or what looks like the path of one.
            Some(image) if image.exists() || image.components().count() > 1 => {
                return Self::at(image);
            }
            Some(version) => version.to_string_lossy(),
            None => "".into(),
        };
        let mut tried = Vec::new();
        for image in images() {
            match Self::at(&image) {
                Ok(kernel) if is_of(&kernel.version, &version) => return Ok(kernel),
                Ok(kernel) => tried.push(format!("{}: it is {}", image.display(), kernel.version)),
                Err(error) => tried.push(error.to_string()),
            }
        }
        Err(LabError::NoKernel { wanted: wanted.map(|_| version.into_owned()), tried })
    }

    /// These modules and all that they depend on, in the order in which they are loaded; modules that are built in are
    /// left out.
    ///
    /// `modules.dep` is made when a kernel is installed, so an unpacked package lacks it: each module names what it needs.
    ///
    /// # Errors
    /// [`LabError::NoModule`] where the kernel has no such module.
    pub(crate) fn modules(&self, needs: &[ModuleNeed]) -> Result<Vec<KernelModule>, LabError> {
        let list = self.modules.join("modules.builtin");
        let builtin = std::fs::read_to_string(&list).map_err(|error| LabError::Kernel {
            image: self.image.clone(),
            why: format!("cannot read {}: {error}", list.display()),
        })?;
        let mut search = ModuleSearch {
            builtin: builtin.lines().map(module_name).collect(),
            files: BTreeMap::new(),
            found: Vec::new(),
        };
        collect_modules(&self.modules.join("kernel"), &mut search.files);
        for need in needs {
            match (search.add(need.name), need.is_optional) {
                (Ok(()), _) | (Err(ModuleError::Missing(_)), true) => {}
                (Err(ModuleError::Missing(module)), false) => {
                    return Err(LabError::NoModule { module, version: self.version.clone() });
                }
                (Err(ModuleError::Unreadable(path, error)), _) => {
                    return Err(LabError::File { path, error });
                }
            }
        }
        Ok(search.found)
    }
}

/// A module that a scenario needs.
#[derive(Debug, Clone, Copy)]
pub struct ModuleNeed {
    /// `virtio_blk`.
    pub name: &'static str,
    /// Whether a kernel may lack it: newer ones have it inside another.
    pub is_optional: bool,
}

impl ModuleNeed {
    /// A module that the kernel must have, as a file or built in.
    pub(crate) const fn always(name: &'static str) -> Self {
        Self { name, is_optional: false }
    }

    /// A module that some kernels have.
    pub(crate) const fn if_any(name: &'static str) -> Self {
        Self { name, is_optional: true }
    }
}

/// A module, decompressed.
#[derive(Debug)]
pub(crate) struct KernelModule {
    /// `virtio_blk`.
    pub(crate) name: String,
    pub(crate) contents: Vec<u8>,
}

enum ModuleError {
    Missing(String),
    Unreadable(PathBuf, std::io::Error),
}

struct ModuleSearch {
    builtin: BTreeSet<String>,
    files: BTreeMap<String, PathBuf>,
    found: Vec<KernelModule>,
}

impl ModuleSearch {
    /// Adds a module behind those that it needs.
    fn add(&mut self, name: &str) -> Result<(), ModuleError> {
        let is_known = self.found.iter().any(|module| module.name == name);
        if is_known || self.builtin.contains(name) {
            return Ok(());
        }
        let missing = || ModuleError::Missing(name.to_owned());
        // Removed here, modules that need each other end.
        let file = self.files.remove(name).ok_or_else(missing)?;
        let contents = import::read_unpacked(&file)
            .map_err(|error| ModuleError::Unreadable(file.clone(), error))?;
        for needed in depends(&contents) {
            self.add(&needed)?;
        }
        self.found.push(KernelModule { name: name.to_owned(), contents });
        Ok(())
    }
}

/// Modules below a directory by name.
fn collect_modules(directory: &Path, known: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        // A link would lead to sources, or in a circle.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect_modules(&path, known),
            Ok(kind) if kind.is_file() && path.to_string_lossy().contains(".ko") => {
                known.insert(module_name(&path.to_string_lossy()), path);
            }
            _ => {}
        }
    }
}

/// Names of the modules that a module needs: `depends=` in its section `.modinfo` (scripts/mod/modpost.c, add_depends).
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let list = module.get(at + KEY.len()..).unwrap_or_default();
    let list: Vec<u8> = list.iter().copied().take_while(|byte| *byte != 0).collect();
    let list = String::from_utf8_lossy(&list).into_owned();
    let names = list.split(',').filter(|name| !name.is_empty());
    names.map(module_name).collect()
}

/// `virtio_blk` of `kernel/drivers/block/virtio_blk.ko.xz`.
fn module_name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.split(".ko").next().unwrap_or(name);
    stem.replace('-', "_")
}

/// Whether a version begins with another, number by number: 6.12.1 is of 6.12 and not of 6.1.
fn is_of(version: &str, wanted: &str) -> bool {
    let rest = version.strip_prefix(wanted);
    rest.is_some_and(|rest| wanted.is_empty() || !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Where fetched kernels are, a directory for each package; `None` for a user without a home.
pub(crate) fn kernel_directory() -> Option<PathBuf> {
    Some(cache_directory()?.join("kernels"))
}

/// Images that may be booted, the best first.
fn images() -> Vec<PathBuf> {
    let fetched = kernel_directory().unwrap_or_default();
    let mut images = images_of_package(&fetched.join("default"));
    images.push(PathBuf::from(format!("/boot/vmlinuz-{}", running())));
    for package in entries(&fetched) {
        images.extend(images_of_package(&package));
    }
    images.extend(images_in(Path::new("/boot")));
    images
}

/// Images of an unpacked package.
fn images_of_package(root: &Path) -> Vec<PathBuf> {
    let mut images = images_in(&root.join("boot"));
    for place in ["lib/modules", "usr/lib/modules"] {
        let versions = entries(&root.join(place));
        let of_versions = versions.into_iter().map(|version| version.join("vmlinuz"));
        images.extend(of_versions.filter(|image| image.is_file()));
    }
    images
}

/// Kernel images in a directory, the last by name first.
fn images_in(directory: &Path) -> Vec<PathBuf> {
    let is_image = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("vmlinuz-")
    };
    entries(directory).into_iter().filter(is_image).collect()
}

/// What is in a directory, the last by name first; nothing if it cannot be read.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.reverse();
    paths
}

fn running() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The version in the header of a bzImage.
fn version(image: &Path) -> Result<String, String> {
    let file = std::fs::File::open(image).map_err(|error| error.to_string())?;
    let mut head = Vec::new();
    file.take(HEADER_BYTES).read_to_end(&mut head).map_err(|error| error.to_string())?;
    if head.get(0x202..0x206) != Some(b"HdrS") {
        return Err("not an x86 kernel image (bzImage)".to_owned());
    }
    let pointer = head
        .get(VERSION_POINTER..VERSION_POINTER + 2)
        .map_or(0, |bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])));
    let text = head.get(pointer + 0x200..).unwrap_or_default();
    let version: Vec<u8> =
        text.iter().copied().take_while(|byte| byte.is_ascii_graphic()).take(128).collect();
    match String::from_utf8(version) {
        Ok(version) if pointer != 0 && !version.is_empty() => Ok(version),
        _ => Err("its header names no version".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with an image of version `6.1.0-lab` and its lists of modules.
    fn package() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let modules = root.path().join("lib/modules/6.1.0-lab");
        std::fs::create_dir_all(&modules).unwrap();
        std::fs::create_dir_all(root.path().join("boot")).unwrap();
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[VERSION_POINTER..VERSION_POINTER + 2].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x300..0x300 + 14].copy_from_slice(b"6.1.0-lab (me@");
        std::fs::write(root.path().join("boot/vmlinuz-x"), image).unwrap();
        std::fs::write(modules.join("modules.builtin"), "kernel/fs/ext4/ext4.ko\n").unwrap();
        for (file, needs) in [
            ("zram.ko", "zsmalloc,ext4"),
            ("zsmalloc.ko", ""),
            ("virtio-ring.ko", ""),
            ("virtio.ko", "virtio-ring"),
            ("virtio_blk.ko", "virtio,virtio_ring"),
        ] {
            let text = format!("ELF\0license=GPL\0depends={needs}\0name=x\0");
            std::fs::create_dir_all(modules.join("kernel/drivers")).unwrap();
            std::fs::write(modules.join("kernel/drivers").join(file), text).unwrap();
        }
        root
    }

    #[test]
    fn modules_are_loaded_after_what_they_need_and_once() {
        let root = package();
        let kernel = Kernel::at(&root.path().join("boot/vmlinuz-x")).unwrap();
        assert_eq!(kernel.version, "6.1.0-lab");
        let needs = ["virtio_blk", "zram", "ext4", "virtio_blk"].map(ModuleNeed::always);
        let modules = kernel.modules(&needs).unwrap();
        let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["virtio_ring", "virtio", "virtio_blk", "zsmalloc", "zram"]);
    }

    #[test]
    fn a_version_is_compared_number_by_number() {
        assert!(is_of("6.1.0-56-cloud-amd64", "6.1"));
        assert!(is_of("6.12.117+deb12", "6.12") && is_of("6.12.117", ""));
        assert!(!is_of("6.12.117+deb12", "6.1") && !is_of("6.1.0", "6.12"));
    }

    #[test]
    fn a_missing_module_and_a_file_that_is_no_kernel_are_named() {
        let root = package();
        let kernel = Kernel::at(&root.path().join("boot/vmlinuz-x")).unwrap();
        let error = kernel.modules(&[ModuleNeed::always("nosuch")]).unwrap_err().to_string();
        assert!(error.contains("nosuch") && error.contains("6.1.0-lab"), "{error}");
        assert!(kernel.modules(&[ModuleNeed::if_any("nosuch")]).unwrap().is_empty());
        let other = root.path().join("boot/vmlinuz-y");
        std::fs::write(&other, "text").unwrap();
        let error = Kernel::at(&other).unwrap_err().to_string();
        assert!(
            error.contains("vmlinuz-y") && error.contains("not an x86 kernel image"),
            "{error}"
        );
    }
}
