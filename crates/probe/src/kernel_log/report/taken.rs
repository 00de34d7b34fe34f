//! What a part of a report made of a line.

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Not a line of this kind.
    No,
    /// Understood.
    Yes,
    /// Of this kind, but the report has it already: another report begins.
    Again,
    /// Of this kind, but after what it introduces: the lines stand in reverse order.
    Backwards,
}

impl Taken {
    /// Taken once, refused where it is there already.
    pub(super) fn once(is_there: bool) -> Self {
        if is_there { Self::Again } else { Self::Yes }
    }
}
