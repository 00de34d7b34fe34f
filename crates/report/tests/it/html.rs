//! The page, drawn from reports built by hand: whole, harmless, and in the words of the text.

use proptest::prelude::*;
use report::html::{Page, Picture};
use report::model::{EVENTS_SCHEMA, EventEntry, EventsReport, Report};
use report::{Screen, html};
use timeline::{Facts, facts};
use units::Span;

use crate::fixtures;
use crate::hostile::{any_report, any_text};

fn drawn(report: &Report, events: Vec<EventEntry>, facts: &Facts, title: Option<&str>) -> String {
    let page = Page {
        report: report.clone(),
        picture: Picture::default(),
        events: EventsReport { schema: EVENTS_SCHEMA, source: report.source.clone(), events },
        facts: facts.clone(),
        headroom: None,
        part: None,
        title: title.map(str::to_owned),
        explain: None,
    };
    html::report(&page, &Screen::default())
}

fn event(text: &str, offset_s: Option<f64>) -> EventEntry {
    EventEntry {
        at: None,
        since: None,
        since_offset_s: None,
        until: None,
        until_offset_s: None,
        dated: "exactly",
        offset_s,
        kind: "oom-kill",
        subject: None,
        cgroup: None,
        text: text.to_owned(),
        report: Some(format!("first\n{text}")),
    }
}

/// The page's own elements, without its style and script.
fn body(html: &str) -> String {
    let (_, body) = html.split_once("<body>").unwrap();
    body.split_once("<script").unwrap().0.to_owned()
}

/// Element names that the page may have.
const ELEMENTS: &str = " a article br button code dd details div dl dt figcaption figure footer h1 \
                        h2 h3 h4 header li main ol p pre section span summary svg path rect circle \
                        table caption thead tbody tr th td time ul ";

/// Everything that stands between `<` and `>`, closed in order.
fn tags(body: &str) -> Result<Vec<&str>, String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for part in body.split('<').skip(1) {
        let (tag, _) = part.split_once('>').ok_or_else(|| format!("no end: {part}"))?;
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if !ELEMENTS.contains(&format!(" {name} ")) {
            return Err(format!("`{name}` is no element of the page"));
        }
        match tag.strip_prefix('/') {
            Some(_) if open.pop() != Some(name) => return Err(format!("</{name}> closes nothing")),
            None if !tag.ends_with('/') => open.push(name),
            _ => {}
        }
        all.push(tag);
    }
    match open.as_slice() {
        [] => Ok(all),
        open => Err(format!("not closed: {open:?}")),
    }
}

#[test]
fn a_page_of_each_kind_of_report_is_whole() {
    for report in [
        fixtures::healthy(),
        fixtures::thrashing(),
        fixtures::node_reclaim(),
        fixtures::single_look(),
        fixtures::hostile(),
    ] {
        let html = drawn(&report, vec![event("killed", Some(3.0))], &Facts::default(), None);
        let body = body(&html);
        let tags = tags(&body).unwrap_or_else(|fault| panic!("{fault}\n{body}"));
        assert!(tags.len() > 30);
        let forbidden =
            |tag: &&&str| tag.contains(" style=") || tag.contains(" on") && !tag.contains("\"");
        assert_eq!(tags.iter().find(forbidden), None);
    }
}

#[test]
fn what_a_page_is_made_of() {
    let mut facts = Facts::default();
    facts.record(Span::ZERO, facts::SWAPPINESS, "60");
    let html = drawn(&fixtures::thrashing(), vec![event("killed", Some(3.0))], &facts, None);
    let body = body(&html);
    let (page, _) = body.split_once("<footer>").unwrap();
    insta::assert_snapshot!(page.replace("><", ">\n<"));
}

#[test]
fn consequences_are_inside_their_root_and_keep_their_numbers() {
    let report = fixtures::thrashing();
    let body = body(&drawn(&report, Vec::new(), &Facts::default(), None));
    let root =
        body.find("<article class=\"finding is-critical\" id=\"finding-0\" data-finding=\"0\">");
    let root = root.expect("the root");
    let end = root + body.split_at(root).1.find("</article>").unwrap();
    for (index, finding) in
        report.findings.iter().enumerate().filter(|(_, it)| it.caused_by.is_some())
    {
        let place = body.find(&format!("id=\"finding-{index}\" data-finding=\"{index}\"")).unwrap();
        assert!((root..end).contains(&place), "{}", finding.id);
    }
}

#[test]
fn settings_that_a_finding_names_stand_out() {
    let mut facts = Facts::default();
    facts.record(Span::ZERO, facts::ZONE_RECLAIM_MODE, "1");
    facts.record(Span::ZERO, facts::SWAPPINESS, "60");
    let mut report = fixtures::node_reclaim();
    report.findings[0].evidence[0].signal = Some(facts::ZONE_RECLAIM_MODE.name.into());
    let body = body(&drawn(&report, Vec::new(), &facts, None));
    let row = "<tr class=\"is-relied-on\"><th scope=\"row\"><code>vm.zone_reclaim_mode</code>";
    assert!(body.contains(row), "{body}");
    assert_eq!(body.matches("is-relied-on").count(), 1);
    assert!(body.contains(facts::SWAPPINESS.meaning));
}

#[test]
fn the_policy_names_what_the_page_runs() {
    use data_encoding::BASE64;
    use sha2::{Digest as _, Sha256};
    let html = drawn(&fixtures::healthy(), Vec::new(), &Facts::default(), None);
    let between = |from: &str, to: &str| {
        let (_, rest) = html.split_once(from).unwrap();
        rest.split_once(to).unwrap().0
    };
    for (kind, text) in [
        ("style-src", between("<style>", "</style>")),
        ("script-src", between("<script>", "</script>")),
    ] {
        let digest = BASE64.encode(&Sha256::digest(text.as_bytes()));
        let policy = format!("{kind} 'sha256-{digest}'");
        assert!(html.contains(&policy), "{policy}");
    }
    assert!(!html.contains("unsafe-inline"));
}

#[test]
fn more_events_than_a_page_holds_are_counted() {
    let mut events: Vec<EventEntry> = (0..1_000).map(|i| event(&format!("e{i}"), None)).collect();
    events.iter_mut().skip(5).for_each(|event| event.kind = "service-started");
    events.push(event("the kill", None));
    let body = body(&drawn(&fixtures::healthy(), events, &Facts::default(), None));
    assert_eq!(body.matches("<span class=\"text\">").count(), 300);
    assert!(body.contains("And 701 more"), "{body}");
    assert!(body.contains("the kill"), "what explains is told before what is many");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_host_says_is_text(report in any_report(), told in any_text(), at in any::<f64>(), value in any_text()) {
        let mut facts = Facts::default();
        facts.record(Span::ZERO, facts::KERNEL_CMDLINE, &value);
        facts.hostname = Some(told.clone());
        let html = drawn(&report, vec![event(&told, Some(at))], &facts, Some(&told));
        let body = body(&html);
        prop_assert!(tags(&body).is_ok(), "{:?}\n{}", tags(&body), body);
        let steers = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{200b}' | '\u{2066}');
        let (title, _) = html.split_once("</title>").unwrap();
        for text in [title, &body] {
            prop_assert_eq!(text.chars().find(|c| steers(*c)), None);
        }
    }
}
