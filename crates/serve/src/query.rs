//! The part of an address behind `?`, read as the command line reads its options. Nothing here trusts it: its length, each
//! name and each value has a bound, and what is wrong is named.

use std::collections::BTreeMap;

use answers::{GroupSelector, time_expr};
use timeline::plain::escape;
use timeline::{TimePoint, TimeRange};

use crate::refusal::Unanswered;

/// No question that a page or a person asks is longer.
const LENGTH_MAX: usize = 2_048;
/// What is quoted of what was sent.
const QUOTED_MAX: usize = 60;

/// What was asked, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(BTreeMap<String, String>);

/// Names of a range.
pub(crate) const RANGE: [&str; 3] = ["since", "until", "at"];
/// Names of a cgroup.
pub(crate) const GROUP: [&str; 4] = ["cgroup", "unit", "container", "pod"];

/// What was sent, as it may be shown: short, and without what steers a terminal.
pub(crate) fn quoted(text: &str) -> String {
    let plain = escape(text);
    let mut shown: String = plain.chars().take(QUOTED_MAX).collect();
    if plain.chars().nth(QUOTED_MAX).is_some() {
        shown.push('…');
    }
    shown
}

impl Query {
    /// Reads it; `known` are the names that a question may have.
    pub(crate) fn parse(raw: Option<&str>, known: &[&[&str]]) -> Result<Self, Unanswered> {
        let raw = raw.unwrap_or_default();
        if raw.len() > LENGTH_MAX {
            let text = format!("the question has {} bytes; {LENGTH_MAX} are the most", raw.len());
            return Err(Unanswered::new(414, text));
        }
        let mut pairs = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(raw.as_bytes()) {
            if !known.iter().any(|names| names.contains(&name.as_ref())) {
                let names: Vec<&str> =
                    known.iter().flat_map(|names| names.iter().copied()).collect();
                let text = format!("there is no parameter `{}` here", quoted(&name));
                return Err(match names.as_slice() {
                    [] => Unanswered::bad(text).with_help("this address takes none"),
                    names => Unanswered::bad(text)
                        .with_help(format!("this address takes {}", names.join(", "))),
                });
            }
            let name = name.into_owned();
            if pairs.contains_key(&name) {
                return Err(Unanswered::bad(format!("`{name}` is there twice")));
            }
            pairs.insert(name, value.into_owned());
        }
        Ok(Self(pairs))
    }

    /// The value of a parameter; `None` where it is absent or empty, as a form sends it.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// A value of some type.
    pub(crate) fn value<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Unanswered> {
        let Some(text) = self.text(name) else { return Ok(None) };
        parse(text)
            .map(Some)
            .map_err(|why| Unanswered::bad(format!("{name}: {}", quoted_whole(&why))))
    }

    /// A moment, as `--since` takes it.
    pub(crate) fn moment(&self, name: &str) -> Result<Option<TimePoint>, Unanswered> {
        self.value(name, time_expr::parse)
    }

    /// The range that is named; `None` where none is.
    pub(crate) fn range(&self) -> Result<Option<TimeRange>, Unanswered> {
        let range = TimeRange { since: self.moment("since")?, until: self.moment("until")? };
        match self.moment("at")? {
            Some(_) if !range.is_all() => Err(Unanswered::bad(
                "`at` is the five minutes around a time; it goes without `since` and `until`",
            )),
            Some(at) => Ok(Some(answers::around(at))),
            None => Ok(Some(range).filter(|range| !range.is_all())),
        }
    }

    /// The cgroup that is named.
    pub(crate) fn group(&self) -> Result<Option<GroupSelector>, Unanswered> {
        let kinds: [fn(String) -> GroupSelector; 4] = [
            GroupSelector::Cgroup,
            GroupSelector::Unit,
            GroupSelector::Container,
            GroupSelector::Pod,
        ];
        let named = kinds.into_iter().zip(GROUP);
        let mut asked = named.filter_map(|(kind, name)| Some(kind(self.text(name)?.to_owned())));
        match (asked.next(), asked.next()) {
            (Some(_), Some(_)) => Err(Unanswered::bad("one cgroup at most can be asked about")),
            (group, _) => Ok(group),
        }
    }

    /// The same question in an order of its own, so that equal ones are one: the name of its answer.
    pub(crate) fn canonical(&self) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        for name in self.0.keys() {
            if let Some(value) = self.text(name) {
                text.append_pair(name, value);
            }
        }
        text.finish()
    }

    /// Parameters with these names, to be asked again with others.
    pub(crate) fn kept(&self, names: &[&'static str]) -> Vec<(&'static str, String)> {
        names.iter().filter_map(|name| Some((*name, self.text(name)?.to_owned()))).collect()
    }
}

/// Sentences of parsers quote what was typed, whatever its length.
fn quoted_whole(why: &str) -> String {
    let plain = escape(why);
    if plain.chars().count() <= 4 * QUOTED_MAX { plain.into_owned() } else { quoted(&plain) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_named() {
        let known: &[&[&str]] = &[&RANGE, &GROUP];
        for (raw, says) in [
            ("sinse=1h", "there is no parameter `sinse` here"),
            ("since=1h&since=2h", "`since` is there twice"),
            ("since=soon", "since: `soon` is no time"),
            ("%1b%5b31m=1", "there is no parameter `\\x1b[31m` here"),
        ] {
            let error = Query::parse(Some(raw), known)
                .and_then(|query| query.range().map(|_| ()))
                .unwrap_err();
            assert!(error.text.starts_with(says), "{raw}: {}", error.text);
            assert_eq!(error.status, 400);
        }
        let long = format!("since={}", "x".repeat(5_000));
        assert_eq!(Query::parse(Some(&long), known).unwrap_err().status, 414);
        let wide = format!("since={}", "x".repeat(2_000));
        let text = Query::parse(Some(&wide), known).unwrap().range().unwrap_err().text;
        assert!(text.len() < 300, "{text}");
    }

    #[test]
    fn a_form_that_was_not_filled_in_asks_nothing() {
        let query = Query::parse(Some("since=&until=+&at="), &[&RANGE]).unwrap();
        assert_eq!(query.range(), Ok(None));
        assert_eq!(query.canonical(), "");
    }

    #[test]
    fn one_cgroup_at_most_is_asked_about() {
        let of = |raw| Query::parse(Some(raw), &[&GROUP]).unwrap().group();
        assert_eq!(of("unit=nginx"), Ok(Some(GroupSelector::Unit("nginx".to_owned()))));
        assert!(of("unit=nginx&pod=a").is_err());
    }
}
