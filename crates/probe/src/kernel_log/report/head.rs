//! The head of a report: who requested what, on which kernel, and by which call path.

use timeline::kernel_report::{Invoker, ReportKind, Request};
use units::{Bytes, Span};

use super::draft::USUAL_PAGE;
use super::scan::{self, cut, signed, small};
use super::taken::Taken;
use crate::text::SplitText as _;

/// The head as far as it is read.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) kind: Option<ReportKind>,
    pub(super) invoker: Option<Invoker>,
    pub(super) request: Option<Request>,
    pub(super) cpuset: Option<String>,
    pub(super) mems_allowed: Option<String>,
    pub(super) kernel: Option<String>,
    pub(super) slab_cache: Option<String>,
    pub(super) trace: Vec<String>,
    /// Whether it is of a failed vmalloc, after which a separate head follows for the pages that it could not get.
    is_vmalloc: bool,
    /// How long a request had waited that did not fail.
    pub(super) waited: Option<Span>,
    /// The size that vmalloc was asked for.
    pub(super) vmalloc: Option<Bytes>,
    has_slub: bool,
    /// The order, where the line of a failure ends behind it.
    torn_order: Option<i32>,
    /// Whether only the call trace shows that it is of a kill.
    pub(super) is_of_trace: bool,
    /// Whether the lines are whole messages of the kernel: before a reason stands the name of a task, and nothing else.
    is_verbatim: bool,
}

/// The function that prints a report; a task that only waits for memory is not in it.
const PRINTER: &str = "dump_header";

/// The functions that choose and kill a process, and print the report.
const KILLERS: [&str; 5] = [
    PRINTER,
    "oom_kill_process",
    "out_of_memory",
    "mem_cgroup_out_of_memory",
    "pagefault_out_of_memory",
];

/// The innermost functions are enough to recognise a trace.
const FUNCTIONS_MAX: usize = 64;

/// What kernels 4.10 to 4.15 print where a request has waited for 10 s.
const STALLS: &str = ": page allocation stalls for ";

/// The text between the name of a process and the reason.
pub(super) const FAILURES: [&str; 5] = [
    ": page allocation failure: ",
    ": page allocation failure. ",
    STALLS,
    ": vmalloc: allocation failure",
    ": vmalloc error: ",
];

/// The first words of the slab allocators' reports.
pub(super) const SLAB_FAILURES: [&str; 2] =
    ["SLUB: Unable to allocate memory on", "SLAB: Unable to allocate memory on"];

impl Head {
    /// A head of whole messages of the kernel.
    pub(super) fn of_messages() -> Self {
        Self { is_verbatim: true, ..Self::default() }
    }

    /// Whether a line names the reason of a report, as the first line of a report does.
    pub(super) fn is_start(&self, line: &str) -> bool {
        if self.is_verbatim {
            Self::of_messages().take_reason(line).is_some_and(Taken::is_taken)
        } else {
            is_start(line)
        }
    }

    /// Splits `java invoked oom-killer: gfp_mask=0xd0, order=0` into the name and the request.
    fn invoker_in<'a>(&self, line: &'a str) -> Option<(&'a str, &'a str)> {
        if self.is_verbatim {
            return line
                .around(" invoked oom-killer: ")
                .filter(|(name, _)| scan::is_task_name(name));
        }
        let found = line
            .around("invoked oom-killer:")
            .or_else(|| old_head(line))
            .or_else(|| cut_head(line));
        found.map(|(name, request)| (name.trim_end(), request))
    }

    /// Splits a line around the reason of a failed allocation.
    fn failure_in<'a>(&self, line: &'a str) -> Option<(&'a str, &'static str, &'a str)> {
        failure(line).filter(|(name, _, _)| !self.is_verbatim || scan::is_task_name(name))
    }

    /// The name of a task before a reason, and whether nothing stands before it.
    fn name_of<'a>(&self, text: &'a str) -> (&'a str, bool) {
        if self.is_verbatim { (text, true) } else { task_name(text) }
    }

    /// Takes a line that only a head has.
    pub(super) fn take(&mut self, line: &str) -> Taken {
        if let Some(taken) = self.take_reason(line) {
            return taken;
        }
        if self.slub(line)
            || self.allowed(line)
            || self.failed_in_old_kernel(line)
            || self.failed_in_xfs(line)
            || self.torn(line)
        {
            return Taken::Yes;
        }
        Taken::No
    }

    /// Takes a line that names the reason of a report; `None` if it does not.
    fn take_reason(&mut self, line: &str) -> Option<Taken> {
        if let Some((name, request)) = self.invoker_in(line) {
            return Some(self.invoked(name, request));
        }
        let (name, reason, request) = self.failure_in(line)?;
        let taken = self.failed(name, request, reason.contains("vmalloc"));
        if reason == STALLS && taken.is_taken() {
            self.stalled(request);
        }
        Some(taken)
    }

    /// Takes a function of a trace that only a kill has. Its report has lost its first line.
    pub(super) fn take_trace_of_kill(&mut self, line: &str) -> bool {
        // `oom_kill_process.cold`: a compiler moved a part of it.
        let base = |name| str::split(name, '.').next();
        let Some(function) = function(line).and_then(base) else {
            return false;
        };
        // Nothing but an address comes before it.
        let is_address = |word: &&str| word.starts_with("[<") || *word == "?";
        let first = scan::words(line).find(|word| !is_address(word));
        let is_first =
            first.is_some_and(|first| first.trim_start_matches('(').starts_with(function));
        if self.trace.len() >= FUNCTIONS_MAX || !is_first || !KILLERS.contains(&function) {
            return false;
        }
        self.kind = Some(ReportKind::OomKill);
        self.is_of_trace = true;
        self.trace.push(cut(function, 100));
        true
    }

    /// Whether a call trace shows that a report was printed for a kill, although nothing else does.
    pub(super) fn is_printed_kill(&self) -> bool {
        let has = |name: &str| self.trace.iter().any(|function| function == name);
        has(PRINTER) && KILLERS.iter().any(|name| *name != PRINTER && has(name))
    }

    /// Begins the head at this line if it names the reason of a report.
    fn is_begun(&self) -> bool {
        self.kind.is_some() && !self.is_vmalloc
    }

    fn invoked(&mut self, name: &str, text: &str) -> Taken {
        let read = request(text, "gfp_mask=");
        // Cut off within the first field, or before it.
        let is_cut = || "gfp_mask=0x".starts_with(text.trim());
        if read.is_none() && !is_cut() {
            return Taken::No;
        }
        let (name, is_name) = self.name_of(name);
        let is_whole = is_name && read.as_ref().is_some_and(|read| read.is_whole);
        if self.is_verbatim && !is_whole {
            return Taken::No;
        }
        if self.is_begun() {
            return Taken::Again;
        }
        let adj = read.as_ref().and_then(|read| read.adj);
        self.kind = Some(ReportKind::OomKill);
        self.request = read.and_then(|read| read.request);
        self.invoker = Some(Invoker { name: cut(name, 64), pid: None, oom_score_adj: adj });
        Taken::whole(is_whole)
    }

    fn failed(&mut self, name: &str, text: &str, is_vmalloc: bool) -> Taken {
        let request = request(text, "mode:");
        // The first kernels that reported vmalloc printed only its size.
        let is_bare = is_vmalloc && text.ends_with(" bytes");
        let order = text.trim_end().strip_prefix("order:").and_then(signed);
        if request.is_none() && !is_bare && order.is_none() {
            return Taken::No;
        }
        let (name, is_name) = self.name_of(name);
        // The rest of a torn line is a message of its own.
        let is_torn = request.is_none() && order.is_some();
        // The name of a cpuset may have blanks.
        let is_last = |nodes: &str| nodes.chars().all(|c| c.is_ascii_digit() || "-,".contains(c));
        let is_to_end = || {
            let nodes = text.rsplit_once(",mems_allowed=");
            self.is_verbatim && nodes.is_some_and(|(_, nodes)| is_last(nodes))
        };
        let is_read = request.as_ref().is_some_and(|read| read.is_whole || is_to_end());
        let is_whole = is_bare || is_name && (is_torn || is_read);
        if self.is_verbatim && !is_whole {
            return Taken::No;
        }
        if self.is_begun() {
            return Taken::Again;
        }
        self.kind = Some(ReportKind::AllocationFailure);
        self.torn_order = order;
        self.is_vmalloc = is_vmalloc;
        self.vmalloc = self.vmalloc.or(vmalloc_size(text).filter(|_| is_vmalloc));
        self.request = request.and_then(|read| read.request).or(self.request.take());
        let list = |key| scan::value(text, key).map(str::to_owned);
        self.cpuset = list("cpuset").or(self.cpuset.take());
        let nodes = |text: &str| {
            text.chars().take_while(|c| c.is_ascii_digit() || "-,".contains(*c)).collect()
        };
        let mems = text.around("mems_allowed=").map(|(_, mems)| nodes(mems));
        self.mems_allowed = mems.or(self.mems_allowed.take());
        let invoker = self.invoker.get_or_insert_default();
        invoker.name = cut(name, 64);
        Taken::whole(is_whole)
    }

    /// Notes `10090ms, order:1, mode:0x15080c0(GFP_KERNEL_ACCOUNT|__GFP_ZERO)`. These kernels print the names of a mask, so
    /// one without them is cut off.
    fn stalled(&mut self, text: &str) {
        let millis = text.split_once("ms").and_then(|(ms, _)| scan::number(ms));
        self.waited = millis.map(Span::from_millis);
        self.request = self.request.take().filter(|r| r.gfp_names.is_some());
    }

    /// Takes `__alloc_pages: 0-order allocation failed (gfp=0x1d2/0)` of kernel 2.4, which repeats it.
    fn failed_in_old_kernel(&mut self, line: &str) -> bool {
        let failed = || {
            let (order, mask) =
                line.strip_prefix("__alloc_pages: ")?.around("-order allocation failed (gfp=")?;
            Some((signed(order)?, self::mask(mask)?.0))
        };
        let Some((order, gfp_mask)) = failed() else {
            return false;
        };
        self.kind.get_or_insert(ReportKind::AllocationFailure);
        self.request.get_or_insert(Request { gfp_mask, gfp_names: None, order });
        true
    }

    /// Takes `XFS: nfsd(812) possible memory allocation deadlock size 65552 in kmem_alloc (mode:0x2400240)`, which it
    /// repeats until the request succeeds.
    fn failed_in_xfs(&mut self, line: &str) -> bool {
        let failed = || {
            let (task, rest) =
                line.strip_prefix("XFS: ")?.around(" possible memory allocation deadlock size ")?;
            let (name, pid) = task.strip_suffix(')')?.rsplit_once('(')?;
            scan::is_task_name(name).then_some(())?;
            let size = scan::number(rest.split(' ').next()?)?;
            let pages = size.div_ceil(USUAL_PAGE.bytes().get()).max(1);
            let (_, behind) = rest.around("(mode:")?;
            Some((name, small(pid)?, pages.next_power_of_two().ilog2(), self::mask(behind)?.0))
        };
        let Some((name, pid, order, gfp_mask)) = failed() else {
            return false;
        };
        self.kind.get_or_insert(ReportKind::AllocationFailure);
        self.invoker.get_or_insert_with(|| Invoker {
            name: cut(name, 64),
            pid: Some(pid),
            oom_score_adj: None,
        });
        self.request.get_or_insert(Request {
            gfp_mask,
            gfp_names: None,
            order: i32::try_from(order).unwrap_or_default(),
        });
        true
    }

    /// Takes `, mode:0x1080020(GFP_ATOMIC), nodemask=`: the rest of a line that another CPU interrupted behind the order.
    fn torn(&mut self, line: &str) -> bool {
        let rest = line.strip_prefix(", mode:").and_then(mask);
        let (Some(order), Some((gfp_mask, gfp_names))) = (self.torn_order, rest) else {
            return false;
        };
        self.torn_order = None;
        self.request = Some(Request { gfp_mask, gfp_names, order });
        true
    }

    /// Takes `sed cpuset=/ mems_allowed=0-1`.
    fn allowed(&mut self, line: &str) -> bool {
        let Some((front, mems)) = line.around(" mems_allowed=") else {
            return false;
        };
        let Some((_, cpuset)) = front.around("cpuset=") else {
            return false;
        };
        let is_list = |c: char| c.is_ascii_digit() || "-,".contains(c);
        if !mems.trim_end().chars().all(is_list) {
            return false;
        }
        self.cpuset = Some(cut(cpuset, 4096));
        self.mems_allowed = Some(cut(mems.trim_end(), 200));
        true
    }

    /// Takes a line of SLUB or SLAB, with the state of the cache.
    fn slub(&mut self, line: &str) -> bool {
        if SLAB_FAILURES.iter().any(|start| line.starts_with(start)) {
            let of_slub = |(gfp_mask, gfp_names)| Request { gfp_mask, gfp_names, order: 0 };
            let request = line
                .around("gfp=")
                .filter(|(_, mask)| !mask.contains(' '))
                .and_then(|(_, text)| mask(text));
            let is_whole = request.is_some();
            if is_whole {
                self.kind.get_or_insert(ReportKind::AllocationFailure);
                self.has_slub = true;
                self.request = self.request.take().or(request.map(of_slub));
            }
            return is_whole;
        }
        if !self.has_slub {
            return false;
        }
        if let Some(cache) = line.strip_prefix("cache: ")
            && let Some((name, _)) = cache.around(", object size: ")
        {
            self.slab_cache.get_or_insert_with(|| cut(name, 100));
            return true;
        }
        (line.starts_with("node ") && line.contains(": slabs: "))
            || line.contains("debugging increased min order")
    }

    /// Takes a line between the reason and the memory: the running task, the call trace, registers. Other kernel events
    /// have the same lines, so they belong to the report only near its head.
    pub(super) fn take_surroundings(&mut self, line: &str) -> bool {
        if let Some(running) = running(line) {
            if let Some(invoker) = &mut self.invoker {
                invoker.pid = invoker.pid.or(running.pid);
            }
            self.kernel = self.kernel.take().or(running.kernel);
            return true;
        }
        if QUIET.iter().any(|start| line.starts_with(start)) || is_registers(line) || is_stack(line)
        {
            return true;
        }
        let Some(function) = function(line) else {
            return false;
        };
        if self.trace.len() < FUNCTIONS_MAX {
            self.trace.push(cut(function, 100));
        }
        true
    }
}

/// Whether a line names the reason of a report, as the first line of a report does.
pub(super) fn is_start(line: &str) -> bool {
    line.contains("invoked oom-killer:")
        || line.starts_with("oom-killer: gfp_mask=")
        || failure(line).is_some()
}

/// Splits a line around the first of [`FAILURES`], which all begin with a colon: the name of the process, the reason, the
/// request.
fn failure(line: &str) -> Option<(&str, &'static str, &str)> {
    memchr::memchr_iter(b':', line.as_bytes()).find_map(|at| {
        let (name, rest) = line.split_at(at);
        FAILURES.iter().find_map(|reason| Some((name, *reason, rest.strip_prefix(reason)?)))
    })
}

/// The size in `: 1073741824 bytes, mode:…`, `, allocated 4096 of 8192 bytes`, `size 4198400, page order 0, …`.
fn vmalloc_size(text: &str) -> Option<Bytes> {
    let behind = text.around("size ").map(|(_, rest)| rest);
    let before = || text.around(" bytes")?.0.rsplit([' ', ':']).next();
    let digits = behind.and_then(|rest| rest.split(',').next()).or_else(before)?;
    scan::number(digits.trim()).map(Bytes::new)
}

/// Splits `oom-killer: gfp_mask=0xd0`, the form before 2.6.18 named the task.
fn old_head(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("oom-killer: ")?;
    rest.starts_with("gfp_mask=").then_some(("", rest))
}

/// Splits `python3 invoked oom-killer`, cut off before the request. A sentence has more words before it.
fn cut_head(line: &str) -> Option<(&str, &str)> {
    let name = line.trim_end().strip_suffix(" invoked oom-killer")?;
    let is_name = !name.contains(' ') && !["who", "what", "which", "it", "kernel"].contains(&name);
    is_name.then_some((name, ""))
}

/// The name of a task at the end of a text, and whether nothing stands before it. Of a text that is too long for a name,
/// it is the last word.
fn task_name(text: &str) -> (&str, bool) {
    let is_mark = |c: char| "\"`|'>".contains(c);
    if scan::is_task_name(text) && !text.contains(is_mark) {
        return (text, true);
    }
    let name = text.rsplit(|c: char| c == ' ' || is_mark(c)).next();
    (name.unwrap_or_default(), false)
}

/// The request in a line, and the `oom_score_adj` of the requesting task.
#[derive(Debug)]
struct RequestLine {
    /// `None` if the line is cut off before the order.
    request: Option<Request>,
    adj: Option<i32>,
    /// Whether nothing else stands in the line.
    is_whole: bool,
}

/// Parses `gfp_mask=0x201da, order=0, oom_score_adj=0` and its variants. What is not understood is left out.
fn request(text: &str, mask_name: &str) -> Option<RequestLine> {
    let (_, behind) = text.around(mask_name)?;
    let (gfp_mask, gfp_names) = mask(behind)?;
    let order = match text.around("order") {
        // `order=3`, `order:3`, or vmalloc's `page order 3`.
        Some((_, rest)) => rest.strip_prefix(['=', ':', ' ']).and_then(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-');
            signed(rest.get(..end.unwrap_or(rest.len()))?)
        }),
        // The first kernels that printed a mask printed no order.
        None => Some(0),
    };
    let number = |name| {
        let value = scan::value(text, name)?;
        let end = value.find(|c: char| !c.is_ascii_digit() && c != '-');
        signed(value.get(..end.unwrap_or(value.len()))?)
    };
    let adj = || number("oom_score_adj");
    let old = || {
        let adj = number("oom_adj").or_else(|| number("oomkilladj"));
        adj.map(super::tasks::modern_adj)
    };
    let is_end = |c: char| c.is_ascii_alphanumeric() || c == ')';
    let is_whole = order.is_some() && behind.trim_end().ends_with(is_end) && is_list(behind);
    Some(RequestLine {
        request: order.map(|order| Request { gfp_mask, gfp_names, order }),
        adj: adj().or_else(old),
        is_whole,
    })
}

/// Whether the text after a mask's name is the mask, and fields such as `order=0`, including lists of nodes.
fn is_list(text: &str) -> bool {
    let is_field = |word: &str| word.contains('=') || word.starts_with("order:");
    let is_nodes = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let mut words = text.split([',', ' ']).filter(|word| !word.is_empty());
    words.next().is_some_and(|mask| mask.starts_with("0x"))
        && words.all(|word| is_field(word) || is_nodes(word))
}

/// Parses `0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP)`: the bits, and their names if they are printed.
fn mask(text: &str) -> Option<(u64, Option<String>)> {
    let hex = text.strip_prefix("0x")?;
    let behind = hex.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    let bits = u64::from_str_radix(hex.strip_suffix(behind)?, 16).ok()?;
    let names = behind.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    Some((bits, names.map(|(names, _)| cut(names, 400))))
}

/// The line with the CPU that the kernel writes above every call trace.
struct Running {
    pid: Option<u32>,
    kernel: Option<String>,
}

/// Parses `CPU: 3 PID: 473206 Comm: doxygen Tainted: G  OE  6.1.1-arch1-1 #1`, `Pid: 23212, comm: php-fpm Not tainted
/// 2.6.32 #1`.
fn running(line: &str) -> Option<Running> {
    let lower = line.get(..5)?.to_ascii_lowercase();
    if !(lower.starts_with("cpu: ") || lower.starts_with("pid: ")) {
        return None;
    }
    let pid = line.around("PID: ").or_else(|| line.around("Pid: ")).map(|(_, rest)| rest);
    let pid = pid.and_then(|rest| small(rest.split([' ', ',']).next()?));
    // A task may have a name with this word; the kernel's own is the last.
    let behind = line.rsplit_once("ainted").map_or("", |(_, rest)| rest);
    let is_release =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let kernel = behind.split([' ', '(', ')']).find(is_release).map(|word| cut(word, 100));
    Some(Running { pid, kernel })
}

/// Beginnings of lines that say nothing about memory.
const QUIET: [&str; 45] = [
    "Hardware name:",
    "Call Trace",
    "Call trace:",
    "Backtrace:",
    "Workqueue:",
    "Modules linked in:",
    "Tainted: ",
    "Stack :",
    "<TASK>",
    "</TASK>",
    "<IRQ>",
    "</IRQ>",
    "<NMI>",
    "</NMI>",
    "<EOI>",
    "</EOI>",
    "<EOE>",
    "=====",
    "--- interrupt:",
    "---- interrupt:",
    "Exception stack",
    "Exception: ",
    "Code: ",
    "Code:",
    "RIP: ",
    "RIP  ",
    "ORIG_RAX:",
    "EFLAGS:",
    "PKRU:",
    "NIP",
    "LR ",
    "CTR:",
    "REGS:",
    "MSR:",
    "CFAR:",
    "GPR",
    "DAR:",
    "DSISR:",
    "IRQMASK:",
    "Instruction dump",
    "ra : ",
    "ra: ",
    "pstate:",
    "warn_alloc: ",
    "warn_alloc_failed: ",
];

/// Names of registers, which precede their values.
const REGISTERS: [&str; 16] = [
    "RSP", "RAX", "RBX", "RDX", "RBP", "R10", "R13", "EIP", "EAX", "ESI", "DS", "pc", "lr", "sp",
    "FS", "CR2",
];

/// Whether a line has words of the stack, which kernels before 4.10 print above a trace.
fn is_stack(line: &str) -> bool {
    let is_word =
        |word: &str| matches!(word.len(), 8 | 16) && word.bytes().all(|b| b.is_ascii_hexdigit());
    scan::words(line).all(is_word)
}

/// Whether a line has registers: `RAX: 00007f3fa5ae4a90 RBX: …`, `x29: ffff0000…`, `ffc0: 00000000 …`.
fn is_registers(line: &str) -> bool {
    let Some((name, rest)) = line.split_once(':') else {
        return false;
    };
    let name = name.trim_end();
    let is_known = REGISTERS.contains(&name);
    let is_numbered = name.len() <= 4
        && name
            .strip_prefix(['x', 'r', 'a', 's', 't', 'R', '$'])
            .is_some_and(|n| scan::number(n).is_some());
    let is_dump = matches!(name.len(), 4 | 8 | 16) && name.bytes().all(|b| b.is_ascii_hexdigit());
    let is_hex = |word: &str| word.trim_start_matches("0x").bytes().all(|b| b.is_ascii_hexdigit());
    is_known || ((is_numbered || is_dump) && scan::words(rest).next().is_some_and(is_hex))
}

/// Returns the function in a line of a call trace: `[<ffffffff81184c7e>] ? oom_kill_process+0x24e/0x3c0 [ext4]`; on Arm
/// `oom_kill_process from out_of_memory+0x218/0x34c`, of which it is the first.
fn function(line: &str) -> Option<&str> {
    if !line.contains("+0x") {
        return None;
    }
    let is_place = |word: &&str| word.contains("+0x") && word.contains("/0x");
    let mut words = scan::words(line);
    let first = words.next()?;
    let is_of_arm = words.next() == Some("from") && words.next().as_ref().is_some_and(is_place);
    if is_of_arm && !first.starts_with(['[', '(']) {
        return Some(first);
    }
    let word = scan::words(line).find(is_place)?;
    let (name, _) = word.trim_start_matches(['(', '?']).around("+0x")?;
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_without_its_number_is_no_request() {
        for (text, order) in [
            ("gfp_mask=0x201da, order=3, oom_score_adj=0", Some(3)),
            ("gfp_mask=0xd0, order:0", Some(0)),
            ("page order 9, gfp_mask=0xd0", Some(9)),
            ("gfp_mask=0xd0", Some(0)),
            ("gfp_mask=0xd0, order", None),
            ("gfp_mask=0xd0, order=", None),
            ("gfp_mask=0xd0, order ", None),
            ("gfp_mask=0xd0, orderé3", None),
            ("gfp_mask=0xd0, order=é", None),
            ("gfp_mask=0xd0, order\u{202e}=3", None),
        ] {
            let whole = request(text, "gfp_mask=").filter(|read| read.is_whole);
            assert_eq!(whole.map(|read| read.request.unwrap().order), order, "{text}");
            let line = format!("a invoked oom-killer: {text}");
            assert_eq!(super::super::is_line(&line), order.is_some(), "{line}");
        }
    }

    #[test]
    fn reasons_of_old_kernels_and_of_xfs_are_read() {
        for (line, order, mask) in [
            ("__alloc_pages: 3-order allocation failed (gfp=0x1d2/0)", 3, 0x1d2),
            (
                "XFS: nfsd(812) possible memory allocation deadlock size 65552 in kmem_alloc \
                 (mode:0x2400240)",
                5,
                0x240_0240,
            ),
            (
                "XFS: x(y)(8) possible memory allocation deadlock size 100 in kmem_alloc \
                 (mode:0x250)",
                0,
                0x250,
            ),
        ] {
            let mut head = Head::default();
            assert_eq!(head.take(line), Taken::Yes, "{line}");
            assert_eq!(head.take(line), Taken::Yes, "it is repeated");
            let request = head.request.unwrap();
            assert_eq!((request.order, request.gfp_mask), (order, mask), "{line}");
        }
        for line in ["__alloc_pages: order allocation failed", "XFS: (sda1): Mounting"] {
            assert_eq!(Head::default().take(line), Taken::No, "{line}");
        }
    }

    #[test]
    fn a_failure_that_another_cpu_interrupted_is_put_together() {
        let mut head = Head::default();
        head.take("swapper/3: page allocation failure: order:0");
        assert_eq!(head.take(", mode:0x1080020(GFP_ATOMIC), nodemask="), Taken::Yes);
        assert_eq!(head.request.unwrap().gfp_mask, 0x108_0020);
        assert_eq!(Head::default().take(", mode:0x20"), Taken::No);
    }

    #[test]
    fn a_mask_ends_where_its_digits_do() {
        for (text, expected) in [
            ("0xd0", Some((0xd0, None))),
            ("0xd0(GFP_KERNEL) x", Some((0xd0, Some("GFP_KERNEL")))),
            ("0xd0é", Some((0xd0, None))),
            ("0xd0(é", Some((0xd0, None))),
            ("0x", None),
            ("0xé", None),
            ("0x11111111111111111", None),
        ] {
            let expected = expected.map(|(bits, names)| (bits, names.map(str::to_owned)));
            assert_eq!(mask(text), expected, "{text}");
        }
    }
}
