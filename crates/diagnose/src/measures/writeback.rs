//! Dirty pages of the host, and the level from which the kernel throttles those who write.

use timeline::signals::{
    MEM_DIRTY, MEM_WRITEBACK, NR_DIRTY_BACKGROUND_THRESHOLD, NR_DIRTY_THRESHOLD,
};
use units::{Bytes, Ratio};

use crate::trigger::{Predicate, Reading, gauge, ram};

/// Below this share of the level at which writers are throttled, dirty pages do not hold them up: an engineering choice.
const FAR: Ratio = Ratio::from_percent(50.0);
/// The same share of RAM where the thresholds are unknown: a tenth of the default limit, an engineering choice.
const FAR_OF_RAM: Ratio = Ratio::from_percent(2.0);

/// Dirty pages plus pages under writeback.
pub(crate) fn unwritten() -> Reading<Bytes> {
    gauge(MEM_DIRTY).plus([gauge(MEM_WRITEBACK)])
}

/// The limit of dirty pages.
pub(crate) fn dirty_limit() -> Reading<Bytes> {
    gauge(NR_DIRTY_THRESHOLD).bytes()
}

/// The level at which the kernel starts to throttle writers: the middle of the two thresholds (mm/page-writeback.c,
/// dirty_freerun_ceiling).
pub(crate) fn free_run() -> Reading<Bytes> {
    let background = gauge(NR_DIRTY_BACKGROUND_THRESHOLD).bytes();
    dirty_limit().minus(dirty_limit().minus(background).times(0.5))
}

/// Holds where dirty pages are far below the level at which writers are throttled.
pub(crate) fn is_far_from_limit() -> Predicate {
    let known = unwritten().at_most("dirty pages and writeback", free_run().share(FAR));
    let unknown = unwritten().at_most("dirty pages and writeback", ram().share(FAR_OF_RAM));
    known.or_without(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::Case;
    use timeline::signals::MEM_TOTAL;
    use units::Pages;

    #[test]
    fn without_thresholds_a_share_of_ram_is_far() {
        let host = |dirty| {
            Case::over(10)
                .gauge(MEM_TOTAL, Bytes::from_mib(1000))
                .gauge(MEM_DIRTY, Bytes::from_mib(dirty))
        };
        let is_far = |case: &Case| {
            case.with(|cx| {
                let whole = cx.timeline.whole().unwrap();
                is_far_from_limit().longest_in(cx, &whole) > units::Span::ZERO
            })
        };
        assert!(is_far(&host(15)));
        assert!(!is_far(&host(25)));
        let known = |dirty| {
            host(dirty)
                .gauge(NR_DIRTY_THRESHOLD, Pages::new(200 * 256))
                .gauge(NR_DIRTY_BACKGROUND_THRESHOLD, Pages::new(100 * 256))
        };
        assert!(is_far(&known(70)));
        assert!(!is_far(&known(80)));
    }
}
