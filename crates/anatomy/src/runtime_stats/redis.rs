//! Redis: the section `Memory` of `INFO` (versions 4 to 8, and Valkey), fields as `name:value` lines.
//!
//! `used_memory` is what Redis asked its allocator for; with jemalloc the allocator's own sizes stand beside it. Sizes are
//! bytes. What Redis calls overhead is what is not data: buffers of clients and replicas, tables of keys.

use units::{Bytes, Ratio};

use super::{RuntimeStatsError, StatsKind, printable};

/// The command that prints it.
pub const COMMAND: &str = "redis-cli INFO memory > FILE (INFO server beside it names the process)";

/// A field that only this report has.
pub(super) const FIELD: &str = "used_memory_dataset:";

/// What Redis reports about its memory; absent where its version has no such field.
#[allow(missing_docs)] // names say it
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedisStats {
    pub version: Option<String>,
    pub pid: Option<u64>,
    /// What Redis has allocated.
    pub used: Bytes,
    /// Of that, keys and values.
    pub dataset: Option<Bytes>,
    /// Of that, all else: tables, buffers of clients and of replication.
    pub overhead: Option<Bytes>,
    /// As the kernel counts it.
    pub rss: Option<Bytes>,
    /// The limit; `None` without one.
    pub limit: Option<Bytes>,
    pub policy: Option<String>,
    /// With its version: `jemalloc-5.3.0`, `libc`.
    pub allocator: Option<String>,
    /// What jemalloc has given out.
    pub allocated: Option<Bytes>,
    /// Pages with something of it.
    pub active: Option<Bytes>,
    /// The most that can be in RAM.
    pub resident: Option<Bytes>,
    /// Buffers of clients.
    pub clients: Option<Bytes>,
    /// Buffers of replicas, and the backlog for them.
    pub replication: Option<Bytes>,
    /// The buffer of the append-only file.
    pub append_only: Option<Bytes>,
    /// Whether it moves values together now.
    pub is_defragmenting: bool,
}

impl RedisStats {
    /// Reads the last report of a text.
    ///
    /// # Errors
    /// [`RuntimeStatsError`] if a size is no number, or the used memory is absent.
    pub fn parse(text: &[u8]) -> Result<Self, RuntimeStatsError> {
        let mut stats = Self::default();
        let mut used = None;
        for (line, bytes) in probe::text::lines(text) {
            let Some(colon) = memchr::memchr(b':', bytes) else {
                continue;
            };
            let (name, value) = (&bytes[..colon], bytes[colon + 1..].trim_ascii());
            let size = || {
                let number = probe::text::number(value).map(Bytes::new);
                number.ok_or_else(|| RuntimeStatsError::Malformed {
                    kind: StatsKind::Redis,
                    line,
                    expected: "a number of bytes",
                    found: printable(bytes),
                })
            };
            let word = || Some(printable(value));
            match name {
                b"redis_version" | b"valkey_version" => stats.version = word(),
                b"process_id" => stats.pid = probe::text::number(value),
                b"used_memory" => used = Some(size()?),
                b"used_memory_dataset" => stats.dataset = Some(size()?),
                b"used_memory_overhead" => stats.overhead = Some(size()?),
                b"used_memory_rss" => stats.rss = Some(size()?),
                b"maxmemory" => stats.limit = Some(size()?).filter(|limit| *limit > Bytes::ZERO),
                b"maxmemory_policy" => stats.policy = word(),
                b"mem_allocator" => stats.allocator = word(),
                b"allocator_allocated" => stats.allocated = Some(size()?),
                b"allocator_active" => stats.active = Some(size()?),
                b"allocator_resident" => stats.resident = Some(size()?),
                b"mem_clients_normal" | b"mem_clients_slaves" => {
                    stats.clients = Some(stats.clients.unwrap_or_default() + size()?);
                }
                b"mem_replication_backlog" => stats.replication = Some(size()?),
                b"mem_aof_buffer" => stats.append_only = Some(size()?),
                b"active_defrag_running" => stats.is_defragmenting = value != b"0",
                _ => {}
            }
        }
        let field = "used_memory";
        stats.used = used.ok_or(RuntimeStatsError::Missing { kind: StatsKind::Redis, field })?;
        Ok(stats)
    }

    /// Returns what is free between values, in pages that hold some: `active − allocated`.
    pub fn unused(&self) -> Option<Bytes> {
        Some(self.active?.saturating_sub(self.allocated?))
    }

    /// Returns pages that are free, and not returned yet: `resident − active`.
    pub fn unpurged(&self) -> Option<Bytes> {
        Some(self.resident?.saturating_sub(self.active?))
    }

    /// Returns which part of active pages is free.
    pub fn unused_share(&self) -> Option<Ratio> {
        self.unused()?.ratio_of(self.active?)
    }
}
