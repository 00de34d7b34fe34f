//! `free`, of any procps: old columns (`buffers cached`, `-/+ buffers/cache`) and new (`buff/cache available`), all its
//! units, one line (`-L`), a series, headings in some other languages.
//!
//! What its words mean changed: "used" contains buffers and cache before procps 3.3.10, and is total − available since
//! 4.0; so it is not used here but to check that the row adds up. "buff/cache" contains reclaimable slab since 3.3.10.
//! "shared" was always 0 before 3.3.10 on kernels after 2.6.

use timeline::signals::{
    COMMIT_LIMIT, COMMITTED_AS, MEM_AVAILABLE, MEM_BUFFERS, MEM_CACHED, MEM_FREE, MEM_SHMEM,
    MEM_TOTAL, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};

use super::fill::SLAB_IN_CACHE;
use super::{Block, Form, Reading};
use crate::figure::Figure;
use crate::looks::Look;
use crate::times::{Printed, Series};

mod options;
mod sums;
mod table;

use options::Options;
use table::Table;

pub(super) const FORM: Form = Form { name: "free", read };

fn read(reading: &mut Reading<'_>) -> Option<Block> {
    if !may_begin(reading.lines) {
        return None;
    }
    let options = Options::of(reading.command.unwrap_or_default());
    one_line(reading, &options).or_else(|| tables(reading, &options))
}

/// Whether the first lines have a word that every printing of `free` has: any line of a long log is asked, and reading a
/// stamp costs more.
fn may_begin(lines: &[&str]) -> bool {
    let has = |line: &&&str| table::MEM.iter().any(|name| line.contains(name));
    // A time, the heading, the row.
    lines.iter().take(3).any(|line| has(&line))
}

/// Tables one after the other, as far as they are known to be a series.
fn tables(reading: &mut Reading<'_>, options: &Options) -> Option<Block> {
    let mut block = Block::default();
    let mut series = Series::of(options.every);
    loop {
        let rest = &reading.lines[block.lines..];
        let blank = match block.lines {
            0 => 0,
            _ => rest
                .iter()
                .take(2)
                .take_while(|line| line.is_empty())
                .count(),
        };
        let Some(table) = Table::read(&rest[blank..], options) else {
            break;
        };
        let Some((when, _)) = series.next(table.time) else {
            break;
        };
        let mut look = look(&table);
        look.when = when;
        if block.lines == 0 {
            block.what = format!("free, {}", table.era());
            block.unit = table.unit.name;
        }
        let problems = table.problems.into_iter();
        let first = block.lines + blank;
        block
            .problems
            .extend(problems.map(|(line, problem)| (first + line, problem)));
        if !look.sample.host.is_empty() {
            reading.look(look);
        }
        block.lines += blank + table.lines;
    }
    (block.lines > 0).then_some(block)
}

/// What a table says.
fn look(table: &Table<'_>) -> Look {
    let mut look = Look::default();
    let mem = |column| table.figure(column);
    // Before 3.3.10 a 0 means that free does not know.
    let knows = |shared: &Figure| table.has("available") || shared.value > 0.0;
    // busybox prints both its column and the row of sums only where the kernel has no MemAvailable, and then 0.
    let measured = |available: &Figure| available.value > 0.0 || !table.has_sums;
    for (signal, figure) in [
        (MEM_TOTAL, mem("total")),
        (MEM_FREE, mem("free")),
        (MEM_AVAILABLE, mem("available").filter(measured)),
        (MEM_BUFFERS, mem("buffers")),
        (
            MEM_CACHED,
            mem("buff/cache").or(mem("cache")).or(mem("cached")),
        ),
        (MEM_SHMEM, mem("shared").filter(knows)),
        (SWAP_TOTAL, table.swap.first().copied()),
        (SWAP_FREE, table.swap.get(2).copied()),
        (SWAP_USED, table.swap.get(1).copied()),
        (COMMIT_LIMIT, table.commit.first().copied()),
        (COMMITTED_AS, table.commit.get(1).copied()),
    ] {
        if let Some(figure) = figure {
            look.set_size(signal.id(), figure, 1.0);
        }
    }
    if mem("buff/cache").is_some() {
        look.may_be_off(MEM_CACHED.id(), SLAB_IN_CACHE);
    }
    look
}

/// `free -L`: `SwapUse 0 CachUse 2163928 MemUse 3498460 MemFree 10482072`, a line for each look.
fn one_line(reading: &mut Reading<'_>, options: &Options) -> Option<Block> {
    let mut block = Block {
        what: "free -L".to_owned(),
        ..Block::default()
    };
    let mut series = Series::of(options.every);
    while let Some(line) = reading.lines.get(block.lines) {
        let Some((figures, time)) = figures_of_line(line, options) else {
            break;
        };
        let Some((when, _)) = series.next(time) else {
            break;
        };
        let unit = options.unit(&figures);
        let mut look = Look::default();
        for (signal, figure) in [SWAP_USED, MEM_CACHED, MEM_FREE].into_iter().zip(figures) {
            look.set_size(signal.id(), figure, unit.bytes);
        }
        look.may_be_off(MEM_CACHED.id(), SLAB_IN_CACHE);
        look.when = when;
        reading.look(look);
        block.unit = unit.name;
        block.lines += 1;
    }
    (block.lines > 0).then_some(block)
}

/// Used swap, cache with reclaimable slab, free memory.
fn figures_of_line(line: &str, options: &Options) -> Option<([Figure; 3], Option<Printed>)> {
    let (time, line) = table::stamped(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    let [
        "SwapUse",
        swap,
        "CachUse",
        cache,
        "MemUse",
        _,
        "MemFree",
        free,
    ] = words.as_slice()
    else {
        return None;
    };
    let figure = |word| Figure::parse(word, options.base);
    Some(([figure(swap)?, figure(cache)?, figure(free)?], time))
}

#[cfg(test)]
mod tests;
