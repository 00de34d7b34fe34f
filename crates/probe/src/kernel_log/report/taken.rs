//! The result of offering a line to a part of a report.

/// Whether a part of a report took a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Not a line of this kind.
    No,
    /// The line was understood.
    Yes,
    /// The beginning of such a line was understood; its end is missing, or is not the kernel's.
    Part,
    /// Of this kind, but the report already has one: another report begins.
    Again,
    /// Of this kind, but after the lines that it should precede: the report is in reverse order.
    Backwards,
}

impl Taken {
    /// `Yes` for a whole line, `Part` for the beginning of one.
    pub(super) fn whole(is_whole: bool) -> Self {
        if is_whole { Self::Yes } else { Self::Part }
    }

    /// Whether the line, or its beginning, was understood.
    pub(super) fn is_taken(self) -> bool {
        matches!(self, Self::Yes | Self::Part)
    }

    /// `Yes` for the first line of its kind, `Again` for another.
    pub(super) fn once(is_there: bool) -> Self {
        if is_there { Self::Again } else { Self::Yes }
    }
}
