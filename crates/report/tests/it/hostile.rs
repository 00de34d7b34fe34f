//! Whatever text and numbers come from the host: nothing panics, nothing but text reaches the terminal, lines fit.

use proptest::prelude::*;
use report::model::{
    Affected, Evidence, Fix, Graph, MemoryNode, Report, RuledOut, Severity, SizeKind,
};
use report::text::{self, Detail};
use report::{ColourMode, Screen};
use timeline::plain::escape;
use unicode_width::UnicodeWidthChar;
use units::{Bytes, Ratio, SignedBytes, Span};

use crate::fixtures;

/// Text that tries everything: any characters, and more of the bad ones than chance would bring.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let bad = prop::sample::select(vec![
        '\u{1b}',
        '\n',
        '\r',
        '\t',
        '\u{7}',
        '\u{8}',
        '\u{7f}',
        '\u{9b}',
        '\u{200b}',
        '\u{200e}',
        '\u{202e}',
        '\u{2066}',
        '\u{feff}',
        '\u{301}',
        '\u{e0041}',
        '日',
        '🦀',
        '`',
        '#',
        '-',
        ' ',
    ]);
    prop::collection::vec(prop_oneof![any::<char>(), bad, prop::char::range('a', 'z')], 0..120)
        .prop_map(|chars| chars.into_iter().collect())
}

fn any_value() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(prop_oneof![any::<f64>(), 0.0..1e12])
}

prop_compose! {
    pub(crate) fn any_report()(
        texts in prop::collection::vec(any_text(), 12),
        values in prop::collection::vec(any_value(), 0..300),
        offsets in prop::array::uniform3(any::<f64>()),
        sizes in prop::collection::vec(any::<u64>(), 8),
        unaccounted in any::<i64>(),
        samples in 0usize..3,
        which in 0usize..4,
    ) -> Report {
        let mut report = [
            fixtures::thrashing,
            fixtures::healthy,
            fixtures::node_reclaim,
            fixtures::single_look,
        ][which]();
        let mut texts = texts.into_iter().cycle();
        let mut text = || texts.next().unwrap();
        report.host.hostname = Some(text());
        report.host.kernel = Some(text());
        report.host.ram_bytes = Some(Bytes::new(sizes[0]));
        report.headline = text();
        report.remarks = vec![text(), text()];
        report.source.samples = samples;
        report.source.watched_s = Span::from_secs_f64(offsets[0]);
        report.source.problems = vec![text(); 7];
        report.source.unknown_fields = vec![text()];
        let mut finding = fixtures::finding("any", Severity::Warning, &text());
        finding.id = text();
        finding.more = text();
        finding.confidence_why = text();
        (finding.from_s, finding.to_s) = (Some(offsets[1]), Some(offsets[2]));
        finding.graph = Some(Graph {
            label: text(),
            peak: text(),
            from_s: 0.0,
            to_s: offsets[0],
            values,
        });
        finding.evidence = vec![Evidence {
            at_s: Some(offsets[0]),
            ..fixtures::evidence(&text(), Some(&text()))
        }];
        finding.cause = text();
        finding.verify = text();
        finding.ruled_out = vec![RuledOut { id: "any", because: text() }];
        finding.fix = vec![Fix { what: text(), now: text(), is_read_only: false, persistent: text(), undo: text(), changes: Vec::new(), proven_on: Vec::new() }];
        finding.affected = vec![Affected { kind: "slab cache", name: text(), what: text() }; 7];
        finding.references = vec![text()];
        finding.aliases = vec![text()];
        let mut consequence = fixtures::finding(&text(), Severity::Critical, &text());
        consequence.caused_by = Some(finding.id.clone());
        report.notes.push(finding.clone());
        report.findings.push(finding);
        report.findings.push(consequence);
        for rule in &mut report.not_evaluated {
            rule.needs = text();
        }
        if let Some(accounting) = &mut report.accounting {
            accounting.total_bytes = Bytes::new(sizes[1]);
            accounting.at_s = offsets[0];
            for (term, size) in accounting.terms.iter_mut().zip(&sizes) {
                term.bytes = Bytes::new(*size);
            }
            accounting.unaccounted_bytes = SignedBytes::new(unaccounted);
            for node in &mut accounting.nodes {
                node.node = text();
                node.free_bytes = Bytes::new(sizes[2]);
            }
        }
        report
    }
}

fn any_branch() -> impl Strategy<Value = MemoryNode> {
    let node = (any_text(), any::<u64>(), any_value(), any_text());
    let leaf = node.prop_map(|(label, bytes, share, note)| MemoryNode {
        label,
        bytes: Bytes::new(bytes),
        kind: SizeKind::Estimate,
        share: share.map(Ratio::new),
        note,
        children: Vec::new(),
    });
    leaf.prop_recursive(12, 40, 12, |inner| {
        (any_text(), prop::collection::vec(inner, 0..12)).prop_map(|(label, children)| MemoryNode {
            label,
            children,
            ..fixtures::branch("", 1, "", Vec::new())
        })
    })
}

/// Removes this crate's own colours.
pub(crate) fn without_colour(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let (code, after) = after.split_once('m').unwrap();
        assert!(code.bytes().all(|b| b.is_ascii_digit() || b == b';'), "{code:?}");
        rest = after;
    }
    plain.push_str(rest);
    plain
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn escaped_text_is_visible_and_stays_escaped(text in any_text()) {
        let safe = escape(&text);
        let unseen = |c: char| {
            c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let left: Vec<char> = safe.chars().filter(|c| unseen(*c)).collect();
        prop_assert_eq!(left, Vec::<char>::new());
        prop_assert_eq!(escape(&safe), safe.as_ref());
    }

    #[test]
    fn any_report_is_drawn_on_any_screen(report in any_report(), columns in 0usize..200, all in any::<bool>()) {
        let mut screen = Screen::of_width(columns);
        if all {
            screen.detail = Detail::All;
        }
        let plain = text::check(&report, &screen);
        for line in plain.lines() {
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            let width: usize = line.chars().map(|c| c.width().unwrap_or(0)).sum();
            // Commands are left whole, and so is nothing else.
            let is_command = report.findings.iter().flat_map(|f| &f.fix).any(|fix| {
                let commands = [&fix.now, &fix.persistent, &fix.undo];
                commands.into_iter().flat_map(|lines| lines.lines()).any(|command| {
                    line.ends_with(escape(command.trim_start()).trim_end())
                })
            });
            prop_assert!(width <= screen.width() || is_command, "{width} {line:?}");
            prop_assert_eq!(line.trim_end(), line);
        }
        screen.colour = ColourMode::Ansi;
        prop_assert_eq!(without_colour(&text::check(&report, &screen)), plain);
    }

    #[test]
    fn any_tree_is_drawn_on_any_screen(tree in any_branch(), text in any_text(), columns in 0usize..200, all in any::<bool>()) {
        let mut screen = Screen::of_width(columns);
        if all {
            screen.detail = Detail::All;
        }
        let mut report = fixtures::whereabouts();
        report.tree = Some(tree);
        report.explanations = vec![text];
        let plain = text::where_tree(&report, &screen);
        for line in plain.lines() {
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            let width: usize = line.chars().map(|c| c.width().unwrap_or(0)).sum();
            prop_assert!(width <= screen.width(), "{width} {line:?}");
        }
        screen.colour = ColourMode::Ansi;
        prop_assert_eq!(without_colour(&text::where_tree(&report, &screen)), plain);
    }
}

proptest! {
    #[test]
    fn json_reads_back_as_it_was_and_steers_no_terminal(text in any_text()) {
        let json = report::json(&[&text]).unwrap();
        let is_plain = |c: char| escape(c.encode_utf8(&mut [0; 4])) == c.to_string();
        prop_assert!(json.chars().all(|c| c == '\n' || is_plain(c)), "{json:?}");
        let read: Vec<String> = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(read, vec![text]);
    }
}
