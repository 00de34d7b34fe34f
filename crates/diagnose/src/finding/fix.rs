//! What to do about a finding: words, and commands that a shell takes as they stand.

/// Something to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fix {
    /// In words.
    pub what: String,
    /// Commands for now, one a line; empty where there is none.
    pub now: String,
    /// Whether `now` only inspects and changes nothing.
    pub is_read_only: bool,
    /// Commands for the form that survives a reboot, one a line; empty where there is none.
    pub persistent: String,
    /// Commands that take back what is done now, one a line; empty where nothing is changed or the state before is not known.
    pub undo: String,
}

impl Fix {
    /// In words only.
    pub(crate) fn say(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            ..Self::default()
        }
    }

    /// The same commands with this description.
    #[must_use]
    pub(crate) fn described(mut self, what: impl Into<String>) -> Self {
        self.what = what.into();
        self
    }

    /// Commands that change something now.
    #[must_use]
    pub(crate) fn now(mut self, commands: impl Into<String>) -> Self {
        self.now = commands.into();
        self
    }

    /// Commands that change nothing.
    #[must_use]
    pub(crate) fn inspect(self, commands: impl Into<String>) -> Self {
        Self {
            is_read_only: true,
            ..self.now(commands)
        }
    }

    /// Commands that make it last.
    #[must_use]
    pub(crate) fn keep(mut self, commands: impl Into<String>) -> Self {
        self.persistent = commands.into();
        self
    }

    /// Commands that take back what is done now.
    #[must_use]
    pub(crate) fn undo(mut self, commands: impl Into<String>) -> Self {
        self.undo = commands.into();
        self
    }
}
