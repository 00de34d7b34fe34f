//! The memory box of `btop`: total, available, cached, free, each with its unit; swap below them or, by default, among the disks
//! beside them. Sizes are binary. A narrow box has the first letters of names.

use timeline::SignalId;
use timeline::signals::{
    MEM_AVAILABLE, MEM_CACHED, MEM_FREE, MEM_TOTAL, SWAP_FREE, SWAP_TOTAL, SWAP_USED,
};

use super::Form;
use crate::block::{BlockReader, TextBlock};
use crate::builder::Snapshot;
use crate::text::figure::PrintedFigure;
use crate::text::line_scan::BlockStart;

pub(super) const FORM: Form = Form { name: "btop", begins: BlockStart::with(&["mem┌"]), read };

/// At most 60 lines of the box: graphs lie between the figures.
const LINES_MAX: usize = 60;

fn read(input: &mut BlockReader<'_>) -> Option<TextBlock> {
    let first = input.lines.first()?.trim_start();
    if !first.starts_with('╭') || !first.contains("mem┌") {
        return None;
    }
    let mut snapshot = Snapshot::default();
    let mut lines = 1;
    let (mut swap_is_below, mut swap_is_beside) = (false, false);
    for line in input.lines.iter().skip(1).take(LINES_MAX) {
        let Some(inside) = line.trim_start().strip_prefix(['│', '├']) else {
            lines += usize::from(line.trim_start().starts_with('╰'));
            break;
        };
        lines += 1;
        let mut cells = inside.split(['│', '├', '┤']);
        let memory = cells.next().and_then(named_size);
        if let Some((name, figure)) = memory {
            swap_is_below |= name == "Swap:";
            if let Some(signal) = signal(&name, swap_is_below) {
                snapshot.set_size(signal, figure, 1.0);
            }
        }
        let Some((name, figure)) = cells.next().and_then(named_size) else {
            continue;
        };
        // Swap stands in one place: a later disk of that name is a file system.
        let is_swap = name == "swap" && !swap_is_below && snapshot.host(SWAP_TOTAL.id()).is_none();
        let signal = match name.as_str() {
            "swap" if is_swap => Some(SWAP_TOTAL.id()),
            "Used:" | "U" if swap_is_beside => Some(SWAP_USED.id()),
            "Free:" | "F" if swap_is_beside => Some(SWAP_FREE.id()),
            _ => None,
        };
        // Another disk begins with its name.
        let is_part = ["Used:", "Free:", "U", "F", "IO%", "IO"].contains(&name.as_str());
        swap_is_beside = is_swap || (swap_is_beside && is_part);
        if let Some(signal) = signal {
            snapshot.set_size(signal, figure, 1.0);
        }
    }
    snapshot.host(MEM_TOTAL.id())?;
    input.add(snapshot);
    Some(TextBlock { what: "btop".to_owned(), unit: "as printed", lines, ..TextBlock::default() })
}

/// The first word of a cell and the size at its end: `Used: 14% ■■■ 85.8 MiB`, `F ⣤⣤⣤278 MiB`, `swap──599M`.
fn named_size(cell: &str) -> Option<(String, PrintedFigure)> {
    let is_drawn = |c| matches!(c, '─' | '■' | '▲' | '▼' | '\u{2800}'..='\u{28ff}');
    let cell = cell.replace(is_drawn, " ");
    let words: Vec<&str> = cell.split_whitespace().collect();
    let (name, size) = match words.as_slice() {
        [name, .., figure, "Byte"] => (name, format!("{figure}B")),
        [name, .., figure, unit] if unit.starts_with(char::is_alphabetic) => {
            (name, format!("{figure}{unit}"))
        }
        [name, .., size] => (name, (*size).to_owned()),
        _ => return None,
    };
    // A share of three digits stands right behind the colon: `Used:100%`.
    let name =
        name.split_once(':').map_or_else(|| (*name).to_owned(), |(name, _)| format!("{name}:"));
    let figure = PrintedFigure::with_unit(&size)?;
    // Decimals are truncated, not rounded (seen: 22.48 GiB as 22.4): a whole step.
    Some((name, PrintedFigure { error: 2.0 * figure.error, ..figure }))
}

/// What a name in the box means, before and behind the total of swap.
fn signal(name: &str, in_swap: bool) -> Option<SignalId> {
    Some(match (name, in_swap) {
        ("Total:", false) => MEM_TOTAL.id(),
        ("Available:" | "A", false) => MEM_AVAILABLE.id(),
        ("Cached:" | "C", false) => MEM_CACHED.id(),
        ("Free:" | "F", false) => MEM_FREE.id(),
        ("Swap:", _) => SWAP_TOTAL.id(),
        ("Used:" | "U", true) => SWAP_USED.id(),
        ("Free:" | "F", true) => SWAP_FREE.id(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{are_within_rounding, paste, survives};
    use units::Bytes;

    const SCREEN: &str = "\
╭─┐²mem┌────────────────────┬─┐disks┌────────────────┐io┌─╮╭─┐⁴proc┌┐filter┌────╮
│ Total:           23.5 GiB ├─────────────────────────────┤│    Pid: Program:   │
├─Used:────────────1.06─GiB─┤                             ││   14818 chromium   │
│   5%                      │                             ││   15794 chromium   │
├─Available:───────22.4─GiB─┤                             ││   14878 chromium   │
├─Cached:──────────9.98─GiB─┤                             ││   15875 python3    │
├─Free:────────────12.3─GiB─┤                             ││   14920 chromium   │
│ Swap:            2.00 GiB │                             ││                    │
│ Used:             512 MiB │                             ││                    │
╰───────────────────────────┴─────────────────────────────╯╰────────────────────╯
";

    /// `/proc/meminfo`, read right after the screen.
    #[test]
    fn figures_are_the_kernels_within_their_rounding() {
        let opened = paste(SCREEN);
        let timeline = &opened.timeline;
        let sizes = [
            (MEM_TOTAL, 24_684_084),
            (MEM_AVAILABLE, 23_571_428),
            (MEM_CACHED, 10_467_204),
            (MEM_FREE, 12_931_264),
        ];
        are_within_rounding(timeline, &sizes);
        assert_eq!(timeline.last(SWAP_TOTAL), Some(Bytes::from_gib(2)));
        assert_eq!(timeline.last(SWAP_USED), Some(Bytes::from_mib(512)));
        assert_eq!(opened.origin.inputs[0].last_line, 10);
        survives(SCREEN);
    }

    /// 1.3.2 with its default settings.
    #[test]
    fn swap_stands_among_the_disks() {
        let screen = "\
╭─┐²mem┌──────────────────┬─┐disks┌─────────────┐io┌─╮╭
│ Total:          588 MiB ├─root────▲1.0M───2.88─GiB─┤│
├─Used:───────────575─MiB─┤ IO% ⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⢀⣀⣀⣀⣀⣀⣀ ││
│  98%             ⣿⣿⣿⣿⣿⣿⣿│ Used: 30% ■■■■■  884 MiB ││
│                  ⣿⣿⣿⣿⣿⣿⣿│ Free: 70% ■■■■■ 2.01 GiB ││
├─Available:─────13.1─MiB─┤                          ││
│   2%                    ├─swap─────────────599─MiB─┤│
│                         │ Used: 14% ■■■■■ 85.8 MiB ││
├─Cached:────────5.04─MiB─┤ Free: 86% ■■■■■  514 MiB ││
│   1%                    │                          ││
│                         ├──────────────────────────┤│
├─Free:──────────51.2─MiB─┤                          ││
│   9%                    │                          ││
│                  ⣀⣀⣀⣀⣀⣀⣀│                          ││
";
        let timeline = paste(screen).timeline;
        let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
        assert_eq!([MEM_TOTAL, MEM_FREE, SWAP_TOTAL].map(mib), [588, 51, 599].map(Some));
        assert_eq!([SWAP_USED, SWAP_FREE].map(mib), [85, 514].map(Some));
        // A share of three digits, as btop writes it (`rjust(percent + "%", 4)`).
        let full = screen.replace("Used: 14% ■■■■■ 85.8 MiB", "Used:100% ■■■■■  599 MiB");
        let full = full.replace("Free: 86% ■■■■■  514 MiB", "Free:  0% ■■■■■   0 Byte");
        let timeline = paste(&full).timeline;
        let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
        assert_eq!([SWAP_USED, SWAP_FREE].map(mib), [599, 0].map(Some));
        // A file system that is mounted at /swap stands behind the swap areas.
        let mounted = screen.replace(
            "│                         ├──────────────────────────┤│\n├─Free",
            "│                         ├─swap────────────9.00─GiB─┤│\n├─Free",
        );
        assert_ne!(mounted, screen);
        let timeline = paste(&mounted).timeline;
        let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
        assert_eq!([SWAP_TOTAL, SWAP_USED].map(mib), [599, 85].map(Some));
        survives(screen);
    }

    /// The same on a terminal of 80 columns.
    #[test]
    fn a_narrow_box_has_the_first_letters_of_names() {
        let screen = "\
╭─┐²mem┌──────────┬─┐disks┌───┐io┌─╮╭─┐⁴proc┌┐filter┌─────┐tree┌┐< cpu lazy >┌─╮
│ Total:  588 MiB ├─root──────2.9G─┤│    Pid: Program  User:  MemB       Cpu% ↑│
│ U     ⣤⣤⣤255 MiB│ IO ⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀  ││     831 btop    root   5.6M ⣀⣀⣀⣀⣀  2.0  █│
│ A     ⣶⣶⣶333 MiB│U ■■■■■■■■■ 884M││      18 rcu_pre root     0B ⣀⣀⣀⣀⣀  0.5   │
│ C     ⣀⣀⣀110 MiB│F ■■■■■■■■■ 2.0G││       1 systemd root    13M ⣀⣀⣀⡀⣀  0.0   │
│ F     ⣤⣤⣤291 MiB├─swap──────599M─┤│     828 tmux: s root   8.0M ⣀⣀⣀⣀⣀  0.7   │
├─────────────────┤U ■■■■■■■■■   0B││     290 systemd root   9.3M ⣀⣀⣀⣀⣀  0.0   │
│                 │F ■■■■■■■■■ 599M││     762 python3 root   109M ⣀⣀⣀⣀⢀  0.2   │
╰─────────────────┴────────────────╯│     825 snap    root   1.5M ⣀⣀⣀⣀⣀  0.0   │
╭─┐³net┐sync┌┐auto┌┐zero┌┐<b lo n>┌╮│     315 systemd root   8.0M ⣀⣀⣀⣀⣀  0.0   │
";
        let timeline = paste(screen).timeline;
        let mib = |signal| timeline.last(signal).map(|bytes: Bytes| bytes.get() >> 20);
        assert_eq!([MEM_AVAILABLE, MEM_CACHED, MEM_FREE].map(mib), [333, 110, 291].map(Some));
        assert_eq!([SWAP_TOTAL, SWAP_USED, SWAP_FREE].map(mib), [599, 0, 599].map(Some));
        survives(screen);
    }
}
