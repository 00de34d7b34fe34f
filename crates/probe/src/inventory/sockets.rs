//! Memory of sockets by process. The kernel lists sockets with their memory by netlink (`sock_diag(7)`, attributes
//! `INET_DIAG_SKMEMINFO`, `UNIX_DIAG_MEMINFO`, `PACKET_DIAG_RX_RING`, `PACKET_DIAG_TX_RING`), each by its inode; `/proc/PID/fd` has
//! the inodes of a process. A ring of a packet socket is pages of its own, which no counter of the host has.
//!
//! A list is of one network namespace. Others are entered by a thread of its own (`setns(2)`, CAP_SYS_ADMIN).
//!
//! Cost: about 1 µs for each socket, within a time limit.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, sockopt};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use units::Bytes;

use super::open_files::OpenFile;
use super::searched::SearchedProcess;
use crate::kernel_file::Root;
use crate::process::links;
use crate::search_time::SearchTime;

/// At most this many sockets are kept.
const SOCKETS_MAX: usize = 1 << 20;
/// At most this many network namespaces are entered.
const NAMESPACES_MAX: usize = 256;
/// A datagram of a list: the kernel fills up to 32 KiB.
const DATAGRAM_BYTES: usize = 32 << 10;

/// Sizes of sockets, and how much of them processes have.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    by_inode: HashMap<u64, SocketSize>,
    by_process: HashMap<u32, SocketSize>,
}

/// The memory of a socket, or of all sockets of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SocketSize {
    /// What was received, and what is to be sent.
    pub(super) buffers: Bytes,
    /// Rings that a program shares with the kernel (`PACKET_RX_RING`, `PACKET_TX_RING`).
    pub(super) rings: Bytes,
}

impl Sockets {
    /// Lists the sockets of the network namespaces of these processes.
    pub(super) fn read(root: &Root, processes: &[SearchedProcess], time: SearchTime) -> Self {
        let mut sockets = Self::default();
        // A kernel without sock_diag lists none.
        let _ = sockets.list(time);
        let own = std::fs::read_link(root.path("/proc/self/ns/net")).ok();
        let mut seen: HashSet<PathBuf> = own.into_iter().collect();
        let mut others = Vec::new();
        for process in processes {
            if others.len() >= NAMESPACES_MAX || time.is_over() {
                break;
            }
            let namespace = links::read(root, process.pid, "ns/net");
            if namespace.is_some_and(|namespace| seen.insert(namespace)) {
                // It may have ended, or this user may not enter it.
                others.extend(links::open(root, process.pid, "ns/net"));
            }
        }
        if others.is_empty() {
            return sockets;
        }
        // The namespace of a thread ends with it.
        let entered = std::thread::scope(|scope| {
            let enter = scope.spawn(|| {
                let mut found = Self::default();
                for namespace in others.iter().take_while(|_| !time.is_over()) {
                    let _ = found.list_in(namespace, time);
                }
                found
            });
            enter.join().unwrap_or_default()
        });
        sockets.by_inode.extend(entered.by_inode);
        sockets
    }

    /// Takes an open file of a process if it is a socket; what several have counts for the first.
    pub(super) fn take(&mut self, pid: u32, file: &OpenFile<'_>) {
        let inode = file.inode("socket");
        if let Some(size) = inode.and_then(|inode| self.by_inode.remove(&inode)) {
            let all = self.by_process.entry(pid).or_default();
            all.buffers += size.buffers;
            all.rings += size.rings;
        }
    }

    /// What a process has open.
    pub(super) fn of(&self, pid: u32) -> SocketSize {
        self.by_process.get(&pid).copied().unwrap_or_default()
    }

    fn list_in(&mut self, namespace: &OwnedFd, time: SearchTime) -> Result<(), Errno> {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        self.list(time)
    }

    /// Lists the sockets of the network namespace of this thread.
    fn list(&mut self, time: SearchTime) -> Result<(), Errno> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        // The kernel answers at once; nothing else may make the answer late.
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(super::SEARCH_TIME_MAX))?;
        for request in requests() {
            // A protocol that is not loaded is refused.
            let _ = self.list_of(&socket, &request, time);
        }
        Ok(())
    }

    fn list_of(&mut self, socket: &OwnedFd, request: &[u8], time: SearchTime) -> Result<(), Errno> {
        rustix::net::send(socket, request, SendFlags::empty())?;
        let mut buffer = vec![0; DATAGRAM_BYTES];
        loop {
            let (length, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty())?;
            let has_more = messages(&buffer[..length], &mut |message| {
                let found = message.size();
                if let Some((inode, size)) =
                    found.filter(|(_, size)| *size != SocketSize::default())
                    && self.by_inode.len() < SOCKETS_MAX
                {
                    self.by_inode.insert(inode, size);
                }
            });
            if length == 0 || !has_more || time.is_over() {
                return Ok(());
            }
        }
    }
}

// Numbers of the kernel's interface: linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, linux/unix_diag.h,
// linux/packet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_DONE: u16 = 3;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const HEADER_BYTES: usize = 16;
const AF_UNIX: u8 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const AF_PACKET: u8 = 17;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_UDP: u8 = 17;
const INET_DIAG_SKMEMINFO: u16 = 7;
const UNIX_DIAG_MEMINFO: u16 = 5;
const UDIAG_SHOW_MEMINFO: u32 = 0x20;
const PACKET_SHOW_RING_CFG: u32 = 0x4;
const PACKET_SHOW_MEMINFO: u32 = 0x10;
const PACKET_DIAG_RX_RING: u16 = 2;
const PACKET_DIAG_TX_RING: u16 = 3;
const PACKET_DIAG_MEMINFO: u16 = 6;
const ALL_STATES: u32 = u32::MAX;

/// The requests for lists of TCP, UDP, Unix and packet sockets.
fn requests() -> Vec<Vec<u8>> {
    let inet = |family: u8, protocol: u8| {
        let mut body = vec![family, protocol, 1 << (INET_DIAG_SKMEMINFO - 1), 0];
        body.extend(ALL_STATES.to_ne_bytes());
        body.extend([0; 48]); // any addresses
        body
    };
    let mut unix = vec![AF_UNIX, 0, 0, 0];
    unix.extend(ALL_STATES.to_ne_bytes());
    unix.extend(0_u32.to_ne_bytes()); // any inode
    unix.extend(UDIAG_SHOW_MEMINFO.to_ne_bytes());
    unix.extend([0; 8]); // any cookie
    let mut packet = vec![AF_PACKET, 0, 0, 0];
    packet.extend(0_u32.to_ne_bytes()); // any inode
    packet.extend((PACKET_SHOW_RING_CFG | PACKET_SHOW_MEMINFO).to_ne_bytes());
    packet.extend([0; 8]); // any cookie
    let bodies = [
        inet(AF_INET, IPPROTO_TCP),
        inet(AF_INET6, IPPROTO_TCP),
        inet(AF_INET, IPPROTO_UDP),
        inet(AF_INET6, IPPROTO_UDP),
        unix,
        packet,
    ];
    let message = |body: Vec<u8>| {
        let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or_default();
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        message.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
        message.extend([0; 8]); // sequence, port
        message.extend(body);
        message
    };
    bodies.into_iter().map(message).collect()
}

/// The description of one socket, without its header.
#[derive(Debug, Clone, Copy)]
struct SocketMessage<'a>(&'a [u8]);

impl SocketMessage<'_> {
    /// The inode and the memory of the socket; `None` if it has neither.
    fn size(self) -> Option<(u64, SocketSize)> {
        const RINGS: [u16; 2] = [PACKET_DIAG_RX_RING, PACKET_DIAG_TX_RING];
        let family = *self.0.first()?;
        // struct unix_diag_msg, packet_diag_msg, inet_diag_msg: where the inode is, and how long it is.
        let (inode_at, length, memory) = match family {
            AF_UNIX => (4, 16, UNIX_DIAG_MEMINFO),
            AF_PACKET => (4, 16, PACKET_DIAG_MEMINFO),
            _ => (68, 72, INET_DIAG_SKMEMINFO),
        };
        let inode = u32_at(self.0, inode_at)?;
        let mut size = SocketSize::default();
        let mut rest = self.0.get(length..)?;
        while let Some((kind, value, behind)) = attribute(rest) {
            if kind == memory {
                size.buffers = buffers(value)?;
            } else if family == AF_PACKET && RINGS.contains(&kind) {
                size.rings += ring(value)?;
            }
            rest = behind;
        }
        Some((u64::from(inode), size))
    }
}

/// The pages of a ring: `struct packet_diag_ring` begins with the size of a block and their number.
fn ring(value: &[u8]) -> Option<Bytes> {
    let (block, blocks) = (u32_at(value, 0)?, u32_at(value, 4)?);
    Some(Bytes::new(u64::from(block) * u64::from(blocks)))
}

/// The memory in an attribute: what is received, sent or waits to be sent, reserved, and options.
fn buffers(value: &[u8]) -> Option<Bytes> {
    // SK_MEMINFO_*: rmem_alloc, rcvbuf, wmem_alloc, sndbuf, fwd_alloc, wmem_queued, optmem.
    let at = |index: usize| u32_at(value, index * 4).map(u64::from);
    // It is signed in the kernel, and negative for a moment.
    let is_negative = at(4)? > u64::from(i32::MAX.unsigned_abs());
    let reserved = if is_negative { 0 } else { at(4)? };
    Some(Bytes::new(at(0)? + at(2)?.max(at(5)?) + reserved + at(6)?))
}

/// The kind and the value of the first attribute, and what stands behind it.
fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    const HEADER: usize = 4;
    let length = usize::from(u16_at(bytes, 0)?);
    let value = bytes.get(HEADER..length)?;
    let behind = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((u16_at(bytes, 2)?, value, behind))
}

/// Passes on the sockets of a datagram. Returns whether more datagrams follow.
fn messages(mut datagram: &[u8], each: &mut dyn FnMut(SocketMessage<'_>)) -> bool {
    while let (Some(length), Some(kind)) = (u32_at(datagram, 0), u16_at(datagram, 4)) {
        let length = length as usize;
        match (kind, datagram.get(HEADER_BYTES..length)) {
            (NLMSG_DONE | NLMSG_ERROR, _) | (_, None) => return false,
            (SOCK_DIAG_BY_FAMILY, Some(body)) => each(SocketMessage(body)),
            _ => {}
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let value = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_ne_bytes(value.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let value = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(value.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn data_that_nobody_reads_is_memory_of_the_process() {
        let (mut writer, _reader) = UnixStream::pair().unwrap();
        writer.write_all(&[7; 64 << 10]).unwrap();
        let time = SearchTime::starts(Duration::from_secs(9));
        let root = Root::default();
        let mut sockets = Sockets::read(&root, &[], time);
        let pid = std::process::id();
        super::super::open_files::each(&root, pid, time, &mut |file| sockets.take(pid, file))
            .unwrap();
        let size = sockets.of(pid).buffers;
        assert!(size >= Bytes::from_kib(64), "{size}");
        assert!(size < Bytes::from_mib(16), "{size}");
    }

    proptest! {
        #[test]
        fn no_datagram_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0_u8..24) {
            let mut datagram = bytes;
            if datagram.len() > 6 {
                datagram[1..4].fill(0);
                datagram[4..6].copy_from_slice(&u16::from(kind).to_ne_bytes());
            }
            messages(&datagram, &mut |message| {
                message.size();
            });
        }
    }
}
