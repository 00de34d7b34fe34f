//! Memory in the buffers of sockets.

use timeline::signals::{TCP_MEM, UDP_MEM};
use units::{Bytes, Pages};

use crate::evidence::Evidence;

/// The buffers of TCP and UDP sockets of all network namespaces at a sample, as the kernel counts them. They are in no line of
/// `/proc/meminfo`: partly slab, partly pages that no counter covers. `None` if the page size is unknown.
pub(crate) fn buffers(cx: &Evidence<'_>, index: usize) -> Option<Bytes> {
    let page = cx.facts.page_size?;
    let pages = |signal| cx.timeline.at(signal, index);
    let counted: Pages = [TCP_MEM, UDP_MEM].into_iter().filter_map(pages).sum();
    Some(counted.to_bytes(page))
}
