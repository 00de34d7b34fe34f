//! The kernel that a lab boots: an image and its modules.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::LabError;

/// Where the header of a bzImage holds the offset of the version's text, less 0x200 (Documentation/arch/x86/boot.rst,
/// `kernel_version`).
const VERSION_POINTER: usize = 0x20e;
/// A bzImage is at most tens of MiB.
const IMAGE_BYTES_MAX: u64 = 256 << 20;

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
    /// [`LabError::Kernel`] where the image cannot be read, is none, or has no modules.
    pub fn at(image: &Path) -> Result<Self, LabError> {
        let fails = |why: String| LabError::Kernel {
            image: image.to_owned(),
            why,
        };
        let version = version(image).map_err(fails)?;
        let beside = image
            .parent()
            .and_then(Path::parent)
            .map(|root| root.join("lib/modules").join(&version));
        let modules = [beside, Some(Path::new("/lib/modules").join(&version))]
            .into_iter()
            .flatten()
            .find(|modules| modules.join("modules.builtin").is_file())
            .ok_or_else(|| {
                fails(format!(
                    "there are no modules of {version}, neither beside it nor in /lib/modules"
                ))
            })?;
        Ok(Self {
            image: image.to_owned(),
            version,
            modules,
        })
    }

    /// The kernel of `--kernel`, else a fetched one, else one of this host.
    ///
    /// # Errors
    /// [`LabError::NoKernel`] with what was tried, where none can be read.
    pub fn find(wanted: Option<&Path>) -> Result<Self, LabError> {
        if let Some(image) = wanted {
            return Self::at(image);
        }
        let mut images = fetched();
        images.push(PathBuf::from(format!("/boot/vmlinuz-{}", running())));
        images.extend(images_in(Path::new("/boot")));
        let mut tried = Vec::new();
        for image in images {
            match Self::at(&image) {
                Ok(kernel) => return Ok(kernel),
                Err(error) => tried.push(error.to_string()),
            }
        }
        Err(LabError::NoKernel { tried })
    }

    /// The files of these modules and of all that they depend on, in the order in which they are loaded; modules that are
    /// built in are left out.
    ///
    /// `modules.dep` is made when a kernel is installed, so an unpacked package lacks it: each module names what it needs.
    ///
    /// # Errors
    /// [`LabError::NoModule`] where the kernel has no such module.
    pub fn module_files(&self, names: &[&str]) -> Result<Vec<PathBuf>, LabError> {
        let fails = |why: String| LabError::Kernel {
            image: self.image.clone(),
            why,
        };
        let list = self.modules.join("modules.builtin");
        let builtin = std::fs::read_to_string(&list)
            .map_err(|error| fails(format!("cannot read {}: {error}", list.display())))?;
        let builtin: BTreeSet<String> = builtin.lines().map(module_name).collect();
        let mut known = BTreeMap::new();
        collect_modules(&self.modules.join("kernel"), &mut known);
        let mut files = Vec::new();
        for name in names {
            self.add_module(name, &builtin, &known, &mut files)?;
        }
        Ok(files)
    }

    /// Adds a module behind those that it needs.
    fn add_module(
        &self,
        name: &str,
        builtin: &BTreeSet<String>,
        known: &BTreeMap<String, PathBuf>,
        files: &mut Vec<PathBuf>,
    ) -> Result<(), LabError> {
        if builtin.contains(name) {
            return Ok(());
        }
        let file = known.get(name).ok_or_else(|| LabError::NoModule {
            module: name.to_owned(),
            version: self.version.clone(),
        })?;
        if files.contains(file) {
            return Ok(());
        }
        for needed in depends(&read_module(file)?) {
            self.add_module(&needed, builtin, known, files)?;
        }
        files.push(file.clone());
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

/// The contents of a module, decompressed.
///
/// # Errors
/// The operating system's, or that of a damaged file.
pub(crate) fn read_module(file: &Path) -> std::io::Result<Vec<u8>> {
    let packed = std::fs::read(file)?;
    let mut module = Vec::new();
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => {
            lzma_rust2::XzReader::new(packed.as_slice(), true).read_to_end(&mut module)?;
        }
        Some("zst") => {
            zstd::Decoder::new(packed.as_slice())?.read_to_end(&mut module)?;
        }
        Some("gz") => {
            flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut module)?;
        }
        _ => module = packed,
    }
    Ok(module)
}

/// Where `scripts/kernel.sh` puts kernels that it fetches.
fn fetched() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let kernels = cache.map(|cache| cache.join("memtide/kernels"));
    let entries = kernels.and_then(|kernels| std::fs::read_dir(kernels).ok());
    let mut images: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|entry| images_in(&entry.path().join("boot")))
        .collect();
    images.sort();
    images
}

/// Kernel images in a directory, the last by name first.
fn images_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut images: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("vmlinuz-"))
        .map(|entry| entry.path())
        .collect();
    images.sort();
    images.reverse();
    images
}

fn running() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

/// The version in the header of a bzImage.
fn version(image: &Path) -> Result<String, String> {
    let file = std::fs::File::open(image).map_err(|error| error.to_string())?;
    let mut head = Vec::new();
    file.take(IMAGE_BYTES_MAX.min(64 << 10))
        .read_to_end(&mut head)
        .map_err(|error| error.to_string())?;
    if head.get(0x202..0x206) != Some(b"HdrS") {
        return Err("it is no x86 kernel image (bzImage)".to_owned());
    }
    let pointer = head
        .get(VERSION_POINTER..VERSION_POINTER + 2)
        .map_or(0, |bytes| {
            usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))
        });
    let text = head.get(pointer + 0x200..).unwrap_or_default();
    let version: Vec<u8> = text
        .iter()
        .copied()
        .take_while(|byte| byte.is_ascii_graphic())
        .take(128)
        .collect();
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
        let files = kernel
            .module_files(&["virtio_blk", "zram", "ext4", "virtio_blk"])
            .unwrap();
        let names: Vec<String> = files
            .iter()
            .map(|file| module_name(&file.to_string_lossy()))
            .collect();
        assert_eq!(
            names,
            ["virtio_ring", "virtio", "virtio_blk", "zsmalloc", "zram"]
        );
    }

    #[test]
    fn a_missing_module_and_a_file_that_is_no_kernel_are_named() {
        let root = package();
        let kernel = Kernel::at(&root.path().join("boot/vmlinuz-x")).unwrap();
        let error = kernel.module_files(&["nosuch"]).unwrap_err().to_string();
        assert!(
            error.contains("nosuch") && error.contains("6.1.0-lab"),
            "{error}"
        );
        let other = root.path().join("boot/vmlinuz-y");
        std::fs::write(&other, "text").unwrap();
        let error = Kernel::at(&other).unwrap_err().to_string();
        assert!(
            error.contains("vmlinuz-y") && error.contains("no x86 kernel image"),
            "{error}"
        );
    }
}
