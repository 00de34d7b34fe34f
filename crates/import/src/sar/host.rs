//! What sar says of the host apart from its tables.

use timeline::Facts;
use units::PageSize;

/// The line above the tables, or its like in `sadf`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Host {
    /// The kernel's release: `5.10.0-8-amd64`.
    pub(crate) release: Option<String>,
    /// The machine: `x86_64`.
    pub(crate) machine: Option<String>,
    /// CPUs.
    pub(crate) cpus: Option<u32>,
}

impl Host {
    /// Names are short; what is longer is none.
    const LONGEST: usize = 128;

    /// Notes the kernel's release.
    pub(crate) fn set_release(&mut self, text: &str) {
        if self.release.is_none() && (1..Self::LONGEST).contains(&text.len()) {
            self.release = Some(text.to_owned());
        }
    }

    /// Notes the machine.
    pub(crate) fn set_machine(&mut self, text: &str) {
        if self.machine.is_none() && (1..Self::LONGEST).contains(&text.len()) {
            self.machine = Some(text.to_owned());
        }
    }

    /// Adds what is not known yet to the facts.
    pub(crate) fn tell(&self, facts: &mut Facts) {
        if let Some(release) = &self.release {
            facts.note_release(release);
        }
        if let Some(cpus) = self.cpus {
            facts.cpus.get_or_insert(cpus);
        }
        // Elsewhere pages may be larger, and sar does not tell.
        let is_x86 = |machine: &str| machine.contains("x86") || machine.ends_with("86");
        if self.machine.as_deref().is_none_or(is_x86) {
            facts.page_size.get_or_insert(PageSize::USUAL);
        }
    }
}
