//! Statements of a story: each asks the evidence for a measurement, and is left out if the source lacks it.

use timeline::signals::{MEM_ANON, MEM_AVAILABLE, MEM_SHMEM, MEM_SLAB_UNRECLAIMABLE, REFAULT_FILE};
use timeline::{Counter, Gauge, Signal, Stretch};
use units::{Bytes, BytesPerSecond, PerSecond, Unit};

use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::measures::available::little_left;
use crate::measures::pressure::PressureWindow;
use crate::measures::readings::{AVAILABLE_LOW_SHARE, READ_AGAIN};

impl Finding {
    /// Shows the lowest level of a gauge in a stretch, with its time.
    #[must_use]
    pub(crate) fn shows_lowest<U: Unit>(
        self,
        cx: &Evidence<'_>,
        signal: Signal<Gauge<U>>,
        stretch: &Stretch,
        text: impl FnOnce(U) -> String,
    ) -> Self {
        self.with(cx.lowest_in(signal, stretch), |finding, (least, index)| {
            finding.shows(signal, least, cx.time(index), text(least))
        })
    }

    /// Shows how little memory was available in a stretch. If it was little, that counts as a kind of evidence.
    #[must_use]
    pub(crate) fn shows_available(self, cx: &Evidence<'_>, stretch: &Stretch) -> Self {
        let edge = cx.ram().map(|ram| ram.share(AVAILABLE_LOW_SHARE));
        if let (Some((left, index)), Ok(edge)) = (little_left(cx, stretch), edge) {
            let text = format!("only {left} was available");
            return self
                .shows_below(MEM_AVAILABLE, left, edge, cx.time(index), text)
                .counts_as("little available");
        }
        self.shows_lowest(cx, MEM_AVAILABLE, stretch, |left| {
            format!("at least {left} was available")
        })
    }

    /// Shows the mean rate of a counter in a stretch.
    #[must_use]
    pub(crate) fn shows_mean<U: Unit>(
        self,
        cx: &Evidence<'_>,
        signal: Signal<Counter<U>>,
        stretch: &Stretch,
        text: impl FnOnce(PerSecond<U>) -> String,
    ) -> Self {
        self.with(cx.mean_rate(signal, stretch), |finding, mean| {
            finding.shows(signal, mean, None, text(mean))
        })
    }

    /// Shows file refaults, if measured.
    #[must_use]
    pub(crate) fn shows_refaults(self, refaults: Option<BytesPerSecond>) -> Self {
        self.with(refaults, |finding, refaults| {
            let text = format!("{refaults} of files refaulted");
            finding
                .shows_from(REFAULT_FILE, refaults, READ_AGAIN, None, text)
                .counts_if(refaults >= READ_AGAIN, "refaults")
        })
    }

    /// Shows the parts of memory that cannot be dropped, each that takes `much` or more at a sample.
    #[must_use]
    pub(crate) fn shows_holders(mut self, cx: &Evidence<'_>, index: usize, much: Bytes) -> Self {
        for (signal, what) in [
            (MEM_ANON, "anonymous memory"),
            (MEM_SHMEM, "shared memory"),
            (MEM_SLAB_UNRECLAIMABLE, "kernel objects that cannot be dropped"),
        ] {
            let part = cx.level(signal, index).filter(|part| *part >= much);
            self = self.with(part, |finding, part| {
                finding.shows(signal, part, cx.time(index), format!("{part} of {what}"))
            });
        }
        self
    }

    /// Shows how long tasks waited, if measured. Waiting long enough for a finding counts as a kind of evidence.
    #[must_use]
    pub(crate) fn shows_stalls(self, stalls: &PressureWindow) -> Self {
        stalls.shown_in(self).counts_if(stalls.any(), "stalls")
    }

    /// Excludes a look-alike because a setting has this value.
    #[must_use]
    pub(crate) fn not_where(
        self,
        cx: &Evidence<'_>,
        fact: timeline::Fact,
        value: u64,
        id: &'static str,
    ) -> Self {
        self.when(cx.number(fact) == Ok(value), |finding| {
            finding.not(id, format!("{} is {value}", fact.name))
        })
    }

    /// Sets the confidence from the kinds of evidence shown; `open` says what would settle the rest.
    #[must_use]
    pub(crate) fn sure_by_kinds(self, cx: &Evidence<'_>, open: &str) -> Self {
        let confidence = cx.confidence(&self.kinds, open);
        self.sure(confidence)
    }
}
