//! The thread that answers, one question after the other: however many clients ask, one judgement runs.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, thread};

use report::Screen;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::answer::{Body, PageAnswer, ServedAnswer};
use crate::api::{ApiQuestion, ApiSource};
use crate::cache::{AnswerCache, Answered};
use crate::feed::{SourceFeed, locked};
use crate::live_page::{Closer, PagePart, PageQuestion};
use crate::metrics::MetricsQuestion;
use crate::refusal::Unanswered;

/// So many different questions wait; each takes up to a few seconds.
const QUESTIONS_MAX: usize = 32;
/// A client that waits longer has gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request as understood.
#[derive(Debug)]
pub(crate) enum ClientQuestion {
    /// A page, or a part of it.
    Page(PageQuestion),
    /// Curves of a part of a page that was sent.
    Closer(Closer),
    /// An answer for programs.
    Api(ApiQuestion),
    /// The last readings.
    Metrics(MetricsQuestion),
}

/// Who waits for an answer to the same question.
type Waiting = Arc<Mutex<HashMap<String, Vec<oneshot::Sender<Result<Body, Unanswered>>>>>>;

/// Asks the thread that answers.
#[derive(Debug, Clone)]
pub(crate) struct Answerer {
    questions: SyncSender<(String, ClientQuestion)>,
    waiting: Waiting,
}

impl Answerer {
    /// Starts the thread; it ends when nobody can ask any more.
    pub(crate) fn start(
        feed: Arc<SourceFeed>,
        screen: Screen,
        units_max: usize,
    ) -> io::Result<Self> {
        let (questions, asked) = sync_channel(QUESTIONS_MAX);
        let waiting = Waiting::default();
        let thread = thread::Builder::new().name("judge".to_owned());
        let mut bench = AnsweringThread { feed, screen, units_max, cache: AnswerCache::default() };
        let who = Arc::clone(&waiting);
        thread.spawn(move || bench.run(&asked, &who))?;
        Ok(Self { questions, waiting })
    }

    /// Answers a question; with those who wait for the same already, if there are any.
    pub(crate) async fn ask(&self, question: ClientQuestion) -> Result<Body, Unanswered> {
        let (reply, replied) = oneshot::channel();
        self.put(question, reply)?;
        match timeout(PATIENCE, replied).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => Err(Unanswered::failed("memtide no longer answers; start it again")),
            Err(_) => Err(Unanswered::later(format!(
                "there is no answer after {} s; ask again, or for a shorter range",
                PATIENCE.as_secs()
            ))),
        }
    }

    fn put(
        &self,
        question: ClientQuestion,
        reply: oneshot::Sender<Result<Body, Unanswered>>,
    ) -> Result<(), Unanswered> {
        let name = question.name();
        let mut waiting = locked(&self.waiting);
        if let Some(others) = waiting.get_mut(&name) {
            others.push(reply);
            return Ok(());
        }
        self.questions.try_send((name.clone(), question)).map_err(|error| match error {
            TrySendError::Full(_) => {
                Unanswered::later("too many questions wait already; try again in some seconds")
            }
            TrySendError::Disconnected(_) => {
                Unanswered::failed("memtide no longer answers; start it again")
            }
        })?;
        waiting.insert(name, vec![reply]);
        Ok(())
    }
}

impl ClientQuestion {
    /// The name of its answer; all parts of a page are of one.
    fn key(&self) -> String {
        match self {
            Self::Page(page) => page.key(),
            Self::Closer(closer) => closer.key(),
            Self::Api(api) => api.key(),
            Self::Metrics(metrics) => metrics.key(),
        }
    }

    /// Its own name: equal questions have one.
    fn name(&self) -> String {
        match self {
            Self::Page(page) => format!("{:?} {}", page.part, page.key()),
            other => other.key(),
        }
    }
}

struct AnsweringThread {
    feed: Arc<SourceFeed>,
    screen: Screen,
    units_max: usize,
    cache: AnswerCache,
}

impl AnsweringThread {
    fn run(&mut self, asked: &Receiver<(String, ClientQuestion)>, waiting: &Waiting) {
        while let Ok((name, question)) = asked.recv() {
            // Who has gone meanwhile needs no answer.
            let is_wanted = |all: &Vec<oneshot::Sender<_>>| all.iter().any(|one| !one.is_closed());
            if !locked(waiting).get(&name).is_some_and(is_wanted) {
                locked(waiting).remove(&name);
                continue;
            }
            let answered = catch_unwind(AssertUnwindSafe(|| self.answer(&question)));
            let answered = answered.unwrap_or_else(|_| {
                Err(Unanswered::failed(
                    "memtide failed at this question: that is a bug; other questions are answered",
                ))
            });
            for reply in locked(waiting).remove(&name).unwrap_or_default() {
                let _ = reply.send(answered.clone());
            }
        }
    }

    fn answer(&mut self, question: &ClientQuestion) -> Result<Body, Unanswered> {
        let (key, pulse) = (question.key(), self.feed.pulse());
        if let Some(gone) = pulse.gone {
            return Err(gone);
        }
        let part = match question {
            // It is not kept: a page fetches each part once.
            ClientQuestion::Closer(closer) => return self.closer(closer),
            ClientQuestion::Page(asked) => asked.part,
            ClientQuestion::Api(_) | ClientQuestion::Metrics(_) => PagePart::Html,
        };
        let (answered, version) = match self.cache.get(&key, pulse.version, Instant::now()) {
            Some(kept) => (kept.answered.clone(), kept.version),
            None => {
                let begun = Instant::now();
                let answered = self.make(question);
                let made = (Instant::now(), begun.elapsed());
                self.cache.keep(&key, pulse.version, made, answered.clone());
                (answered, pulse.version)
            }
        };
        let body = match answered? {
            ServedAnswer::Page(page) => page.part(part).clone(),
            ServedAnswer::Whole(body) => body,
        };
        Ok(Body { version, ..body })
    }

    fn make(&self, question: &ClientQuestion) -> Answered {
        match question {
            ClientQuestion::Page(asked) => {
                let judged = asked.judge(&self.feed, &self.screen)?;
                Ok(ServedAnswer::Page(Arc::new(PageAnswer::new(judged))))
            }
            ClientQuestion::Api(api) => {
                let asked = ApiSource { feed: &self.feed, screen: &self.screen };
                api.answer(asked).map(ServedAnswer::Whole)
            }
            ClientQuestion::Metrics(metrics) => {
                metrics.answer(&self.feed, self.units_max).map(ServedAnswer::Whole)
            }
            ClientQuestion::Closer(closer) => self.closer(closer).map(ServedAnswer::Whole),
        }
    }

    /// The curves of a part of a page, if its data are still known.
    fn closer(&self, closer: &Closer) -> Result<Body, Unanswered> {
        let pages = self.cache.all().filter_map(|answered| match answered {
            Ok(ServedAnswer::Page(page)) => Some(page),
            _ => None,
        });
        let mut same = pages.filter(|page| page.data_tag() == Some(closer.of.as_str()));
        let page = same.next().ok_or_else(|| {
            Unanswered::new(410, "the page has newer data by now; they are asked for again")
        })?;
        page.judged.closer(closer, &self.feed).map(Body::binary)
    }
}
