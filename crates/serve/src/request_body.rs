//! What a client sends behind the head of a request: whole, short and in time, or not at all.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use tokio::time::timeout;

use crate::refusal::Unanswered;

/// As for the head of a request.
const WITHIN: Duration = Duration::from_secs(20);

/// Reads a body.
///
/// # Errors
/// If it is longer than `bytes_max`, breaks off or is slow.
pub(crate) async fn whole(body: Body, bytes_max: usize) -> Result<Bytes, Unanswered> {
    match timeout(WITHIN, to_bytes(body, bytes_max)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(Unanswered::new(
            413,
            format!("what was sent is longer than {bytes_max} bytes, or broke off"),
        )),
        Err(_) => Err(Unanswered::new(
            408,
            format!("what was sent did not come within {} s", WITHIN.as_secs()),
        )),
    }
}
