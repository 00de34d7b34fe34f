//! Answers that are kept for the next who asks the same. Bounded in number and in bytes; what was not asked for the longest
//! time goes first.

use std::time::{Duration, Instant};

use crate::answer::ServedAnswer;
use crate::refusal::Unanswered;

/// An answer is good for so long whatever comes: samples come each second, and people look slower.
const GOOD_FOR_MIN: Duration = Duration::from_millis(1_500);
/// Making one answer again and again takes a twentieth of a CPU at most: an engineering choice.
const SHARE: u32 = 20;
/// An answer about the past stays as it is; names of times may not, as `2h ago`.
const GOOD_FOR_MAX: Duration = Duration::from_secs(60);
/// So many answers are kept.
const ANSWERS_MAX: usize = 24;
/// They have so many bytes together, the newest apart.
const BYTES_MAX: usize = 12 << 20;

/// What was answered.
pub(crate) type Answered = Result<ServedAnswer, Unanswered>;

#[derive(Debug)]
pub(crate) struct KeptAnswer {
    key: String,
    /// The version of the source that it is of.
    pub(crate) version: u64,
    made: Instant,
    took: Duration,
    pub(crate) answered: Answered,
}

/// Answers by question, the last asked at the end.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache(Vec<KeptAnswer>);

impl AnswerCache {
    /// Returns the answer to a question if it is still good; `version` is the source's.
    pub(crate) fn get(&mut self, key: &str, version: u64, now: Instant) -> Option<&KeptAnswer> {
        let at = self.0.iter().position(|kept| kept.key == key)?;
        let kept = self.0.remove(at);
        let age = now.saturating_duration_since(kept.made);
        let is_good = age < kept.good_for(version);
        self.0.push(kept);
        self.0.last().filter(|_| is_good)
    }

    /// Keeps an answer, made at `made` in `took`.
    pub(crate) fn keep(
        &mut self,
        key: &str,
        version: u64,
        (made, took): (Instant, Duration),
        answered: Answered,
    ) {
        self.0.retain(|kept| kept.key != key);
        self.0.push(KeptAnswer { key: key.to_owned(), version, made, took, answered });
        let mut bytes = 0;
        let mut room = self.0.len();
        for (count, kept) in self.0.iter().rev().enumerate() {
            bytes += kept.answered.as_ref().map_or(0, ServedAnswer::size);
            if count > 0 && (count >= ANSWERS_MAX || bytes > BYTES_MAX) {
                room = count;
                break;
            }
        }
        let first = self.0.len() - room;
        self.0.drain(..first);
    }

    /// All answers that are kept.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Answered> {
        self.0.iter().map(|kept| &kept.answered)
    }
}

impl KeptAnswer {
    fn good_for(&self, version: u64) -> Duration {
        let by_cost = (self.took * SHARE).max(GOOD_FOR_MIN);
        if self.version == version { GOOD_FOR_MAX.max(by_cost) } else { by_cost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Body;

    fn answer(size: usize) -> Answered {
        Ok(ServedAnswer::Whole(Body::binary(vec![0; size])))
    }

    #[test]
    fn a_costly_answer_is_good_for_longer() {
        let (mut cache, now) = (AnswerCache::default(), Instant::now());
        cache.keep("cheap", 1, (now, Duration::from_millis(10)), answer(1));
        cache.keep("costly", 1, (now, Duration::from_secs(1)), answer(1));
        let later = |seconds| now + Duration::from_secs(seconds);
        assert!(cache.get("cheap", 2, later(1)).is_some());
        assert!(cache.get("cheap", 2, later(2)).is_none());
        assert!(cache.get("costly", 2, later(19)).is_some());
        assert!(cache.get("costly", 2, later(20)).is_none());
        // Nothing new has come.
        assert!(cache.get("cheap", 1, later(30)).is_some());
        assert!(cache.get("cheap", 1, later(90)).is_none());
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_last_asked_stays() {
        let (mut cache, now) = (AnswerCache::default(), Instant::now());
        for number in 0..100 {
            cache.keep(&number.to_string(), 1, (now, Duration::ZERO), answer(1_000));
            assert!(cache.get("0", 1, now).is_some(), "{number}");
        }
        assert_eq!(cache.all().count(), ANSWERS_MAX);
        cache.keep("large", 1, (now, Duration::ZERO), answer(BYTES_MAX + 1));
        assert_eq!(cache.all().count(), 1);
    }
}
