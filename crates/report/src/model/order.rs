//! The order of a report, the same in text and on the page.

use super::{Finding, NotEvaluated, Report};

impl Report {
    /// Findings that follow from no other one, with their places among all.
    pub(crate) fn roots(&self) -> impl Iterator<Item = (usize, &Finding)> {
        let all = self.findings.iter().enumerate();
        all.filter(|(_, finding)| self.is_root(finding))
    }

    /// What a root brings about, with its places among all findings: what follows it in the list up to the next root. Two
    /// diseases of one kind in two cgroups have an id in common.
    pub(crate) fn consequences(&self, root: usize) -> impl Iterator<Item = (usize, &Finding)> {
        let after = self.findings.iter().enumerate().skip(root + 1);
        after.take_while(|(_, finding)| !self.is_root(finding))
    }

    fn is_root(&self, finding: &Finding) -> bool {
        let is_found = |root: &String| self.findings.iter().any(|other| other.id == *root);
        !finding.caused_by.as_ref().is_some_and(is_found)
    }
}

/// Rules that could not be evaluated, by their need; the need of most rules comes first.
pub(crate) fn by_need<'a>(
    rules: impl IntoIterator<Item = &'a NotEvaluated>,
) -> Vec<(&'a str, Vec<&'a NotEvaluated>)> {
    let mut groups: Vec<(&str, Vec<&NotEvaluated>)> = Vec::new();
    for rule in rules {
        match groups.iter_mut().find(|(needs, _)| *needs == rule.needs) {
            Some((_, alike)) => alike.push(rule),
            None => groups.push((&rule.needs, vec![rule])),
        }
    }
    groups.sort_by_key(|(_, alike)| std::cmp::Reverse(alike.len()));
    groups
}
