//! `free` of any procps: old columns (`buffers cached`, `-/+ buffers/cache`) and new (`buff/cache available`), all
//! units, one line (`-L`), a series, headings in other languages; also flattened into one line, and as a Markdown table.
//!
//! The columns changed their meaning. "used" includes buffers and cache before procps 3.3.10, and is total − available
//! since 4.0, so it only serves to check that the row adds up. "buff/cache" includes reclaimable slab since 3.3.10.
//! "shared" is always 0 before 3.3.10 on kernels after 2.6.

use timeline::signals::{
    COMMIT_LIMIT, COMMITTED_AS, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_SHMEM,
    MEM_TOTAL, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};

use super::Form;
use super::size_unit::SLAB_IN_CACHE;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::PrintedFigure;
use crate::text::line_scan::BlockStart;
use crate::text::times::{PrintedTime, SampleTimes};

mod options;
mod relaid;
mod sums;
mod table;

use options::FreeOptions;
use relaid::RelaidTable;
use table::FreeTable;

pub(super) const FORM: Form = Form {
    name: "free",
    // A time, the heading, its rule, the row.
    begins: BlockStart { lines: 4, ..BlockStart::with(&table::MEM) },
    read,
};

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let options = FreeOptions::from_command(input.command.unwrap_or_default());
    one_line(input, &options)
        .or_else(|| relaid_table(input, &options))
        .or_else(|| tables(input, &options))
}

/// Tables one after the other, as long as they are a series.
fn tables(input: &mut BlockReader<'_>, options: &FreeOptions) -> Option<TextBlock> {
    let mut block = TextBlock::default();
    let mut series = SampleTimes::new(options.every);
    loop {
        let rest = &input.lines[block.lines..];
        let most_blank = if block.lines == 0 { 0 } else { 2 };
        let blank = rest.iter().take(most_blank).take_while(|line| line.is_empty()).count();
        let Some(table) = FreeTable::read(&rest[blank..], options) else {
            break;
        };
        let Some((when, _)) = series.next(table.time) else {
            break;
        };
        let mut snapshot = snapshot(&table);
        snapshot.when = when;
        if block.lines == 0 {
            block.what = format!("free, {}", table.version());
            block.unit = table.unit.name;
        }
        let problems = table.problems.into_iter();
        let first = block.lines + blank;
        block.problems.extend(problems.map(|(line, problem)| (first + line, problem)));
        if !snapshot.sample.host.is_empty() {
            input.add(snapshot);
        }
        block.lines += blank + table.lines;
    }
    (block.lines > 0).then_some(block)
}

/// A table that a web page or a document laid out anew: in one line, or with bars between its cells.
fn relaid_table(input: &mut BlockReader<'_>, options: &FreeOptions) -> Option<TextBlock> {
    let relaid = RelaidTable::of(input.lines)?;
    let rows: Vec<&str> = relaid.rows.iter().map(String::as_str).collect();
    let table = FreeTable::read(&rows, options)?;
    let problems = table.problems.iter();
    let block = TextBlock {
        what: format!("free, {}", table.version()),
        lines: relaid.lines,
        unit: table.unit.name,
        problems: problems.map(|(_, text)| (0, text.clone())).collect(),
        not_understood: 0,
        other_system: "",
    };
    let snapshot = snapshot(&table);
    if !snapshot.sample.host.is_empty() {
        input.add(snapshot);
    }
    Some(block)
}

/// The snapshot of a table.
fn snapshot(table: &FreeTable<'_>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mem = |column| table.figure(column);
    // Before 3.3.10 a 0 means "unknown".
    let is_known = |shared: &PrintedFigure| table.has("available") || shared.value > 0.0;
    // busybox prints the column and the row of sums if the kernel has no MemAvailable, and then 0.
    let is_measured = |available: &PrintedFigure| available.value > 0.0 || !table.has_sums;
    for (signal, figure) in [
        (MEM_TOTAL, mem("total")),
        (MEM_FREE, mem("free")),
        (MEM_AVAILABLE, mem("available").filter(is_measured)),
        (MEM_BUFFERS, mem("buffers")),
        (MEM_CACHED, mem("buff/cache").or(mem("cache")).or(mem("cached"))),
        (MEM_SHMEM, mem("shared").filter(is_known)),
        (SWAP_TOTAL, table.swap.first().copied()),
        (SWAP_FREE, table.swap.get(2).copied()),
        (SWAP_USED, table.swap.get(1).copied()),
        (COMMIT_LIMIT, table.commit.first().copied()),
        (COMMITTED_AS, table.commit.get(1).copied()),
    ] {
        if let Some(figure) = figure {
            snapshot.set_size(signal.id(), figure, 1.0);
        }
    }
    if mem("buff/cache").is_some() {
        snapshot.set_error(MEM_CACHED.id(), SLAB_IN_CACHE);
    }
    snapshot
}

/// `free -L`: `SwapUse 0 CachUse 2163928 MemUse 3498460 MemFree 10482072`, one line per sample.
fn one_line(input: &mut BlockReader<'_>, options: &FreeOptions) -> Option<TextBlock> {
    let mut block = TextBlock { what: "free -L".to_owned(), ..TextBlock::default() };
    let mut series = SampleTimes::new(options.every);
    while let Some(line) = input.lines.get(block.lines) {
        let Some((figures, time)) = figures_of_line(line, options) else {
            break;
        };
        let Some((when, _)) = series.next(time) else {
            break;
        };
        let unit = options.unit(&figures);
        let mut snapshot = Snapshot::default();
        for (signal, figure) in [SWAP_USED, MEM_CACHED, MEM_FREE].into_iter().zip(figures) {
            snapshot.set_size(signal.id(), figure, unit.bytes);
        }
        snapshot.set_error(MEM_CACHED.id(), SLAB_IN_CACHE);
        snapshot.when = when;
        input.add(snapshot);
        block.unit = unit.name;
        block.lines += 1;
    }
    (block.lines > 0).then_some(block)
}

/// Used swap, cache (with reclaimable slab) and free memory.
fn figures_of_line(
    line: &str,
    options: &FreeOptions,
) -> Option<([PrintedFigure; 3], Option<PrintedTime>)> {
    let (time, line) = table::stamped(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["SwapUse", swap, "CachUse", cache, "MemUse", _, "MemFree", free] = words.as_slice() else {
        return None;
    };
    let figure = |word| PrintedFigure::parse(word, options.base);
    Some(([figure(swap)?, figure(cache)?, figure(free)?], time))
}

#[cfg(test)]
mod tests;
