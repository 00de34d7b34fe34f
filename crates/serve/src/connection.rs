//! Connections: how many, how long each may take for what, and how they end.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};

use crate::listen::Listener;

/// More clients at once are turned away with a sentence: 20 browsers have six connections each at most.
const CONNECTIONS_MAX: usize = 128;
/// For the head of a request, and for a connection on which nothing is asked: longer than a page waits between two questions.
const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// For taking an answer. The largest is some 2 MiB: who takes less than 35 KiB/s is cut off.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);
/// For answers that are on their way when the server is asked to end.
const END_WITHIN: Duration = Duration::from_secs(3);
/// The head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// After an error of accepting (no file descriptor left) nothing is accepted for so long.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// How a client came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReachedBy {
    /// Over the network, which may be loopback.
    Network,
    /// By a socket in the file system, which only this user can connect to.
    Socket,
}

/// The end of the server, for which an answer that goes on has to look.
#[derive(Debug, Clone)]
pub(crate) struct ServerEnd(watch::Receiver<bool>);

impl ServerEnd {
    /// Waits for it.
    pub(crate) async fn comes(&mut self) {
        // An error says that nobody can tell any more: that is the end, too.
        let _ = self.0.wait_for(|ends| *ends).await;
    }
}

/// Accepts connections and answers until a signal asks to end.
pub(crate) async fn serve(listeners: Vec<Listener>, router: Router) -> io::Result<()> {
    let (end, ends) = watch::channel(false);
    let ends = ServerEnd(ends);
    let router = router.layer(Extension(ends.clone()));
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, router.clone(), ends.clone()));
    }
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    // Nobody listens where all listeners have failed.
    let _ = end.send(true);
    // A second signal does not wait.
    tokio::select! {
        _ = timeout(END_WITHIN, async { while accepting.join_next().await.is_some() {} }) => {}
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    Ok(())
}

/// Accepts until the end, then waits for the connections that are open.
async fn accept(listener: Listener, router: Router, mut ends: ServerEnd) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut open = JoinSet::new();
    let for_all = ends.clone();
    loop {
        tokio::select! {
            () = ends.comes() => break,
            // Ended ones leave nothing behind.
            Some(_) = open.join_next() => {}
            accepted = accept_one(&listener) => {
                let Ok((stream, reached_by)) = accepted else {
                    sleep(AFTER_ERROR).await;
                    continue;
                };
                let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
                    open.spawn(turn_away(stream));
                    continue;
                };
                let (router, ends) = (router.clone(), for_all.clone());
                open.spawn(async move {
                    answer(stream, router.layer(Extension(reached_by)), ends).await;
                    drop(permit);
                });
            }
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

/// A connection over the network or by a socket.
type ClientStream = Pin<Box<dyn Connection>>;

trait Connection: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Connection for T {}

async fn accept_one(listener: &Listener) -> io::Result<(ClientStream, ReachedBy)> {
    match listener {
        Listener::Tcp(listener, _) => {
            let (stream, _) = listener.accept().await?;
            // Answers are written whole, so nothing waits for more.
            let _ = stream.set_nodelay(true);
            // A host that vanished takes nothing either: its stream of events would be kept for a quarter of an hour.
            let within = u32::try_from(TAKEN_WITHIN.as_millis()).unwrap_or_default();
            let _ = set_tcp_user_timeout(&stream, within);
            Ok((Box::pin(stream), ReachedBy::Network))
        }
        Listener::Unix(listener, _) => {
            let (stream, _) = listener.accept().await?;
            Ok((Box::pin(stream), ReachedBy::Socket))
        }
    }
}

/// Says why, and closes; a client that does not read is not waited for.
async fn turn_away(mut stream: ClientStream) {
    const FULL: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
                        retry-after: 5\r\nconnection: close\r\ncontent-length: 66\r\n\r\n\
                        too many connections at once; try again in some seconds (503)    \n";
    let _ = timeout(Duration::from_secs(1), async {
        stream.write_all(FULL.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

async fn answer(stream: ClientStream, router: Router, mut ends: ServerEnd) {
    let io = TokioIo::new(TakenInTime::new(stream, TAKEN_WITHIN));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        // Who closes the connection takes no answer: a stream or a call then ends at once.
        .half_close(false)
        .serve_connection(io, TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    // A client that breaks off, or was cut off, is no error of the server.
    let mut is_ending = false;
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = ends.comes(), if !is_ending => {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// A connection on which what is written has to be taken in time, from its first byte to its last.
struct TakenInTime<S> {
    stream: S,
    within: Duration,
    /// While something is not taken.
    due: Option<Pin<Box<Sleep>>>,
}

impl<S> TakenInTime<S> {
    fn new(stream: S, within: Duration) -> Self {
        Self { stream, within, due: None }
    }

    /// Fails once the time is over.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let due = self.due.get_or_insert_with(|| Box::pin(sleep(self.within)));
        match due.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TakenInTime<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TakenInTime<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called when all of an answer has been written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.due = None;
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that takes 64 bytes and then nothing.
    #[tokio::test]
    async fn who_takes_nothing_is_cut_off() {
        let within = Duration::from_millis(100);
        let (client, server) = tokio::io::duplex(64);
        let mut server = TakenInTime::new(server, within);
        let began = std::time::Instant::now();
        let result = timeout(Duration::from_secs(30), server.write_all(&[0; 1000])).await;
        assert_eq!(result.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= within);
        drop(client);
    }
}
