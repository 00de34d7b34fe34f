//! Facts about the host in the head of sar's output.

use timeline::Facts;
use units::PageSize;

/// The line above the tables, or its equivalent in `sadf -j`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SarHost {
    /// The kernel's release: `5.10.0-8-amd64`.
    pub(crate) release: Option<String>,
    /// The machine: `x86_64`.
    pub(crate) machine: Option<String>,
    pub(crate) cpus: Option<u32>,
}

impl SarHost {
    /// At most 128 bytes of a name; none is longer.
    const NAME_BYTES_MAX: usize = 128;

    /// Notes the kernel's release.
    pub(crate) fn set_release(&mut self, text: &str) {
        Self::set(&mut self.release, text);
    }

    /// Notes the machine.
    pub(crate) fn set_machine(&mut self, text: &str) {
        Self::set(&mut self.machine, text);
    }

    fn set(name: &mut Option<String>, text: &str) {
        if (1..Self::NAME_BYTES_MAX).contains(&text.len()) {
            name.get_or_insert_with(|| text.to_owned());
        }
    }

    /// Adds what the facts lack.
    pub(crate) fn note_facts(&self, facts: &mut Facts) {
        if let Some(release) = &self.release {
            facts.note_release(release);
        }
        if let Some(cpus) = self.cpus {
            facts.cpus.get_or_insert(cpus);
        }
        // On other machines pages may be larger, and sar does not report their size.
        let is_x86 = |machine: &str| machine.contains("x86") || machine.ends_with("86");
        if self.machine.as_deref().is_none_or(is_x86) {
            facts.page_size.get_or_insert(PageSize::USUAL);
        }
    }
}
