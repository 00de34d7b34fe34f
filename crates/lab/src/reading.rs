//! What the kernel shows now, read by the probes that read it everywhere.

use probe::{Cgroups, HostProbe, Root};
use timeline::Sample;
use timeline::signals::{Entity, Kind, MEM_AVAILABLE, Signal};
use units::{Bytes, Quantity};

/// A reader of this machine's kernel files.
#[derive(Debug)]
pub(crate) struct KernelReader {
    host: HostProbe,
    cgroups: Cgroups,
    sample: Sample,
}

impl KernelReader {
    pub(crate) fn open() -> Self {
        let root = Root::default();
        Self {
            host: HostProbe::open(&root).slabinfo_every(1).slow_every(1),
            cgroups: Cgroups::new(&root),
            sample: Sample::default(),
        }
    }

    /// Reads a signal of the host, in its unit.
    ///
    /// # Errors
    /// Where this kernel lacks it: absent is not zero.
    pub(crate) fn host<K: Kind>(&mut self, signal: Signal<K>) -> Result<f64, String> {
        host(self.read(), signal)
    }

    /// Reads a signal of a node, a cgroup, a slab cache, …, by its key, in its unit.
    ///
    /// # Errors
    /// Where there is no such entity, or this kernel lacks the signal.
    pub(crate) fn row<K: Kind>(&mut self, key: &str, signal: Signal<K>) -> Result<f64, String> {
        self.read();
        let def = signal.def();
        if def.entity == Entity::Cgroup {
            let _ = self.cgroups.sample(&mut self.sample);
        }
        let mut rows = self.sample.table(def.entity).rows().iter();
        let row = rows.find(|row| row.key == key);
        let reading = row.and_then(|row| row.row.get(signal)).map(Quantity::as_f64);
        reading.ok_or_else(|| format!("this kernel does not show {} of {key}", def.name))
    }

    /// Reads all of the host.
    pub(crate) fn read(&mut self) -> &Sample {
        self.sample.clear();
        self.host.sample(&mut self.sample);
        &self.sample
    }
}

/// What this host has available; `None` where its kernel does not say.
pub(crate) fn available_bytes() -> Option<Bytes> {
    let available = KernelReader::open().host(MEM_AVAILABLE);
    available.ok().map(Bytes::from_f64)
}

/// A signal of the host in a sample, in its unit.
///
/// # Errors
/// Where this kernel lacks it: absent is not zero.
pub(crate) fn host<K: Kind>(sample: &Sample, signal: Signal<K>) -> Result<f64, String> {
    let reading = sample.host.get(signal).map(Quantity::as_f64);
    reading.ok_or_else(|| format!("this kernel does not show {}", signal.def().name))
}

/// A signal of all nodes, zones, … in a sample, summed, in its unit.
///
/// # Errors
/// Where this kernel lacks the signal.
pub(crate) fn sum<K: Kind>(sample: &Sample, signal: Signal<K>) -> Result<f64, String> {
    let def = signal.def();
    let rows = sample.table(def.entity).rows().iter();
    let readings: Vec<f64> = rows.filter_map(|row| Some(row.row.get(signal)?.as_f64())).collect();
    if readings.is_empty() {
        return Err(format!("this kernel does not show {}", def.name));
    }
    Ok(readings.iter().sum())
}
