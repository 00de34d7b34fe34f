//! Signs and classes of severities: each has its own shape, so that none depends on colour alone.

use super::escape::Html;
use crate::model::{Level, Severity};

const OCTAGON: &str = "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><path \
                       fill=\"currentColor\" d=\"M7.4 1h9.2L23 7.4v9.2L16.6 23H7.4L1 \
                       16.6V7.4z\"/><path class=\"mark\" fill=\"none\" stroke=\"var(--panel, \
                       #fff)\" stroke-width=\"2.6\" stroke-linecap=\"round\" d=\"M12 6.5v6.5M12 \
                       17.4v.1\"/></svg>";
const TRIANGLE: &str = "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><path \
                        fill=\"currentColor\" d=\"M12 1.8 23.4 22H.6z\"/><path class=\"mark\" \
                        fill=\"none\" stroke=\"var(--panel, #fff)\" stroke-width=\"2.4\" \
                        stroke-linecap=\"round\" d=\"M12 9v5.2M12 18.3v.1\"/></svg>";
const DISC: &str = "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle \
                    fill=\"currentColor\" cx=\"12\" cy=\"12\" r=\"11\"/><path class=\"mark\" \
                    fill=\"none\" stroke=\"var(--panel, #fff)\" stroke-width=\"2.6\" \
                    stroke-linecap=\"round\" d=\"M12 11v6.5M12 6.6v.1\"/></svg>";
const TICK: &str = "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle \
                    fill=\"currentColor\" cx=\"12\" cy=\"12\" r=\"11\"/><path class=\"mark\" \
                    fill=\"none\" stroke=\"var(--panel, #fff)\" stroke-width=\"2.6\" \
                    stroke-linecap=\"round\" stroke-linejoin=\"round\" d=\"m6.8 12.4 3.6 3.6 \
                    6.8-7.6\"/></svg>";
const QUESTION: &str = "<svg class=\"icon\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle \
                        fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\" cx=\"12\" \
                        cy=\"12\" r=\"10\"/><path fill=\"none\" stroke=\"currentColor\" \
                        stroke-width=\"2.4\" stroke-linecap=\"round\" d=\"M9 9.2a3 3 0 1 1 4.4 \
                        2.7c-.9.5-1.4 1.1-1.4 2.1M12 17.6v.1\"/></svg>";

/// The class that colours a verdict.
pub(super) const fn class_of_level(level: Level) -> &'static str {
    match level {
        Level::Critical => "is-critical",
        Level::Warning => "is-warning",
        Level::Ok => "is-ok",
        Level::Unknown => "is-unknown",
    }
}

/// The class that colours a finding.
pub(super) const fn class_of_severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "is-critical",
        Severity::Warning => "is-warning",
        Severity::Info => "is-info",
    }
}

/// Draws the sign of a verdict.
pub(super) fn of_level(html: &mut Html, level: Level) {
    html.raw(match level {
        Level::Critical => OCTAGON,
        Level::Warning => TRIANGLE,
        Level::Ok => TICK,
        Level::Unknown => QUESTION,
    });
}

/// Draws the sign of a finding.
pub(super) fn of_severity(html: &mut Html, severity: Severity) {
    html.raw(match severity {
        Severity::Critical => OCTAGON,
        Severity::Warning => TRIANGLE,
        Severity::Info => DISC,
    });
}
