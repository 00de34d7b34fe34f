//! The host's pressure files and their signals.

use timeline::signals::{
    CPU_PRESSURE, IO_PRESSURE, MEMORY_PRESSURE, PSI_CPU_FULL, PSI_CPU_SOME, PSI_IO_FULL,
    PSI_IO_FULL_AVG10, PSI_IO_FULL_AVG60, PSI_IO_FULL_AVG300, PSI_IO_SOME, PSI_IO_SOME_AVG10,
    PSI_IO_SOME_AVG60, PSI_IO_SOME_AVG300, PSI_MEMORY_FULL, PSI_MEMORY_FULL_AVG10,
    PSI_MEMORY_FULL_AVG60, PSI_MEMORY_FULL_AVG300, PSI_MEMORY_SOME, PSI_MEMORY_SOME_AVG10,
    PSI_MEMORY_SOME_AVG60, PSI_MEMORY_SOME_AVG300,
};

use crate::pressure::{Averages, Pressure};

/// The pressure files of the host.
pub const PRESSURE: [Pressure; 3] = [
    Pressure {
        file: MEMORY_PRESSURE,
        some: PSI_MEMORY_SOME,
        full: PSI_MEMORY_FULL,
        averages: Some(Averages {
            some: [PSI_MEMORY_SOME_AVG10, PSI_MEMORY_SOME_AVG60, PSI_MEMORY_SOME_AVG300],
            full: [PSI_MEMORY_FULL_AVG10, PSI_MEMORY_FULL_AVG60, PSI_MEMORY_FULL_AVG300],
        }),
    },
    Pressure {
        file: IO_PRESSURE,
        some: PSI_IO_SOME,
        full: PSI_IO_FULL,
        averages: Some(Averages {
            some: [PSI_IO_SOME_AVG10, PSI_IO_SOME_AVG60, PSI_IO_SOME_AVG300],
            full: [PSI_IO_FULL_AVG10, PSI_IO_FULL_AVG60, PSI_IO_FULL_AVG300],
        }),
    },
    Pressure { file: CPU_PRESSURE, some: PSI_CPU_SOME, full: PSI_CPU_FULL, averages: None },
];
