//! The memory before an OOM kill: that of the cgroup or the host a minute before and after, drawn without a script.

use timeline::signals::{CGROUP_CURRENT, CGROUP_MAX, MEM_AVAILABLE};
use timeline::{AnySignal as _, Entity, EventKind};
use units::{Bytes, BytesPerSecond, Quantity as _, Span};

use super::Scene;
use super::escape::{Html, Tag, tag};
use super::spark::{self, Keep, Spark};
use crate::model::{EventEntry, Finding};
use crate::picture::Picture;

/// Seconds shown before and after the first kill.
const WINDOW_S: f64 = 60.0;
/// Two clocks of one event differ by their rounding.
const ROUNDING_S: f64 = 0.001;
/// At most 5 further kills are named.
const KILLS_MAX: usize = 5;

/// Values of a series in the window, in seconds of the picture.
struct RunUp<'a> {
    finding: &'a Finding,
    /// Whether the values are used memory, which grows; else available memory, which falls.
    is_used: bool,
    times: Vec<f64>,
    values: Vec<Option<f64>>,
    limit: Option<f64>,
    /// Times of the kills, in order.
    kills: Vec<f64>,
}

/// The change of memory until the first kill.
struct GrownProcess {
    from: f64,
    to: f64,
    seconds: f64,
}

pub(super) fn draw(html: &mut Html, scene: &Scene<'_>) {
    let mut killed = scene.report.findings.iter().filter(|finding| finding.harm.killed > 0);
    let Some(run_up) = killed.find_map(|finding| RunUp::new(scene, finding)) else {
        return;
    };
    let figure = Tag::of("figure", "accounting run-up").with("id", "run-up");
    html.within(figure, |html| {
        html.within(tag("figcaption"), |html| {
            let at = scene.moment(run_up.kills[0]);
            let heading = match subject(run_up.finding) {
                Some(cgroup) => format!("OOM kill in {cgroup} at {at}"),
                None => format!("OOM kill at {at}"),
            };
            html.tagged(tag("h3"), &heading);
            html.tagged(Tag::of("p", "help"), &run_up.help());
        });
        run_up.plot(html, scene);
        html.within(Tag::of("ul", "places"), |html| {
            for fact in run_up.facts(scene) {
                html.tagged(tag("li"), &fact);
            }
        });
    });
}

impl<'a> RunUp<'a> {
    /// Returns `None` if no kill of the finding is dated, or no chart shows the memory around it.
    fn new(scene: &Scene<'_>, finding: &'a Finding) -> Option<Self> {
        let picture = scene.picture;
        let subject = subject(finding);
        let events = scene.page.events.events.iter();
        let kills = events
            .filter(|event| event.kind == EventKind::OomKill.name() && is_about(event, subject));
        let offsets = kills.filter_map(|event| event.offset_s);
        let mut kills: Vec<f64> = offsets.map(|at| at - picture.begin_s()).collect();
        kills.sort_by(f64::total_cmp);
        kills.dedup();
        let (begin, _) = picture.stretch_of(finding)?;
        kills.retain(|at| *at >= begin - ROUNDING_S && *at <= picture.span_s());
        let first = *kills.first()?;
        let (from, to) = (first - WINDOW_S, first + WINDOW_S);
        kills.retain(|at| *at <= to);
        let run_up = |(times, values), limit| Self {
            finding,
            is_used: subject.is_some(),
            times,
            values,
            limit,
            kills,
        };
        // What the host had available does not show why a cgroup met its limit.
        let Some(cgroup) = subject else {
            let available = picture.proof(finding, MEM_AVAILABLE.definition().name)?;
            return Some(run_up(picture.finest(available, (from, to))?, None));
        };
        let line = picture.proof(finding, CGROUP_CURRENT.definition().name);
        let drawn = line.and_then(|at| Some((at.chart, picture.finest(at, (from, to))?)));
        let (chart, drawn) = drawn.or_else(|| picture.height_of(cgroup, (from, to)))?;
        let limit = limit_at(picture, (chart, cgroup), (from, first));
        Some(run_up(drawn, limit))
    }

    fn help(&self) -> String {
        let whole = Span::from_secs_f64(WINDOW_S);
        let what = match (self.is_used, self.limit) {
            (true, Some(limit)) => format!(
                "Memory of {}; the dashed line is its limit of {}",
                self.finding.scope.key,
                Bytes::from_f64(limit)
            ),
            (true, None) => format!("Memory of {}", self.finding.scope.key),
            (false, _) => "Available memory of the host".to_owned(),
        };
        format!("{what}. {whole} before and after, as far as recorded; upright lines are kills.")
    }

    fn plot(&self, html: &mut Html, scene: &Scene<'_>) {
        let [Some(first), Some(last)] = [self.times.first(), self.times.last()] else {
            return;
        };
        let times: Vec<Span> =
            self.times.iter().map(|at| Span::from_secs_f64(at - first)).collect();
        let marks: Vec<f64> = self.kills.iter().map(|at| at - first).collect();
        spark::draw(
            html,
            &Spark {
                times: &times,
                values: &self.values,
                keep: if self.is_used { Keep::Most } else { Keep::Least },
                threshold: self.limit,
                marks: &marks,
                is_part: true,
                ..Spark::default()
            },
        );
        html.within(Tag::of("p", "ends"), |html| {
            html.tagged(tag("span"), &scene.moment(*first));
            html.tagged(tag("span"), &scene.moment(*last));
        });
    }

    /// Returns sentences: rate, time to the limit, further kills, restarts.
    fn facts(&self, scene: &Scene<'_>) -> Vec<String> {
        let mut facts = Vec::new();
        if let Some(growth) = self.growth() {
            facts.extend(self.rate(&growth));
        }
        let others = &self.kills[1..];
        if !others.is_empty() {
            let after = others.iter().take(KILLS_MAX);
            let after: Vec<String> =
                after.map(|at| Span::from_secs_f64(at - self.kills[0]).to_string()).collect();
            let more = others.len().saturating_sub(KILLS_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            facts.push(format!("killed again after {}{more}", after.join(", ")));
        }
        match self.restarts(scene) {
            0 => {}
            1 => facts.push("restarted once".to_owned()),
            count => facts.push(format!("restarted {count} times")),
        }
        facts
    }

    /// Returns the change up to the last sample before the first kill.
    fn growth(&self) -> Option<GrownProcess> {
        let known = self.times.iter().zip(&self.values);
        let before: Vec<(f64, f64)> = known
            .filter(|(at, _)| **at < self.kills[0])
            .filter_map(|(at, value)| Some((*at, (*value)?)))
            .collect();
        let (end, to) = *before.last()?;
        let sign = if self.is_used { 1.0 } else { -1.0 };
        // Takes the latest of equal extremes: time without change does not belong to the growth.
        let (begin, from) = *before
            .iter()
            .rev()
            .min_by(|(_, one), (_, other)| (sign * one).total_cmp(&(sign * other)))?;
        let is_growth = (to - from) * sign > 0.0 && end > begin;
        is_growth.then_some(GrownProcess { from, to, seconds: end - begin })
    }

    fn rate(&self, growth: &GrownProcess) -> Vec<String> {
        let (from, to) = (Bytes::from_f64(growth.from), Bytes::from_f64(growth.to));
        let lasted = Span::from_secs_f64(growth.seconds);
        let per_second = (growth.to - growth.from).abs() / growth.seconds;
        let verb = if self.is_used { "grew" } else { "fell" };
        let rate = BytesPerSecond::from_f64(per_second);
        let mut facts = vec![format!("{verb} from {from} to {to} in {lasted}: {rate}")];
        let end = if self.is_used { self.limit } else { Some(0.0) };
        if let Some(end) = end {
            let left = Span::from_secs_f64((end - growth.to).abs() / per_second);
            let what = if self.is_used { "the limit" } else { "nothing left" };
            facts.push(format!("{left} to {what} at that rate"));
        }
        facts
    }

    /// Returns how often the killed service started in the minute after the first kill.
    fn restarts(&self, scene: &Scene<'_>) -> usize {
        let key = self.finding.scope.key.rsplit('/').next().unwrap_or_default();
        let begin = scene.picture.begin_s();
        let (from, to) = (self.kills[0] + begin, self.kills[0] + WINDOW_S + begin);
        let events = scene.page.events.events.iter();
        let starts = events.filter(|event| {
            let is_same = event
                .subject
                .as_ref()
                .is_some_and(|name| !key.is_empty() && name.rsplit('/').next() == Some(key));
            let is_within = event.offset_s.is_some_and(|at| at >= from && at <= to);
            event.kind == EventKind::ServiceStarted.name() && is_same && is_within
        });
        starts.count()
    }
}

/// Returns the cgroup that a finding is about; `None` if it is about the host.
fn subject(finding: &Finding) -> Option<&str> {
    (finding.scope.entity == Entity::Cgroup).then_some(finding.scope.key.as_str())
}

/// Returns the last limit of a cgroup in a range, from the chart that shows its memory.
fn limit_at(picture: &Picture, (chart, cgroup): (usize, &str), range: (f64, f64)) -> Option<f64> {
    let mut limits = picture.showing(CGROUP_MAX.definition().name).into_iter();
    let limit = limits.find(|limit| {
        let series = &picture.charts[limit.chart].series[limit.series];
        limit.chart == chart && series.group.as_deref() == Some(cgroup)
    });
    let (_, values) = picture.finest(limit?, range)?;
    values.into_iter().flatten().next_back()
}

/// Whether an event is about a cgroup; true for every event if none is given.
fn is_about(event: &EventEntry, cgroup: Option<&str>) -> bool {
    cgroup.is_none_or(|key| event.cgroup.as_deref() == Some(key))
}
