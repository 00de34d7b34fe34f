//! Pages that follow: an event says that there are newer data than a page has; the page asks for them as it does without events.
//!
//! An event carries a name and no data, so a page that missed events, or lost its stream, has no gap: whatever it has, the
//! next answer is whole. So a client that reads slowly is owed one event at most, too.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

use crate::answerer::{Answerer, ClientQuestion};
use crate::connection::ServerEnd;
use crate::feed::Pulse;
use crate::live_page::{EVERY, PageQuestion};
use crate::refusal::Unanswered;

/// So many pages follow by events: half of all connections, so that the other half is there for what they ask.
const FOLLOWERS_MAX: usize = 64;
/// Something is sent at least this often, so that the end of a client is noticed that could not say it.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The name of the answer where there is nothing to read any more.
const REFUSED: &str = "refused";

/// Room for pages that follow.
#[derive(Debug, Clone)]
pub(crate) struct Followers(Arc<Semaphore>);

/// A page that follows, from one event to the next.
struct Follower {
    answerer: Answerer,
    question: PageQuestion,
    pulses: watch::Receiver<Pulse>,
    end: ServerEnd,
    /// What the page has, by its name.
    has: Option<String>,
    /// The version of the source that it was made of; `None` after an error.
    of: Option<u64>,
    /// A page is not drawn anew before that.
    due: Instant,
    /// Its place among all that follow.
    _place: OwnedSemaphorePermit,
}

impl Default for Followers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(FOLLOWERS_MAX)))
    }
}

impl Followers {
    /// Begins a stream of events for a page that `has` the data of this name.
    ///
    /// # Errors
    /// If too many pages follow already: the page then asks from time to time.
    pub(crate) fn follow(
        &self,
        answerer: Answerer,
        question: PageQuestion,
        pulses: watch::Receiver<Pulse>,
        end: ServerEnd,
        has: Option<&str>,
    ) -> Result<Response, Unanswered> {
        let place = Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            Unanswered::later(format!("{FOLLOWERS_MAX} pages follow already")).with_help(format!(
                "this page asks every {EVERY} instead; close one that is not needed"
            ))
        })?;
        let due = Instant::now();
        let follower = Follower {
            answerer,
            question,
            pulses,
            end,
            has: has.map(ToOwned::to_owned),
            of: None,
            due,
            _place: place,
        };
        let events = stream::unfold(follower, |mut follower| async move {
            let name = follower.next().await?;
            // The page has it named in `Last-Event-ID` where the stream breaks.
            let event = Event::default().id(name.clone()).data(name);
            Some((Ok::<_, Infallible>(event), follower))
        });
        Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response())
    }
}

impl Follower {
    /// Waits for data that the page does not have, and returns their name; `None` where the server ends.
    async fn next(&mut self) -> Option<String> {
        let mut end = self.end.clone();
        tokio::select! {
            () = end.comes() => None,
            name = self.newer() => Some(name),
        }
    }

    async fn newer(&mut self) -> String {
        loop {
            if let Some(of) = self.of {
                let is_news = |pulse: &Pulse| pulse.version != of || pulse.gone.is_some();
                // Nobody can tell any more: the page then asks at times, and is answered as always.
                if self.pulses.wait_for(is_news).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            sleep_until(self.due).await;
            let question = ClientQuestion::Page(self.question.clone());
            let answered = self.answerer.ask(question).await;
            self.due = Instant::now() + EVERY.as_duration();
            let name = match answered {
                // A costly answer is kept for a while, and is then not of the newest version: that is asked for once more.
                Ok(body) => {
                    self.of = Some(body.version);
                    body.tag
                }
                Err(_) => {
                    self.of = None;
                    // Any other error may be over with the next question.
                    if self.pulses.borrow().gone.is_none() {
                        continue;
                    }
                    REFUSED.to_owned()
                }
            };
            if self.has.as_ref() != Some(&name) {
                self.has = Some(name.clone());
                return name;
            }
        }
    }
}
