//! How an error is written into a text.
//!
//! An error names what failed, and keeps its cause as its source, so that a caller can ask for the cause's kind. Whoever
//! writes an error down, into a status, a problem or a terminal, writes its causes too.

use std::error::Error;

/// Returns an error with its causes: `cannot read /proc/1/maps: Permission denied (os error 13)`.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug)]
    struct Outer(Option<io::Error>);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("cannot read x")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.0.as_ref().map(|error| error as _)
        }
    }

    #[test]
    fn each_cause_is_written_once() {
        let denied = io::Error::other("denied");
        assert_eq!(with_causes(&Outer(Some(denied))), "cannot read x: denied");
        // An error without a cause is its own text.
        assert_eq!(with_causes(&Outer(None)), "cannot read x");
    }
}
