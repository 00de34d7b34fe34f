//! What to do about a finding: words, and commands that can be pasted into a shell unchanged.

/// One way to fix a finding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fix {
    /// What to do, in words.
    pub what: String,
    /// Commands that take effect now, one per line; empty if there is none.
    pub now: String,
    /// Whether `now` only inspects.
    pub is_read_only: bool,
    /// Commands that make the change survive a reboot, one per line; empty if there is none.
    pub persistent: String,
    /// Commands that undo `now`, one per line; empty if `now` changes nothing or the previous state is unknown.
    pub undo: String,
}

impl Fix {
    /// Creates a fix in words only.
    pub(crate) fn say(what: impl Into<String>) -> Self {
        Self { what: what.into(), ..Self::default() }
    }

    /// Returns the same commands with this description, before a sentence that they have.
    #[must_use]
    pub(crate) fn described(mut self, what: impl Into<String>) -> Self {
        let sentence = std::mem::replace(&mut self.what, what.into());
        if !sentence.is_empty() {
            self.what.push(' ');
            self.what.push_str(&sentence);
        }
        self
    }

    /// Sets commands that change something now.
    #[must_use]
    pub(crate) fn now(mut self, commands: impl Into<String>) -> Self {
        self.now = commands.into();
        self
    }

    /// Sets commands that change nothing.
    #[must_use]
    pub(crate) fn inspect(self, commands: impl Into<String>) -> Self {
        Self { is_read_only: true, ..self.now(commands) }
    }

    /// Sets commands that make the change permanent.
    #[must_use]
    pub(crate) fn keep(mut self, commands: impl Into<String>) -> Self {
        self.persistent = commands.into();
        self
    }

    /// Sets commands that undo what `now` does.
    #[must_use]
    pub(crate) fn undo(mut self, commands: impl Into<String>) -> Self {
        self.undo = commands.into();
        self
    }
}
