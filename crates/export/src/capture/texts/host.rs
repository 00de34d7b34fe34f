//! Host files with several numbers a line: `/proc/stat`, `/proc/net/sockstat`, pressure, and those of [`columns`].

use timeline::Row;
use timeline::signals::{
    CPU_PRESSURE, IO_PRESSURE, MEMORY_PRESSURE, SOCKSTAT, STAT, TCP_MEM, UDP_MEM, field_of,
};

use super::{Texts, columns, leading, push, raw};

/// Writes these files.
pub(super) fn write(host: &Row, texts: &mut Texts) {
    stat(host, texts);
    for (protocol, signal) in [("TCP", TCP_MEM), ("UDP", UDP_MEM)] {
        if let Some(pages) = host.get(signal) {
            push(texts, SOCKSTAT, format_args!("{protocol}: mem {}\n", pages.get()));
        }
    }
    for file in [MEMORY_PRESSURE, IO_PRESSURE, CPU_PRESSURE] {
        pressure(host, file, file, texts);
    }
    columns::host(host, texts);
}

/// Writes `/proc/stat`. The catalogue has the columns of the line `cpu` in the kernel's order.
fn stat(host: &Row, texts: &mut Texts) {
    let is_column = |field: &&str| field.starts_with("cpu ");
    let all = || field_of(STAT).map(|(field, signal, _)| (field, raw(host, signal)));
    let columns = all().filter(|(field, _)| is_column(field));
    let columns = leading(columns.map(|(_, raw)| raw));
    if !columns.is_empty() {
        push(texts, STAT, format_args!("cpu  {columns}\n"));
    }
    for (field, raw) in all().filter(|(field, _)| !is_column(field)) {
        if let Some(raw) = raw {
            push(texts, STAT, format_args!("{field} {raw}\n"));
        }
    }
}

/// Writes lines `some avg10=0.00 … total=7`; averages only if they were read.
pub(super) fn pressure(row: &Row, file: &'static str, path: &str, texts: &mut Texts) {
    for who in ["some", "full"] {
        let mut line = who.to_owned();
        let mut total = None;
        for (field, signal, _) in field_of(file) {
            let (Some((prefix, what)), Some(raw)) = (field.split_once(' '), raw(row, signal))
            else {
                continue;
            };
            match what {
                _ if prefix != who => {}
                "total" => total = Some(raw),
                // Stored as µs of each second, printed as percent.
                window => {
                    let (percent, rest) = (raw / 10_000, raw % 10_000 / 100);
                    line.push_str(&format!(" {window}={percent}.{rest:02}"));
                }
            }
        }
        if let Some(total) = total {
            push(texts, path, format_args!("{line} total={total}\n"));
        }
    }
}
