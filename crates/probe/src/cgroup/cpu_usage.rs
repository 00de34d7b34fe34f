//! CPU time of a cgroup: `cpuacct.usage` on v1 (nanoseconds), `usage_usec` of `cpu.stat` on v2.
//!
//! Both contain the cgroups below, and processes that have ended. `cpuacct.usage` since 2.6.24; `cpu.stat` is in every
//! cgroup but the root since 4.15, whether the cpu controller is enabled or not. Cost: 2 to 5 µs.

use timeline::facts::CgroupMode;
use units::{Micros, Span};

use crate::error::ParseError;
use crate::text;

/// Returns the name of the file.
pub const fn cpu_usage_file(mode: CgroupMode) -> &'static str {
    match mode {
        CgroupMode::V1 => "cpuacct.usage",
        CgroupMode::V2 => "cpu.stat",
    }
}

/// Reads the text of the file.
///
/// # Errors
/// It has no such number.
pub fn parse_cpu_usage(mode: CgroupMode, text: &[u8]) -> Result<Span, ParseError> {
    let nanos = || text::number(text::trim(text)).map(Span::from_nanos);
    let micros = || {
        let mut lines = text::lines(text);
        let usage = lines.find_map(|(_, line)| line.strip_prefix(b"usage_usec "))?;
        text::number(text::trim(usage)).map(|micros| Micros::new(micros).to_span())
    };
    let found = match mode {
        CgroupMode::V1 => nanos(),
        CgroupMode::V2 => micros(),
    };
    found.ok_or_else(|| ParseError::new(cpu_usage_file(mode), 1, "CPU time", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_unit() {
        let v2 = b"usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n";
        assert_eq!(parse_cpu_usage(CgroupMode::V2, v2), Ok(Span::from_nanos(1_500_000)));
        assert_eq!(parse_cpu_usage(CgroupMode::V1, b"1500\n"), Ok(Span::from_nanos(1500)));
        for mode in [CgroupMode::V1, CgroupMode::V2] {
            assert!(parse_cpu_usage(mode, b"user_usec 1000\n").is_err());
            assert!(parse_cpu_usage(mode, b"usage_usec x").is_err());
        }
    }
}
