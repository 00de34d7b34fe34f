//! The page, drawn from reports built by hand: whole, harmless, and in the words of the text.

use chart::Drawing;
use diagnose::Evidence;
use proptest::prelude::*;
use report::html::{DataAddress, Page, Picture, RangeLink, ServedPage};
use report::model::{EVENTS_SCHEMA, EventEntry, EventsReport, Report};
use report::{Screen, html};
use timeline::signals::{
    CGROUP_EVENTS_OOM, CGROUP_EVENTS_OOM_KILL, CGROUP_MAX, MEM_AVAILABLE, MEM_FREE,
};
use timeline::{Entity, Facts, Sample, Source, SourceKind, Timeline, facts};
use units::{Bytes, Count, Limit, Span};

use crate::fixtures;
use crate::hostile::{any_report, any_text};

fn drawn(report: &Report, events: Vec<EventEntry>, facts: &Facts, title: Option<&str>) -> String {
    html::report(&page(report, events, facts, title), &Screen::default())
}

fn page(report: &Report, events: Vec<EventEntry>, facts: &Facts, title: Option<&str>) -> Page {
    Page {
        report: report.clone(),
        picture: Picture::default(),
        events: EventsReport { schema: EVENTS_SCHEMA, source: report.source.clone(), events },
        facts: facts.clone(),
        headroom: None,
        part: None,
        title: title.map(str::to_owned),
        explain: None,
    }
}

/// Free memory over ten seconds.
fn picture() -> Picture {
    let mut timeline = Timeline::default();
    for second in 0..10 {
        let mut sample = Sample::at(Span::from_secs(second));
        sample.host.set(MEM_FREE, Bytes::from_mib(100 + second));
        sample.host.set(MEM_AVAILABLE, Bytes::from_mib(200 - second));
        timeline.push(&sample).unwrap();
    }
    let facts = Facts::default();
    let cx = Evidence::new(&timeline, &facts);
    let charts = chart::charts(&cx);
    let drawing = Drawing::new(&charts, &cx, &[]);
    Picture::new(charts, drawing, Span::ZERO, &[])
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
    for (kind, text) in [
        ("style-src", between(&html, "<style>", "</style>")),
        ("script-src", between(&html, "<script>", "</script>")),
    ] {
        let digest = BASE64.encode(&Sha256::digest(text.as_bytes()));
        let policy = format!("{kind} 'sha256-{digest}'");
        assert!(html.contains(&policy), "{policy}");
    }
    assert!(!html.contains("unsafe-inline"));
}

/// What stands between two texts.
fn between<'a>(html: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = html.split_once(from).unwrap();
    rest.split_once(to).unwrap().0
}

#[test]
fn a_page_holds_the_data_that_a_server_sends() {
    let mut page = page(&fixtures::thrashing(), Vec::new(), &Facts::default(), None);
    page.picture = picture();
    let data = html::page_data(&page, &Screen::default());
    assert!(!data.meta.charts.is_empty());
    let html = html::report(&page, &Screen::default());
    let meta = between(&html, "id=\"memtide-page\">", "</script>");
    let meta: serde_json::Value = serde_json::from_str(meta).unwrap();
    assert_eq!(meta, serde_json::to_value(&data.meta).unwrap());
    let packed = between(&html, "id=\"memtide-data\">", "</script>");
    assert_eq!(packed, data_encoding::BASE64.encode(&data.packed));
    let body = data.to_body();
    let end = body.iter().position(|byte| *byte == b'\n').unwrap();
    let (json, packed) = body.split_at(end);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(json).unwrap(), meta);
    assert_eq!(packed.split_first(), Some((&b'\n', data.packed.as_slice())));
}

#[test]
fn a_page_can_leave_its_thread() {
    const fn is_shared<T: Send + Sync>() {}
    const { is_shared::<Page>() };
}

#[test]
fn a_page_that_fetches_differs_in_its_data_and_its_policy() {
    let mut page = page(&fixtures::thrashing(), Vec::new(), &Facts::default(), None);
    page.picture = picture();
    let whole = html::report(&page, &Screen::default());
    let data = DataAddress { url: "data?of=\"a\"", every: Some(Span::from_millis(2_500)) };
    let served = ServedPage { data, says: "From a server.", ..ServedPage::default() };
    let fetching = html::served_report(&page, &Screen::default(), &served);
    let data = "<script type=\"application/json\" id=\"memtide-page\" data-url=\"data?of=&quot;a&quot;\" \
                data-every=\"2.5\"></script>\n";
    assert_eq!(fetching.matches(data).count(), 1);
    assert!(!whole.contains("connect-src") && !fetching.contains("id=\"memtide-data"));
    assert!(fetching.contains("connect-src 'self';") && fetching.contains("form-action 'self'"));
    let text = |html: &str| between(html, "<body>", "<footer>").to_owned();
    assert_eq!(text(&fetching), text(&whole));
    assert!(fetching.contains("From a server."));
    // Its script can ask a server; that of a file cannot.
    let script = |html: &str| html.rsplit_once("<script>").unwrap().1.to_owned();
    assert!(script(&fetching).contains("If-None-Match") && !script(&whole).contains("fetch("));
}

#[test]
fn a_served_page_has_a_bar_to_choose_a_range_and_links_to_incidents() {
    let mut page = page(&fixtures::thrashing(), Vec::new(), &Facts::default(), None);
    page.picture = picture();
    let ranges =
        [RangeLink { name: "1 h", address: "?since=-1h&unit=\"x\"".to_owned(), is_shown: true }];
    let kept = [("unit", "\"><script>".to_owned())];
    let served =
        ServedPage { ranges: &ranges, since: "\"2h ago", kept: &kept, ..ServedPage::default() };
    let html = html::served_report(&page, &Screen::default(), &served);
    assert!(
        html.contains(
            "<a href=\"?since=-1h&amp;unit=&quot;x&quot;\" aria-current=\"true\">1 h</a>"
        )
    );
    assert!(html.contains("name=\"since\" value=\"&quot;2h ago\""));
    assert!(html.contains("type=\"hidden\" name=\"unit\" value=\"&quot;&gt;&lt;script&gt;\""));
    let text = html::served_text(&page, &Screen::default(), &served);
    assert!(
        !text.contains("<script") && !text.contains("<style") && text.contains("id=\"verdict\"")
    );
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

#[test]
fn what_the_host_had_is_not_drawn_as_what_led_to_a_kill_in_a_cgroup() {
    let mut timeline = Timeline::default();
    for second in 0..100 {
        let mut sample = Sample::at(Span::from_secs(second));
        sample.host.set(MEM_AVAILABLE, Bytes::from_mib(4000 - second));
        let killed = Count::new(u64::from(second >= 50));
        let row = &mut sample.table_mut(Entity::Cgroup).entry("/app").row;
        row.set(CGROUP_MAX, Limit::Bytes(Bytes::from_mib(96)));
        row.set(CGROUP_EVENTS_OOM, killed);
        row.set(CGROUP_EVENTS_OOM_KILL, killed);
        timeline.push(&sample).unwrap();
    }
    let source = Source::new(SourceKind::Recording, "", timeline, Facts::default());
    let cx = Evidence::new(&source.timeline, &source.facts);
    let report = Report::new(&source, &diagnose::diagnose(&source.timeline, &source.facts));
    let charts = chart::charts(&cx);
    let drawing = Drawing::new(&charts, &cx, &[]);
    let event = EventEntry { cgroup: Some("/app".to_owned()), ..event("kill", Some(50.0)) };
    let page = Page {
        picture: Picture::new(charts, drawing, Span::ZERO, &report.findings),
        ..page(&report, vec![event], &source.facts, None)
    };
    let drawn = html::report(&page, &Screen::default());
    assert!(report.findings.iter().any(|finding| finding.harm.killed > 0));
    assert!(!drawn.contains("Available memory of the host"), "{drawn}");
}
