//! Stacks: who, which functions from the outermost to the innermost, and how often or how long.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::function_name::plain_name;

/// At most 512 functions of a stack: the kernel records 127, and with user frames perf may show more.
const FRAMES_MAX: usize = 512;
/// Longer names of programs are no names: the kernel keeps 15 bytes, workqueues show more.
const COMM_LEN_MAX: usize = 64;

/// A function of which only the address is known.
pub(crate) const NAMELESS: &str = "[unknown]";

/// Where a function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FramePlace {
    /// In the kernel, as the source marks it.
    Kernel,
    /// In a program.
    User,
    /// The source does not mark it.
    Unmarked,
}

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackFrame {
    /// Its name, without offsets and suffixes.
    pub name: Arc<str>,
    /// Where it runs.
    pub place: FramePlace,
}

/// A thread's name and its functions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stack {
    /// The name of the thread; any user may choose it.
    pub comm: Arc<str>,
    /// The cgroup by which its memory is counted, as a path; `None` where the source does not say it.
    pub cgroup: Option<Arc<str>>,
    /// Functions, the outermost first.
    pub frames: Vec<StackFrame>,
}

/// Stacks with their weights, and the names in them once.
#[derive(Debug, Clone, Default)]
pub struct StackTable {
    weights: HashMap<Stack, f64>,
    names: HashSet<Arc<str>>,
}

impl StackTable {
    /// The one copy of a text.
    fn name(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.names.get(text) {
            return Arc::clone(known);
        }
        let name: Arc<str> = text.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    /// Adds a stack; functions come outermost first.
    pub fn add<'a>(
        &mut self,
        comm: &str,
        frames: impl IntoIterator<Item = (&'a str, FramePlace)>,
        weight: f64,
    ) {
        self.add_in(None, comm, frames, weight);
    }

    /// As [`add`](Self::add), of a task in a cgroup.
    pub fn add_in<'a>(
        &mut self,
        cgroup: Option<&str>,
        comm: &str,
        frames: impl IntoIterator<Item = (&'a str, FramePlace)>,
        weight: f64,
    ) {
        let in_cgroup = cgroup.map(|path| self.name(path));
        let comm: String = comm.chars().take(COMM_LEN_MAX).collect();
        let comm = self.name(&comm);
        let frames = frames.into_iter().take(FRAMES_MAX);
        let frames = frames
            .map(|(name, place)| {
                let is_kernel = place == FramePlace::Kernel || name.ends_with("_[k]");
                let place = if is_kernel { FramePlace::Kernel } else { place };
                StackFrame { name: self.name(plain_name(name)), place }
            })
            .collect();
        if weight > 0.0 {
            *self.weights.entry(Stack { comm, cgroup: in_cgroup, frames }).or_default() += weight;
        }
    }

    /// All stacks with their weights, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Stack, f64)> {
        self.weights.iter().map(|(stack, weight)| (stack, *weight))
    }

    /// All stacks with their weights, in the order of names.
    pub fn sorted(&self) -> Vec<(&Stack, f64)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by_key(|(stack, _)| *stack);
        all
    }

    /// How many different stacks there are.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The sum of all weights.
    pub fn total(&self) -> f64 {
        self.weights.values().sum()
    }

    /// Adds all stacks of another table.
    pub fn extend(&mut self, other: Self) {
        for (stack, weight) in other.weights {
            *self.weights.entry(stack).or_default() += weight;
        }
    }
}
