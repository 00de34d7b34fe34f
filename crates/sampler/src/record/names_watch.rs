//! Keeps what people call the cgroups of a recording, before their state files are gone.

use probe::Root;
use store::{NameBook, PinnedDirectory};
use timeline::Stamp;
use units::{Ratio, Span};

use crate::Health;
use crate::new_groups::{GROUPS_PER_SEARCH_MAX, NameSearch, SEARCH_EVERY};
use crate::pace::interval_within;

/// The names of a recording's cgroups.
#[derive(Debug)]
pub(crate) struct NamesWatch {
    search: NameSearch,
    book: NameBook,
    due: Span,
    /// When it is due at the earliest.
    due_min: Span,
    /// When the cgroups of the host are listed again.
    list_due: Span,
}

/// What listings may take.
const LISTINGS_SHARE: Ratio = Ratio::new(0.0005);

/// From one search to the next where kernel reports name cgroups: a container may be killed again and again.
const REPORTED_EVERY: Span = Span::from_secs(1);

impl NamesWatch {
    /// Watches the host below `root`; the first search is due at `due`, on the boot clock.
    pub(crate) fn new(root: &Root, directory: &PinnedDirectory, due: Span) -> Self {
        Self {
            search: NameSearch::new(root),
            book: NameBook::open(directory),
            due,
            due_min: due,
            list_due: due,
        }
    }

    /// Searches soon for the cgroups of these kernel reports: a container that was killed may be removed at once, and one
    /// that ran for seconds is in no scan of all.
    pub(crate) fn reported(&mut self, groups: Vec<String>) {
        for group in groups {
            self.search.add_reported(&group);
            self.due = self.due_min;
        }
    }

    /// Searches for the names of new cgroups, if it is due.
    pub(crate) fn poll(&mut self, now: Stamp, health: &Health, directory: &PinnedDirectory) {
        if now.boot >= self.due {
            self.due = now.boot.plus(SEARCH_EVERY);
            self.due_min = now.boot.plus(REPORTED_EVERY);
            self.run(now, health, directory);
        }
    }

    /// Searches for the names of new cgroups.
    pub(crate) fn run(&mut self, now: Stamp, health: &Health, directory: &PinnedDirectory) {
        self.search.add(health.take_new_groups());
        // Where there are many cgroups, and a user may make them, scans of all are rare.
        if health.figures().cgroups_every > SEARCH_EVERY && now.boot >= self.list_due {
            let every = interval_within(self.search.list(), LISTINGS_SHARE);
            self.list_due = now.boot.plus(every.max(SEARCH_EVERY));
        }
        let found = self.search.run(GROUPS_PER_SEARCH_MAX);
        // The book keeps what a disk refused, and samples report such a disk.
        let _ = self.book.keep(directory, now.wall, found);
    }
}
