//! The page: judged once for all who ask the same, with what only a server can add.

use answers::PageSource;
use diagnose::Evidence;
use diagnose::headroom::Question as HeadroomQuestion;
use import::{OpenOptions, Resolution};
use report::Screen;
use report::html::{self, DataAddress, Page, RangeLink, ServedPage};
use sampler::RECENT;
use timeline::{TimePoint, TimeRange, Timeline};
use units::Span;

use crate::feed::SourceFeed;
use crate::own_cost;
use crate::query::{GROUP, Query, RANGE, quoted};
use crate::refusal::Unanswered;

/// How long a page waits before it asks whether there is something new, and before it is drawn anew.
pub(crate) const EVERY: Span = Span::from_secs(2);
/// A longer part is not read sample by sample: 4 h at one a second are ten times as many as a screen has columns.
const CLOSER_MAX: Span = Span::from_hours(4);

/// A page that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct PageQuestion {
    pub(crate) query: Query,
    pub(crate) part: PagePart,
}

/// A part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PagePart {
    /// The page itself.
    Html,
    /// The data of its charts.
    Data,
    /// Its text alone.
    Text,
}

/// A part of a page that is asked for in full detail.
#[derive(Debug)]
pub(crate) struct Closer {
    /// The name of the page's data.
    pub(crate) of: String,
    /// From when to when, in seconds of the page.
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
}

/// A page, judged.
#[derive(Debug)]
pub(crate) struct JudgedPage {
    page: Page,
    screen: Screen,
    query: Query,
    /// Whether it shows what goes on, and so changes.
    follows: bool,
    /// The times of its samples, where there are finer ones than it has.
    clock: Option<Timeline>,
    ranges: &'static [(&'static str, &'static str)],
    says: String,
}

impl Closer {
    /// The name of its answer.
    pub(crate) fn key(&self) -> String {
        format!("closer {} {} {}", self.of, self.from_s, self.to_s)
    }
}

impl PageQuestion {
    /// Parameters of a page.
    pub(crate) const NAMES: &'static [&'static [&'static str]] = &[&RANGE, &GROUP];

    /// The name of its answer: all parts are of one.
    pub(crate) fn key(&self) -> String {
        format!("page?{}", self.query.canonical())
    }

    /// Whether the page shows what goes on, and so changes.
    pub(crate) fn follows(&self, feed: &SourceFeed) -> Result<bool, Unanswered> {
        let range = self.query.range()?.unwrap_or_else(|| feed.usual_range());
        Ok(feed.goes_on() && range.until.is_none())
    }

    pub(crate) fn judge(
        &self,
        feed: &SourceFeed,
        screen: &Screen,
    ) -> Result<JudgedPage, Unanswered> {
        let at = self.query.moment("at")?;
        let named = self.query.range()?;
        let range = named.unwrap_or_else(|| feed.usual_range());
        let source = feed.judged(range)?;
        let selector = self.query.group()?;
        let group = answers::group_of(&source, selector.as_ref(), false)?;
        if source.timeline.is_empty() {
            return Err(Unanswered::absent("there is no sample in this range"));
        }
        let follows = self.follows(feed)?;
        let of =
            PageSource { source: &source, path: feed.path(), range, group: group.as_deref(), at };
        let question = HeadroomQuestion::default();
        let (mut page, problems) = if follows {
            answers::page_now(of, RECENT, &question)
        } else {
            answers::page(of, &question)
        };
        page.report.source.problems.extend(problems);
        page.title = feed.title();
        if let Some(stale) = follows.then(|| stale(feed, &source.timeline)).flatten() {
            page.report.source.problems.insert(0, stale);
        }
        let clock = source.origin.thinned_to.map(|_| clock_of(&source.timeline));
        Ok(JudgedPage {
            page,
            screen: screen.clone(),
            query: self.query.clone(),
            follows,
            clock,
            ranges: ranges(feed, &source.timeline, named.is_some()),
            says: own_cost::says(feed),
        })
    }
}

/// Says that no sample has come for a while, where that is not as usual.
fn stale(feed: &SourceFeed, timeline: &Timeline) -> Option<String> {
    /// A recorder writes what it has at least this often.
    const WRITTEN: Span = Span::from_mins(1);
    let usual = timeline.interval().unwrap_or_default().times(5.0).max(WRITTEN);
    let age = feed.age().filter(|age| *age > usual)?;
    let asks = match feed.recording() {
        Some(path) => format!(": `memtide record --status --to {}` says why", path.display()),
        None => String::new(),
    };
    Some(format!("no sample has come for {age}{asks}"))
}

/// The times of a timeline alone, by which samples are found on its clock.
fn clock_of(timeline: &Timeline) -> Timeline {
    let mut clock = Timeline::default();
    for stamp in (0..timeline.len()).filter_map(|index| timeline.stamp(index)) {
        // They are in order where they come from.
        let _ = clock.push_stamp(stamp);
    }
    clock
}

/// Ranges to choose from: name, and start as it is typed.
fn ranges(
    feed: &SourceFeed,
    shown: &Timeline,
    is_part: bool,
) -> &'static [(&'static str, &'static str)] {
    /// A part of fewer samples shows nothing.
    const SAMPLES_MIN: usize = 10;
    if feed.recording().is_some() {
        &[
            ("15 min", "-15m"),
            ("1 h", "-1h"),
            ("6 h", "-6h"),
            ("24 h", "-24h"),
            ("7 days", "-168h"),
            ("all", "+0s"),
        ]
    } else if feed.is_live() {
        &[("2 min", "-2m"), ("10 min", "-10m"), ("all", "")]
    } else if is_part || shown.len() > SAMPLES_MIN {
        &[("all", "")]
    } else {
        &[]
    }
}

impl JudgedPage {
    pub(crate) fn html(&self) -> String {
        self.served(html::served_report)
    }

    pub(crate) fn text(&self) -> String {
        self.served(html::served_text)
    }

    pub(crate) fn data(&self) -> Vec<u8> {
        html::page_data(&self.page, &self.screen).to_body()
    }

    /// About how many bytes it keeps.
    pub(crate) fn size(&self) -> usize {
        self.page.picture.size() + self.clock.as_ref().map_or(0, |clock| clock.len() * 64)
    }

    fn served(&self, draw: impl FnOnce(&Page, &Screen, &ServedPage<'_>) -> String) -> String {
        let kept = self.query.kept(&GROUP);
        let typed = |name| self.query.text(name).map(quoted).unwrap_or_default();
        let (since, until) = (typed("since"), typed("until"));
        let asked = self.query.canonical();
        let address =
            |what: &str| if asked.is_empty() { what.to_owned() } else { format!("{what}?{asked}") };
        let (data, text, changes) = (address("data"), address("text"), address("changes"));
        let ranges: Vec<RangeLink> =
            self.ranges.iter().map(|(name, from)| self.link(name, from, &kept)).collect();
        draw(
            &self.page,
            &self.screen,
            &ServedPage {
                data: DataAddress { url: &data, every: self.follows.then_some(EVERY) },
                closer: self.clock.as_ref().map(|_| "closer"),
                text: self.follows.then_some(&text),
                changes: self.follows.then_some(&changes),
                ranges: &ranges,
                since: &since,
                until: &until,
                kept: &kept,
                says: &self.says,
            },
        )
    }

    fn link(&self, name: &'static str, from: &str, kept: &[(&'static str, String)]) -> RangeLink {
        let mut asked = form_urlencoded::Serializer::new(String::new());
        if !from.is_empty() {
            asked.append_pair("since", from);
        }
        asked.extend_pairs(kept.iter().map(|(name, value)| (*name, value.as_str())));
        let asked = asked.finish();
        let typed =
            self.query.text("since").unwrap_or(if self.ranges.len() > 3 { "-1h" } else { "" });
        let is_shown =
            typed == from && ["until", "at"].iter().all(|name| self.query.text(name).is_none());
        let address = if asked.is_empty() { ".".to_owned() } else { format!("?{asked}") };
        RangeLink { name, address, is_shown }
    }

    /// Reads a part in full detail, as curves of the same charts.
    pub(crate) fn closer(&self, closer: &Closer, feed: &SourceFeed) -> Result<Vec<u8>, Unanswered> {
        let absent = || Unanswered::absent("this page has all that there is");
        let clock = self.clock.as_ref().ok_or_else(absent)?;
        let length = Span::from_secs_f64(closer.to_s - closer.from_s);
        if length > CLOSER_MAX {
            return Err(Unanswered::bad(format!(
                "{length} are too much detail; {CLOSER_MAX} are the most"
            )));
        }
        let moment = |second: f64| {
            let at = Span::from_secs_f64(second + self.page.picture.begin_s());
            clock.wall_at(at).map(TimePoint::At)
        };
        let range = TimeRange { since: moment(closer.from_s), until: moment(closer.to_s) };
        if range.since.is_none() || range.until.is_none() {
            return Err(Unanswered::absent("the times of this part are not known"));
        }
        let part = feed.part(OpenOptions {
            range,
            resolution: Resolution::Full,
            ..OpenOptions::default()
        })?;
        let part = Evidence::new(&part.timeline, &self.page.facts);
        html::closer_data(&self.page, &part, clock).ok_or_else(absent)
    }
}
