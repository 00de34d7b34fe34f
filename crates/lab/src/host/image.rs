//! What a guest boots: a kernel, and an initramfs with this program, modules, and a job.

use std::path::{Path, PathBuf};

use super::initramfs::Archive;
use super::kernel::{Kernel, ModuleNeed};
use super::work::WorkDirectory;
use crate::LabError;
use crate::error::AtPath as _;
use crate::message::{JOB, Job};

/// Modules of every machine; a kernel that has one built in needs no file of it.
const MODULES: &[ModuleNeed] = &[
    ModuleNeed::always("virtio_pci"),
    ModuleNeed::always("virtio_blk"),
    ModuleNeed::always("virtio_console"),
    ModuleNeed::always("ext4"),
];

/// A kernel and the initramfs that all guests of a run share.
#[derive(Debug)]
pub(crate) struct GuestImage {
    pub(crate) kernel: Kernel,
    /// Modules in the guest, in the order in which they are loaded.
    modules: Vec<String>,
    initramfs: PathBuf,
    pub(crate) work: WorkDirectory,
}

impl GuestImage {
    /// Builds one from a kernel, the modules of every machine, those of `needs`, and what `add` puts into it.
    pub(crate) fn build(
        kernel: Option<&Path>,
        needs: &[ModuleNeed],
        add: impl FnOnce(&mut Archive) -> Result<(), LabError>,
    ) -> Result<Self, LabError> {
        let kernel = Kernel::find(kernel)?;
        let work = WorkDirectory::new()?;
        let mut archive = Archive::of_this_program()?;
        add(&mut archive)?;
        let mut modules = Vec::new();
        for module in kernel.modules(&[MODULES, needs].concat())? {
            let place = format!("/modules/{}", module.name);
            archive.file(Path::new(&place), &module.contents);
            modules.push(place);
        }
        let initramfs = work.path().join("initramfs");
        std::fs::write(&initramfs, archive.finish()).at(&initramfs)?;
        Ok(Self { kernel, modules, initramfs, work })
    }

    /// Writes a guest's job; returns the archives that follow each other in its initramfs.
    pub(crate) fn with_job(&self, job: Job) -> Result<[PathBuf; 2], LabError> {
        let job = Job { modules: self.modules.clone(), ..job };
        let path = self.work.path().join("job");
        let text = serde_json::to_vec(&job).map_err(std::io::Error::other);
        let mut archive = Archive::default();
        archive.file(Path::new(JOB), &text.at(&path)?);
        std::fs::write(&path, archive.finish()).at(&path)?;
        Ok([self.initramfs.clone(), path])
    }
}
