//! Remarks about the host: container or host, one machine or two.

use timeline::signals::MEM_AVAILABLE;
use units::{Bytes, Quantity};

use crate::evidence::Evidence;
use crate::measures::own_limit::OwnLimit;

/// Returns remarks on a container: its own memory, then that of the host.
pub(super) fn container(cx: &Evidence<'_>, limit: Option<&OwnLimit>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(limit) = limit {
        remarks.push(format!(
            "This container (cgroup {}) uses {}, page cache included.",
            limit.cgroup,
            limit.words()
        ));
        if let (Ok(ram), Some(available)) = (cx.ram(), cx.timeline.last(MEM_AVAILABLE)) {
            remarks.push(format!(
                "The whole host: {available} of {ram} available; the charts show the host."
            ));
        }
    }
    if let Some(container) = &cx.facts.container {
        let signs = container.signs.join(", ");
        remarks.push(if container.meminfo_is_own {
            format!(
                "Seen from inside a container ({signs}): /proc/meminfo shows the container, not \
                 the host."
            )
        } else {
            format!("Seen from inside a container ({signs}): processes outside it are not visible.")
        });
    }
    remarks
}

/// Returns a remark if MemTotal differs between samples: probably two machines. `sizes` are the values of all samples.
pub(crate) fn two_machines(sizes: impl Iterator<Item = Bytes>) -> Option<String> {
    /// A larger ratio is a difference: an engineering choice. `free -g` and a kernel report differ by less, and so do
    /// most balloons.
    const FACTOR: f64 = 1.25;
    let sizes: Vec<Bytes> = sizes.filter(|size| *size > Bytes::ZERO).collect();
    let (least, most) = (sizes.iter().min()?, sizes.iter().max()?);
    (most.as_f64() > least.as_f64() * FACTOR).then(|| {
        format!(
            "MemTotal is {least} in one sample and {most} in another: probably two machines, else \
             memory was added or removed."
        )
    })
}
