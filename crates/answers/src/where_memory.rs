//! Where is the memory?

use diagnose::Evidence;
use diagnose::accounting::{GroupBy, NoTable, account, by_owner};
use import::{OpenOptions, Resolution};
use report::model::{WhereByReport, WhereReport};
use timeline::signals::{MEM_TOTAL, PROC_PSS, PROC_RSS, PROC_SIZE};
use timeline::{Entity, EntitySeries, Source, TimePoint, TimeRange};
use units::{Bytes, PageSize, Ratio, Span};

/// Samples read before the requested time show its state up to this age; PSS is read every few minutes.
const BEFORE: Span = Span::from_mins(30);

/// Selects what `where` reads: what ends with the last sample before the time that was asked about. A table has all before
/// it, by the minute where that is long, as growth counts from its begin; the tree has the tables that are read less often.
pub fn part_for_where(
    is_recording: bool,
    by: Option<GroupBy>,
    at: Option<TimePoint>,
) -> OpenOptions {
    let until = at.map(TimePoint::as_written);
    if by.is_some() {
        return OpenOptions { range: TimeRange { since: None, until }, ..OpenOptions::default() };
    }
    let end = is_recording.then_some(TimePoint::BeforeEnd(Span::ZERO));
    OpenOptions {
        range: until.or(end).map_or_else(TimeRange::default, |at| TimeRange::before(at, BEFORE)),
        resolution: Resolution::Full,
        ..OpenOptions::default()
    }
}

/// Returns the answer of `where` about the last sample; `None` if the source has no MemTotal. Each part names its `top`
/// largest owners, caches and files.
pub fn where_memory(source: &Source, top: Option<usize>) -> Option<WhereReport> {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let last = source.timeline.len().checked_sub(1)?;
    let mut accounting = account(&evidence, last).ok()?;
    accounting.top = top;
    Some(WhereReport::new(source, &accounting))
}

/// Why a source has no table of owners.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhereByError {
    /// The size of its RAM is not known.
    #[error("the source has no /proc/meminfo with a MemTotal")]
    NoTotal,
    /// It has no owners of this kind; why stands in a sentence.
    #[error("{0}")]
    NoOwners(String),
}

/// Returns RAM by owners of one kind, largest first, at the last sample.
///
/// # Errors
/// [`WhereByError`] if the source has not what such a table is made of.
pub fn where_by(source: &Source, by: GroupBy) -> Result<WhereByReport, WhereByError> {
    let evidence = Evidence::new(&source.timeline, &source.facts);
    let last = source.timeline.len().checked_sub(1).ok_or(WhereByError::NoTotal)?;
    let table = by_owner(&evidence, last, by, &source.inventory).map_err(|why| match why {
        NoTable::NoTotal(_) => WhereByError::NoTotal,
        NoTable::NoOwners(why) => WhereByError::NoOwners(why),
    })?;
    Ok(WhereByReport::new(source, &table))
}

/// Less of the RSS of all processes than this share, or of RAM, would change no figure that a reader acts on: an engineering
/// choice.
const UNREAD_OF_RSS_MIN: Ratio = Ratio::from_percent(10.0);
const UNREAD_OF_RAM_MIN: Ratio = Ratio::from_percent(1.0);

/// Returns how many processes have memory but no proportional share (PSS), because it was not read; 0 if they have little.
pub fn much_without_pss(source: &Source) -> u64 {
    let timeline = &source.timeline;
    let page = source.facts.page_size.unwrap_or(PageSize::USUAL);
    let resident = |process: &EntitySeries| {
        let rss = timeline.last_of(process, PROC_RSS).unwrap_or_default();
        rss.to_bytes(page)
    };
    let all = || {
        // Kernel threads have no memory of their own.
        timeline
            .entities(Entity::Process)
            .filter(|process| timeline.last_of(process, PROC_SIZE) > Some(Bytes::ZERO))
    };
    let unread = || all().filter(|process| timeline.last_of(process, PROC_PSS).is_none());
    let sum: Bytes = unread().map(resident).sum();
    let rss: Bytes = all().map(resident).sum();
    let ram = timeline.last(MEM_TOTAL).unwrap_or_default();
    let is_much = sum >= rss.share(UNREAD_OF_RSS_MIN) && sum >= ram.share(UNREAD_OF_RAM_MIN);
    if is_much { unread().count() as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use timeline::Sample;
    use units::Pages;

    use super::*;

    /// A host of 1 GiB with a process of which the PSS was read, and one of this RSS without.
    fn host(unread_mib: u64) -> Source {
        let mut sample = Sample::at(Span::ZERO);
        sample.host.set(MEM_TOTAL, Bytes::from_gib(1));
        for (key, mib) in [("1@1", 40), ("2@2", unread_mib)] {
            let row = &mut sample.table_mut(Entity::Process).entry(key).row;
            row.set(PROC_SIZE, Bytes::from_gib(1));
            row.set(PROC_RSS, Pages::new(mib * 256));
            if key == "1@1" {
                row.set(PROC_PSS, Bytes::from_mib(mib));
            }
        }
        let mut source = Source::default();
        source.timeline.push(&sample).unwrap();
        source
    }

    #[test]
    fn a_missing_pss_counts_where_much_memory_is_without_one() {
        for (unread_mib, processes) in [(0, 0), (4, 0), (9, 0), (11, 1), (400, 1)] {
            let much = much_without_pss(&host(unread_mib));
            assert_eq!(much, processes, "{unread_mib} MiB");
        }
    }
}
