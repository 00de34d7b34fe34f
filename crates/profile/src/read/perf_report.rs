//! What `perf report` and `perf top` print: `--stdio` with its tree of dashes, the lists of the terminal browser, and both as they
//! come out of a page or a mail, their line breaks and indents lost.
//!
//! A row is `33.01%  java  [kernel.kallsyms]  [k] _spin_lock_irq`; below it callers stand behind `-` or `+` and a percentage, the
//! innermost function first. Where indents are left, they say what belongs to what; where they are lost, the percentages do: the
//! branches of one function make 100 % at most. Percentages of branches are shares of the function above them, or, in newer
//! versions, of all samples.
//!
//! With two percentages in a row, which is perf's default, the first is the time of a function with all that it calls: then callees stand
//! below it, and the same tree again below each function in it. The trees of those functions are used that no larger tree has: they
//! are where the kernel was entered.

use std::collections::HashSet;

use crate::classify::begins_kernel;
use crate::collected::{CpuUnit, Profile};
use crate::function_name::plain_name;
use crate::stack::{FramePlace, StackTable};

/// Rounding of percentages with two digits, in a sum of a few.
const ROUNDING: f64 = 0.2;
/// The largest part of a row that is looked through for its `[k]`: names of programs may have blanks.
const ROW_WORDS_MAX: usize = 9;
/// More functions in a chain than a kernel records.
const CHAIN_MAX: usize = 256;

/// A function of a row's tree, or several that call each other.
#[derive(Debug, Default)]
struct CallNode {
    percent: Option<f64>,
    /// The innermost first.
    names: Vec<String>,
    children: Vec<CallNode>,
}

/// A row of the report.
#[derive(Debug)]
struct ReportRow {
    percent: f64,
    /// Without what it calls, where the report has both.
    own: Option<f64>,
    comm: String,
    is_kernel: bool,
    symbol: String,
    callers: CallNode,
}

pub(super) fn read(text: &str) -> Option<Profile> {
    let mut profile = Profile::default();
    let mut rows: Vec<ReportRow> = Vec::new();
    let mut tree = OpenTree::default();
    for line in text.lines() {
        if let Some(note) = line.trim_start().strip_prefix('#') {
            header(note, &mut profile);
            continue;
        }
        let mut rest = line;
        // A page that lost its line breaks has several rows in a line.
        while let Some(found) = next_row(rest) {
            if let Some(row) = rows.last_mut() {
                tree.take(rest.get(..found.start).unwrap_or_default(), row);
                tree.close(row);
            }
            rows.push(found.row);
            tree = OpenTree { is_open: true, ..OpenTree::default() };
            rest = rest.get(found.end..).unwrap_or_default();
        }
        if let Some(row) = rows.last_mut() {
            tree.take(rest, row);
            if line.trim().is_empty() {
                tree.is_open = false;
            }
        }
    }
    if let Some(row) = rows.last_mut() {
        tree.close(row);
    }
    // One percentage beside a `[k]` may stand in any prose.
    if rows.is_empty() {
        return None;
    }
    let mut stacks = StackTable::default();
    let has_chain =
        rows.iter().any(|row| !row.callers.names.is_empty() || !row.callers.children.is_empty());
    if rows.iter().any(|row| row.own.is_some()) {
        spread_callees(&rows, &mut stacks);
    } else {
        rows.iter().for_each(|row| spread(row, &mut stacks));
    }
    if !has_chain {
        profile.remarks.push(super::NO_CHAINS.to_owned());
    }
    profile.unprinted_percent = (100.0 - stacks.total()).max(0.0);
    profile.origin.form = "perf report".to_owned();
    profile.cpu = Some((CpuUnit::Percent, stacks));
    Some(profile)
}

/// `# Samples: 413  of event 'cpu-clock'`.
fn header(note: &str, profile: &mut Profile) {
    let Some((_, event)) = note.split_once(" of event ").filter(|_| note.contains("Samples:"))
    else {
        return;
    };
    profile.origin.event = Some(event.trim().trim_matches('\'').to_owned());
    let count = note.split("Samples:").nth(1).and_then(|rest| rest.split_whitespace().next());
    let times = |text: &str, end: char, by: f64| {
        text.strip_suffix(end).and_then(|digits| digits.parse::<f64>().ok()).map(|n| n * by)
    };
    profile.samples_of_text = count.and_then(|text| {
        text.parse().ok().or_else(|| times(text, 'K', 1e3)).or_else(|| times(text, 'M', 1e6))
    });
}

/// A row found in a line.
struct FoundRow {
    row: ReportRow,
    start: usize,
    end: usize,
}

/// The next `33.01%  java  [kernel.kallsyms]  [k] name` of a line.
fn next_row(line: &str) -> Option<FoundRow> {
    let words: Vec<(usize, &str)> = words(line).collect();
    for (at, (start, word)) in words.iter().enumerate() {
        let Some(percent) = percent(word) else {
            continue;
        };
        let mut first = at + 1;
        // Children and Self.
        let own = words.get(first).and_then(|(_, word)| self::percent(word));
        first += usize::from(own.is_some());
        let near = words.get(first..(first + ROW_WORDS_MAX).min(words.len())).unwrap_or_default();
        let ends = |word: &str| ["-", "+", "--"].contains(&word) || self::percent(word).is_some();
        let mark = near
            .iter()
            .take_while(|(_, word)| !ends(word))
            .position(|(_, word)| matches!(*word, "[k]" | "[.]" | "[g]" | "[u]" | "[H]"));
        let Some(mark) = mark else {
            continue;
        };
        let file = near.get(mark.wrapping_sub(1)).map_or("", |(_, word)| *word);
        let is_marked = near.get(mark).is_some_and(|(_, mark)| *mark == "[k]");
        let is_kernel = is_marked && file != "[unknown]";
        // Before the mark the file, and before that the program, which `perf top` does not show.
        // With -n a count stands first.
        let before = near.iter().take(mark.saturating_sub(1)).map(|(_, word)| *word);
        let comm: Vec<&str> = before
            .skip_while(|word| mark > 2 && word.bytes().all(|b| b.is_ascii_digit()))
            .collect();
        let after: Vec<(usize, &str)> = words.get(first + mark + 1..).unwrap_or_default().to_vec();
        let count =
            after.iter().position(|(_, word)| ["-", "+"].contains(word)).unwrap_or(after.len());
        let taken = if is_kernel { count.min(1) } else { count };
        let symbol: Vec<&str> = after.iter().take(taken).map(|(_, word)| *word).collect();
        let end = after.get(taken).map_or(line.len(), |(start, _)| *start);
        let begin = line.get(..*start)?.trim_end_matches([' ', '-', '+']).len();
        return Some(FoundRow {
            row: ReportRow {
                percent,
                own,
                comm: if comm.is_empty() { "?".to_owned() } else { comm.join(" ") },
                is_kernel,
                symbol: symbol.join(" "),
                callers: CallNode::default(),
            },
            start: begin,
            end,
        });
    }
    None
}

/// Reads `33.01%`, with a point.
fn percent(word: &str) -> Option<f64> {
    let number = word.strip_suffix('%')?;
    if !number.contains('.') {
        return None;
    }
    number.parse().ok().filter(|percent: &f64| (0.0..=100.5).contains(percent))
}

fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    line.split_whitespace().map(move |word| {
        let start = line.get(at..).and_then(|rest| rest.find(word)).map_or(at, |found| at + found);
        at = start + word.len();
        (start, word)
    })
}

/// The tree below a row, while it is read.
#[derive(Default)]
struct OpenTree {
    /// The way from the row to the branch that is read, each with the column where it begins; the first is the row's own chain.
    path: Vec<(usize, bool, CallNode)>,
    is_open: bool,
    functions: usize,
}

impl OpenTree {
    /// Takes what stands in a line below a row, or behind it.
    fn take(&mut self, line: &str, row: &mut ReportRow) {
        if !self.is_open {
            return;
        }
        let mut pending: Option<(usize, bool, Option<f64>)> = None;
        for (column, word) in words(line) {
            let bare = word.trim_start_matches('|');
            // `--79.46%--name`, `|--79.46%-- name`, `---name`, `--name`
            if let Some(dashed) = bare.strip_prefix("--") {
                let at = column + (word.len() - bare.len());
                let (share, name) = match dashed.split_once('%') {
                    Some((share, name)) => (percent(&format!("{share}%")), name),
                    None => (None, dashed),
                };
                let name = name.trim_start_matches('-');
                pending = Some((at, false, share));
                if !name.is_empty() {
                    self.begin(pending.take(), name, row);
                }
            } else if bare.is_empty() || bare == "[...]" {
                // A line of the tree, or callers that were left out.
            } else if matches!(bare, "-" | "+") {
                pending = Some((column, bare == "+", None));
            } else if let Some(share) = percent(bare) {
                let (at, is_shut, _) = pending.unwrap_or((column, false, None));
                pending = Some((at, is_shut, Some(share)));
            } else if !is_function(bare) || self.functions > CHAIN_MAX {
                // Prose again.
                self.is_open = false;
                return;
            } else if pending.is_some() {
                self.begin(pending.take(), bare, row);
            } else {
                self.go_on(bare);
            }
        }
    }

    /// A branch begins with this function.
    fn begin(
        &mut self,
        branch: Option<(usize, bool, Option<f64>)>,
        name: &str,
        row: &mut ReportRow,
    ) {
        self.functions += 1;
        let (column, is_shut, percent) = branch.unwrap_or_default();
        // The chain repeats the row's own function.
        if self.path.is_empty() && percent.is_none() {
            let names = if name == row.symbol { Vec::new() } else { vec![name.to_owned()] };
            self.path.push((
                column,
                is_shut,
                CallNode { percent: None, names, children: Vec::new() },
            ));
            return;
        }
        if self.path.is_empty() {
            self.path.push((0, false, CallNode::default()));
        }
        // Where a text lost its line breaks, columns only grow, and this does nothing.
        while self.path.len() > 1 && self.path.last().is_some_and(|(known, ..)| *known >= column) {
            self.shut_last();
        }
        // A collapsed branch has no visible callers, and branches of one function make 100 % at most.
        while self.path.len() > 1 && !self.has_room(percent, row.percent) {
            self.shut_last();
        }
        self.path.push((
            column,
            is_shut,
            CallNode { percent, names: vec![name.to_owned()], children: Vec::new() },
        ));
    }

    /// Whether the branch that is read can have one more with this share.
    fn has_room(&self, share: Option<f64>, row: f64) -> bool {
        let Some((_, is_shut, node)) = self.path.last() else {
            return true;
        };
        if *is_shut {
            return false;
        }
        let most = if self.is_absolute(row) { node.percent.unwrap_or(row) } else { 100.0 };
        // A branch without a share is the only one.
        let taken: f64 = node.children.iter().map(|child| child.percent.unwrap_or(most)).sum();
        taken + share.unwrap_or(most) <= most + ROUNDING
    }

    /// Whether shares are of all samples: then none exceeds the row's.
    fn is_absolute(&self, row: f64) -> bool {
        fn most(node: &CallNode) -> f64 {
            node.children.iter().map(most).fold(node.percent.unwrap_or(0.0), f64::max)
        }
        self.path.iter().map(|(_, _, node)| most(node)).fold(0.0, f64::max) <= row + ROUNDING
    }

    /// A further caller of the same branch.
    fn go_on(&mut self, name: &str) {
        self.functions += 1;
        match self.path.last_mut() {
            Some((.., node)) if node.children.is_empty() => node.names.push(name.to_owned()),
            Some(_) => {}
            None => {
                let node = CallNode { names: vec![name.to_owned()], ..CallNode::default() };
                self.path.push((0, false, node));
            }
        }
    }

    /// Gives the last branch to the one above it.
    fn shut_last(&mut self) {
        if let Some((_, _, node)) = self.path.pop()
            && let Some((.., above)) = self.path.last_mut()
        {
            above.children.push(node);
        }
    }

    /// Gives all branches to the row.
    fn close(&mut self, row: &mut ReportRow) {
        while self.path.len() > 1 {
            self.shut_last();
        }
        if let Some((_, _, node)) = self.path.pop() {
            row.callers = node;
        }
        self.is_open = false;
    }
}

/// Whether a word can be a function: kernel functions, those of C++, addresses.
fn is_function(word: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '[' | '(' | '~');
    word.is_ascii()
        && (word.starts_with(first) || word.starts_with("0x"))
        && word.bytes().any(|byte| byte.is_ascii_alphanumeric())
        && !word.ends_with(['.', ',', ':', ';'])
}

/// Adds the stacks of a row: each way through its tree with its share of all samples, and what no branch explains.
fn spread(row: &ReportRow, stacks: &mut StackTable) {
    let place = if row.is_kernel { FramePlace::Unmarked } else { FramePlace::User };
    let leaf = [row.symbol.clone()];
    if !row.is_kernel {
        stacks.add(&row.comm, [(leaf[0].as_str(), place)], row.percent);
        return;
    }
    let is_absolute = most_percent(&row.callers) <= row.percent + ROUNDING;
    let walk = TreeWalk { order: ChainOrder::InnermostFirst, is_absolute, comm: &row.comm };
    walk.descend(&row.callers, row.percent, &mut leaf.to_vec(), stacks);
}

/// Adds the stacks of a report of callees: of the kernel the largest trees, of programs their own time.
fn spread_callees(rows: &[ReportRow], stacks: &mut StackTable) {
    let own = |row: &ReportRow| row.own.unwrap_or(row.percent);
    for row in rows.iter().filter(|row| !row.is_kernel && own(row) > 0.0) {
        stacks.add(&row.comm, [(row.symbol.as_str(), FramePlace::User)], own(row));
    }
    let mut kernel: Vec<&ReportRow> = rows.iter().filter(|row| row.is_kernel).collect();
    // Where a program's ways into the kernel are printed, all else is below them, also what is too small to be printed there.
    let enters = |row: &ReportRow| begins_kernel(plain_name(&row.symbol));
    let with_entries: HashSet<&str> =
        kernel.iter().filter(|row| enters(row)).map(|row| row.comm.as_str()).collect();
    kernel.retain(|row| enters(row) || !with_entries.contains(row.comm.as_str()));
    kernel.sort_by(|one, other| other.percent.total_cmp(&one.percent));
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for row in kernel {
        if seen.contains(&(row.comm.as_str(), plain_name(&row.symbol))) {
            continue;
        }
        names_in(&row.callers, &mut |name| {
            seen.insert((&row.comm, plain_name(name)));
        });
        seen.insert((&row.comm, plain_name(&row.symbol)));
        let tree = &row.callers;
        let begins = |node: &CallNode| node.names.first() == Some(&row.symbol);
        let is_in_tree = tree.names.contains(&row.symbol) || tree.children.iter().any(begins);
        let mut chain = if is_in_tree { Vec::new() } else { vec![row.symbol.clone()] };
        let is_absolute = most_percent(tree) <= row.percent + ROUNDING;
        let walk = TreeWalk { order: ChainOrder::OutermostFirst, is_absolute, comm: &row.comm };
        walk.descend(tree, row.percent, &mut chain, stacks);
    }
}

fn names_in<'a>(node: &'a CallNode, take: &mut impl FnMut(&'a str)) {
    node.names.iter().for_each(|name| take(name));
    node.children.iter().for_each(|child| names_in(child, take));
}

fn most_percent(node: &CallNode) -> f64 {
    node.children.iter().map(most_percent).fold(node.percent.unwrap_or(0.0), f64::max)
}

/// In which order a tree has its functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChainOrder {
    /// Callers below a function.
    InnermostFirst,
    /// Callees below a function.
    OutermostFirst,
}

/// How the tree of a row is read.
struct TreeWalk<'a> {
    order: ChainOrder,
    /// Whether shares of branches are of all samples, or of the branch above.
    is_absolute: bool,
    comm: &'a str,
}

impl TreeWalk<'_> {
    /// Adds the stacks below a node that has this share of all samples.
    fn descend(
        &self,
        node: &CallNode,
        share: f64,
        chain: &mut Vec<String>,
        stacks: &mut StackTable,
    ) {
        let before = chain.len();
        chain.extend(node.names.iter().cloned());
        let mut rest = share;
        for child in &node.children {
            let part = match child.percent {
                Some(percent) if self.is_absolute => percent,
                Some(percent) => share * percent / 100.0,
                None => rest,
            };
            rest -= part;
            self.descend(child, part, chain, stacks);
        }
        // What is left of percentages that were rounded is no stack.
        if rest > share * 0.001 && rest > 0.0 && !chain.is_empty() {
            // Callers in programs end where the kernel was entered.
            let frames = chain.iter().map(|name| (name.as_str(), FramePlace::Unmarked));
            match self.order {
                ChainOrder::OutermostFirst => stacks.add(self.comm, frames, rest),
                ChainOrder::InnermostFirst => stacks.add(self.comm, frames.rev(), rest),
            }
        }
        chain.truncate(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use crate::classify::classify;

    /// Shares by reason, and the stacks that contain a function.
    fn share(profile: &Profile, of: impl Fn(&crate::Stack) -> bool) -> f64 {
        let (_, stacks) = profile.cpu.as_ref().unwrap();
        stacks.iter().filter(|(stack, _)| of(stack)).map(|(_, weight)| weight).sum()
    }

    fn has(stack: &crate::Stack, name: &str) -> bool {
        stack.frames.iter().any(|frame| &*frame.name == name)
    }

    /// The list of the terminal browser in one line, as pages have it.
    const IN_ONE_LINE: &str = "some prose about 5% of it\n\
        - 40.00% db [kernel.kallsyms] [k] _spin_lock_irq - _spin_lock_irq - 90.00% shrink_inactive_list \
        shrink_zone zone_reclaim get_page_from_freelist - __alloc_pages_nodemask - 80.00% \
        alloc_pages_current - 75.00% __page_cache_alloc - 99.00% grab_cache_page_write_begin sys_write \
        system_call_fastpath + 0x3fda40e6fd + 25.00% tcp_sendmsg + 20.00% alloc_pages_vma + 10.00% \
        java [kernel.kallsyms] [k] _spin_lock + 5.00% java libjvm.so [.] Foo::bar(char const*, int) + \
        1.50% init [kernel.kallsyms] [k] intel_idle ...\n- more prose\n";

    #[test]
    fn a_tree_that_lost_its_indents_is_put_together_by_its_percentages() {
        let profile = read(IN_ONE_LINE).unwrap();
        let of = |name: &str| share(&profile, |stack| has(stack, name));
        assert!((of("shrink_inactive_list") - 36.0).abs() < 0.01);
        assert!((of("alloc_pages_current") - 28.8).abs() < 0.01);
        assert!((of("__page_cache_alloc") - 21.6).abs() < 0.01);
        assert!((of("tcp_sendmsg") - 7.2).abs() < 0.01);
        assert!((of("alloc_pages_vma") - 7.2).abs() < 0.01);
        let node = share(&profile, |stack| classify(stack).reason == Reason::NodeReclaim);
        assert!((node - 36.0).abs() < 0.01, "{node}");
        assert!((profile.unprinted_percent - 43.5).abs() < 0.01);
        assert!(
            (share(&profile, |stack| has(stack, "Foo::bar(char const*, int)")) - 5.0).abs() < 0.01
        );
    }

    #[test]
    fn the_tree_of_stdio_is_read_with_shares_of_all_samples_or_of_the_branch() {
        let new = "\
# Samples: 4K of event 'cpu-clock'
    20.00%  db  [kernel.kallsyms]  [k] clear_page_erms
            |
            ---clear_page_erms
               get_page_from_freelist
               |          
               |--12.00%--vma_alloc_folio_noprof
               |          do_anonymous_page
               |          
                --8.00%--page_cache_ra_unbounded
                          filemap_read

     3.00%  db  libc.so.6  [.] memset
";
        let old = "\
    20.00%  db  [kernel.kallsyms]  [k] clear_page_erms
            |
            --- clear_page_erms
               get_page_from_freelist
               |          
               |--60.00%-- vma_alloc_folio_noprof
               |          do_anonymous_page
               |          
                --40.00%-- page_cache_ra_unbounded
                          filemap_read
";
        for text in [new, old] {
            let profile = read(text).unwrap();
            let of = |name: &str| share(&profile, |stack| has(stack, name));
            assert!((of("do_anonymous_page") - 12.0).abs() < 0.01, "{text}");
            assert!((of("filemap_read") - 8.0).abs() < 0.01, "{text}");
            assert!((of("get_page_from_freelist") - 20.0).abs() < 0.01, "{text}");
        }
        assert_eq!(read(new).unwrap().samples_of_text, Some(4000.0));
    }

    #[test]
    fn a_list_without_callers_says_so() {
        let text =
            "    12.34%  [kernel]  [k] shrink_inactive_list\n     5.00%  bash  bash  [.] main\n";
        let profile = read(text).unwrap();
        assert_eq!(profile.remarks, [super::super::NO_CHAINS]);
        let cut = share(&profile, |stack| classify(stack).reason == Reason::ReclaimCutOff);
        assert!((cut - 12.34).abs() < 0.01);
    }

    #[test]
    fn of_a_report_of_callees_each_sample_is_taken_once() {
        let text = "\
# Children      Self  Command  Shared Object      Symbol
    30.00%     0.00%  db       [unknown]          [k] 0000000000000000
            |
            ---0
               entry_SYSCALL_64_after_hwframe
    30.00%     1.00%  db       [kernel.kallsyms]  [k] entry_SYSCALL_64_after_hwframe
            |
            ---entry_SYSCALL_64_after_hwframe
               ksys_read
               |
               |--20.00%--filemap_read
               |          copy_page_to_iter
               |
                --9.00%--node_reclaim
                          |
                           --8.00%--shrink_lruvec
    20.00%    20.00%  db       [kernel.kallsyms]  [k] copy_page_to_iter
            |
            ---0
               entry_SYSCALL_64_after_hwframe
               ksys_read
               filemap_read
               copy_page_to_iter
     9.00%     1.00%  db       [kernel.kallsyms]  [k] node_reclaim
            |
             --8.00%--node_reclaim
                       shrink_lruvec
    60.00%    60.00%  db       db                 [.] main
";
        let profile = read(text).unwrap();
        let of = |name: &str| share(&profile, |stack| has(stack, name));
        assert!((of("filemap_read") - 20.0).abs() < 0.01);
        assert!((of("node_reclaim") - 9.0).abs() < 0.01);
        assert!((of("shrink_lruvec") - 8.0).abs() < 0.01);
        assert!((of("main") - 60.0).abs() < 0.01);
        let (_, stacks) = profile.cpu.as_ref().unwrap();
        assert!((stacks.total() - 90.0).abs() < 0.01, "{}", stacks.total());
        let node = share(&profile, |stack| classify(stack).reason == Reason::NodeReclaim);
        assert!((node - 9.0).abs() < 0.01);
    }

    #[test]
    fn prose_is_no_report() {
        assert!(read("the CPU was at 33.01% and `[k]` means kernel\n").is_none());
    }
}
