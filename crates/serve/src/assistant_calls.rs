//! Calls of assistants: the tools of `memtide mcp` over HTTP, behind the checks of every request.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use axum::http::request::Parts;
use axum::response::Response;
use mcp::{ClientTrust, HttpTools};
use tokio::sync::Semaphore;

use crate::refusal::Unanswered;
use crate::request_body;

/// Calls that run or wait for their turn: further ones are turned away, so that pages have connections left.
const CALLS_MAX: usize = 16;
/// The arguments of a call are some names and times.
const CALL_BYTES_MAX: usize = 64 << 10;

/// The tools, and room for calls of them.
#[derive(Debug, Clone)]
pub(crate) struct AssistantCalls {
    tools: HttpTools,
    room: Arc<Semaphore>,
}

impl AssistantCalls {
    pub(crate) fn new(tools: HttpTools) -> Self {
        Self { tools, room: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// Answers a call; it ends where the client goes.
    ///
    /// # Errors
    /// If there are too many, or the call does not come whole and in time.
    pub(crate) async fn answer(
        &self,
        (head, body): (Parts, Body),
        client: ClientTrust,
    ) -> Result<Response, Unanswered> {
        let _place = self.room.try_acquire().map_err(|_| {
            Unanswered::later(format!("{CALLS_MAX} calls of assistants run or wait already"))
        })?;
        let body = request_body::whole(body, CALL_BYTES_MAX).await?;
        let request = Request::from_parts(head, Body::from(body));
        Ok(self.tools.answer(request, client).await.map(Body::new))
    }
}
