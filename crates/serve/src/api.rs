//! Answers for programs: JSON, as the command line prints it.

use answers::GroupSelector;
use diagnose::accounting::GroupBy;
use diagnose::headroom::{Demand, DemandKind, Question};
use report::Screen;
use report::html;
use report::model::series::{SeriesPicks, SeriesReport};
use sampler::RECENT;
use timeline::{EventKind, SignalId, Source, TimePoint, TimeRange};
use units::{Bytes, Span};

use crate::answer::Body;
use crate::feed::SourceFeed;
use crate::query::{GROUP, Query, RANGE, quoted};
use crate::refusal::Unanswered;

/// What is asked about.
pub(crate) struct ApiSource<'a> {
    pub(crate) feed: &'a SourceFeed,
    pub(crate) screen: &'a Screen,
}

/// What a program asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiKind {
    Check,
    Where,
    Headroom,
    Compare,
    /// The same as a page.
    ComparePage,
    Events,
    Series,
}

/// A question of a program.
#[derive(Debug)]
pub(crate) struct ApiQuestion {
    pub(crate) kind: ApiKind,
    pub(crate) query: Query,
}

/// Ends of the two ranges of `compare`.
const COMPARED: [&str; 4] = ["before_since", "before_until", "after_since", "after_until"];
/// Signals that one question may name.
const SIGNALS_MAX: usize = 32;

impl ApiKind {
    /// Parameters that it takes.
    pub(crate) const fn names(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Check => &[&RANGE, &GROUP],
            Self::Where => &[&["at", "by", "top"]],
            Self::Headroom => &[&["since", "until", "add", "kind", "cycle"], &GROUP],
            Self::Compare | Self::ComparePage => &[&COMPARED],
            Self::Events => &[&RANGE, &GROUP, &["kind"]],
            Self::Series => &[&RANGE, &["signal", "key", "points"]],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Where => "where",
            Self::Headroom => "headroom",
            Self::Compare => "compare",
            Self::ComparePage => "compare page",
            Self::Events => "events",
            Self::Series => "series",
        }
    }
}

impl ApiQuestion {
    /// The name of its answer.
    pub(crate) fn key(&self) -> String {
        format!("{}?{}", self.kind.name(), self.query.canonical())
    }

    pub(crate) fn answer(&self, asked: ApiSource<'_>) -> Result<Body, Unanswered> {
        let feed = asked.feed;
        let text = match self.kind {
            ApiKind::Check => self.check(feed)?,
            ApiKind::Where => self.where_memory(feed)?,
            ApiKind::Headroom => self.headroom(feed)?,
            ApiKind::Compare => {
                let [before, after] = self.compared()?;
                let (before, after) = (feed.judged(before)?, feed.judged(after)?);
                report::json(&answers::compare(&before, &after))?
            }
            ApiKind::ComparePage => return self.compare_page(feed, asked.screen),
            ApiKind::Events => self.events(feed)?,
            ApiKind::Series => self.series(feed)?,
        };
        Ok(Body::json(text))
    }

    fn group(&self, source: &Source) -> Result<Option<String>, Unanswered> {
        let typed: Option<GroupSelector> = self.query.group()?;
        Ok(answers::group_of(source, typed.as_ref(), false)?)
    }

    /// The range, and whether it is what goes on now.
    fn range(&self, feed: &SourceFeed) -> Result<(TimeRange, bool), Unanswered> {
        let range = self.query.range()?.unwrap_or_else(|| feed.usual_range());
        Ok((range, feed.goes_on() && range.until.is_none()))
    }

    fn check(&self, feed: &SourceFeed) -> Result<String, Unanswered> {
        let (range, is_now) = self.range(feed)?;
        let source = feed.judged(range)?;
        let group = self.group(&source)?;
        let report = if is_now {
            answers::check_now(&source, RECENT, group.as_deref())
        } else {
            answers::check_about(&source, group.as_deref(), self.query.moment("at")?)
        };
        Ok(report::json(&report)?)
    }

    fn where_memory(&self, feed: &SourceFeed) -> Result<String, Unanswered> {
        let at = self.query.moment("at")?;
        let by = self.query.value("by", |typed| {
            let kinds = GroupBy::ALL;
            kinds.into_iter().find(|kind| kind.name() == typed).ok_or_else(|| {
                format!(
                    "there is no table by `{}`; there are {}",
                    quoted(typed),
                    kinds.map(GroupBy::name).join(", ")
                )
            })
        })?;
        let top = self
            .query
            .value("top", |typed| typed.parse().map_err(|_| format!("`{typed}` is no number")))?;
        let source = feed.part(answers::part_for_where(feed.recording().is_some(), by, at))?;
        Ok(match by {
            Some(by) => report::json(&answers::where_by(&source, by)?)?,
            None => {
                let report = answers::where_memory(&source, top);
                let absent =
                    || Unanswered::absent("the source has no /proc/meminfo with a MemTotal");
                report::json(&report.ok_or_else(absent)?)?
            }
        })
    }

    fn headroom(&self, feed: &SourceFeed) -> Result<String, Unanswered> {
        let add: Option<Bytes> = self.query.value("add", |typed| {
            typed.parse().map_err(|error: units::SizeError| error.to_string())
        })?;
        let kind = self.query.value("kind", |typed| match typed {
            "anon" => Ok(DemandKind::Anon),
            "cache" => Ok(DemandKind::Cache),
            "tmpfs" => Ok(DemandKind::Tmpfs),
            _ => Err(format!("there is no kind `{}`; there are anon, cache, tmpfs", quoted(typed))),
        })?;
        let cycle = self.query.value("cycle", cycle)?.unwrap_or(Question::CYCLE);
        let question = Question {
            add: add
                .filter(|add| *add > Bytes::ZERO)
                .map(|bytes| Demand { bytes, kind: kind.unwrap_or(DemandKind::Anon) }),
            cycle,
            quantile: Question::QUANTILE,
        };
        let range = self.query.range()?.unwrap_or_else(|| match feed.recording() {
            Some(_) => TimeRange { since: Some(TimePoint::BeforeEnd(cycle)), until: None },
            None => TimeRange::default(),
        });
        let source = feed.judged(range)?;
        let group = self.group(&source)?;
        Ok(report::json(&answers::headroom(&source, &question, group.as_deref()))?)
    }

    /// The two ranges that are compared: both must be named, as each is a part of one source.
    fn compared(&self) -> Result<[TimeRange; 2], Unanswered> {
        let moment = |name| self.query.moment(name);
        let before = TimeRange { since: moment("before_since")?, until: moment("before_until")? };
        let after = TimeRange { since: moment("after_since")?, until: moment("after_until")? };
        if before.is_all() || after.is_all() {
            return Err(Unanswered::bad("two ranges are compared").with_help(
                "name them: ?before_since=yesterday+14:00&before_until=yesterday+15:00&after_since=14:00&after_until=15:00",
            ));
        }
        Ok([before, after])
    }

    fn compare_page(&self, feed: &SourceFeed, screen: &Screen) -> Result<Body, Unanswered> {
        let ranges = self.compared()?;
        let sources = [feed.judged(ranges[0])?, feed.judged(ranges[1])?];
        let sides = [0, 1].map(|side| answers::PageSource {
            source: &sources[side],
            path: feed.path(),
            range: ranges[side],
            group: None,
            at: None,
        });
        let (report, [(mut before, before_problems), (mut after, after_problems)]) =
            answers::compare_pages(sides);
        before.report.source.problems.extend(before_problems);
        after.report.source.problems.extend(after_problems);
        Ok(Body::html(html::compare(&report, &before, &after, screen)))
    }

    fn events(&self, feed: &SourceFeed) -> Result<String, Unanswered> {
        let kinds = self.query.value("kind", |typed| {
            let kinds: Vec<String> = typed.split(',').map(str::to_owned).collect();
            let unknown =
                kinds.iter().find(|kind| !EventKind::ALL.iter().any(|known| known.name() == *kind));
            match unknown {
                Some(kind) => Err(format!("there are no events `{}`", quoted(kind))),
                None => Ok(kinds),
            }
        })?;
        let (range, _) = self.range(feed)?;
        let source = feed.with_events(range)?;
        let group = self.group(&source)?;
        Ok(report::json(&answers::events(&source, &kinds.unwrap_or_default(), group.as_deref()))?)
    }

    fn series(&self, feed: &SourceFeed) -> Result<String, Unanswered> {
        let signals = self.query.value("signal", |typed| {
            let names: Vec<&str> = typed.split(',').collect();
            if names.len() > SIGNALS_MAX {
                return Err(format!(
                    "{} signals are too many; {SIGNALS_MAX} are the most",
                    names.len()
                ));
            }
            let known = names.into_iter().map(|name| {
                let found = SignalId::all().find(|signal| signal.def().name == name);
                found.ok_or_else(|| {
                    format!("there is no signal `{}`; `memtide signals` lists them", quoted(name))
                })
            });
            known.collect::<Result<Vec<SignalId>, String>>()
        })?;
        let Some(signals) = signals else {
            return Err(
                Unanswered::bad("no signal is named").with_help("?signal=mem.available,vm.pswpin")
            );
        };
        let points = self.query.value("points", |typed| match typed.parse::<usize>() {
            Ok(points) if (2..=SeriesPicks::POINTS_MAX).contains(&points) => Ok(points),
            _ => {
                Err(format!("`{}` is not between 2 and {}", quoted(typed), SeriesPicks::POINTS_MAX))
            }
        })?;
        let (range, _) = self.range(feed)?;
        let source = feed.part(import::OpenOptions { range, ..import::OpenOptions::default() })?;
        let picks = SeriesPicks {
            signals,
            key: self.query.text("key").map(str::to_owned),
            points: points.unwrap_or(SeriesPicks::POINTS_USUAL),
        };
        Ok(report::json(&SeriesReport::new(&source, &picks))?)
    }
}

/// A cycle as `--cycle` takes it.
fn cycle(typed: &str) -> Result<Span, String> {
    let wrong = || format!("`{}` is no duration between 1s and 8784h", quoted(typed));
    let hours_of_days = typed.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let seconds = match hours_of_days {
        Some(days) => f64::from(days) * 86_400.0,
        None => typed.parse::<jiff::SignedDuration>().map_err(|_| wrong())?.as_secs_f64(),
    };
    if (1.0..=366.0 * 86_400.0).contains(&seconds) {
        Ok(Span::from_secs_f64(seconds))
    } else {
        Err(wrong())
    }
}
