//! Kernel files of the machine, as a fix changes them.

use diagnose::FixTarget;
use units::PageSize;

/// Kernel files of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestFiles {
    /// Whether it has the memory controller of cgroup v1.
    pub(crate) is_cgroup_v1: bool,
}

impl GuestFiles {
    /// The lab mounts the controller of v1 where systemd has the directory of all controllers.
    fn place(self, path: &str) -> String {
        match path.strip_prefix("/sys/fs/cgroup/memory/").filter(|_| self.is_cgroup_v1) {
            Some(below) => format!("/sys/fs/cgroup/{below}"),
            None => path.to_owned(),
        }
    }
}

impl FixTarget for GuestFiles {
    fn read(&mut self, path: &str) -> std::io::Result<String> {
        std::fs::read_to_string(self.place(path))
    }

    fn write(&mut self, path: &str, text: &str) -> std::io::Result<()> {
        std::fs::write(self.place(path), text)
    }

    fn page_size(&self) -> PageSize {
        PageSize::USUAL
    }
}
