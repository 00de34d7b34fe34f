//! The answers of memtide over HTTP: the page of `report`, alive; a JSON API with the schemas of the command line; metrics
//! for Prometheus; tools for assistants.
//!
//! Three nouns: a **served source** ([`ServedSource`]) is what every answer is about; a **question** is a request as
//! understood; an **answer** is the bytes that are sent for it, shared by all who ask the same. Two kinds of threads: one runs
//! all connections and never judges; the answerer takes questions one after the other, so that a hundred clients cost what one
//! costs. What is watched or recorded meanwhile is followed by a third.
//!
//! Nothing here judges or draws: answers are those of the crate `answers`, drawn by `report` and `export`.

mod access;
mod answer;
mod answerer;
mod api;
mod assistant_calls;
mod cache;
mod changes;
mod connection;
mod feed;
mod listen;
mod live_page;
mod metrics;
mod own_cost;
mod query;
mod refusal;
mod request_body;
mod routes;
mod schemas;
mod token;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mcp::HttpTools;
use report::Screen;

pub use feed::{LiveSource, ServedSource};
pub use listen::{BoundAddress, ListenAddress, ListenError};
pub use token::{AccessToken, TokenError};

use access::ClientAccess;
use answerer::Answerer;
use assistant_calls::AssistantCalls;
use changes::Followers;
use feed::SourceFeed;
use listen::Listener;
use routes::Routes;

/// What is served, where, and to whom.
#[derive(Debug)]
pub struct ServeOptions {
    /// What every answer is about.
    pub source: ServedSource,
    /// Where connections are accepted.
    pub listen: Vec<ListenAddress>,
    /// Who may ask; `None`: whoever reaches the address.
    pub token: Option<AccessToken>,
    /// Names of this host, beside its addresses, that browsers may ask for.
    pub allowed_hosts: Vec<String>,
    /// How many units `/metrics` has of each kind.
    pub units_max: usize,
    /// Readers' time zone.
    pub screen: Screen,
    /// What assistants may call; `None` where a call could not read what is served.
    pub tools: Option<HttpTools>,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address cannot be listened at.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// An address that others reach needs a token.
    #[error(
        "{0} can be reached from other hosts, and memtide names the programs and users of this one"
    )]
    Unprotected(String),
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] import::OpenError),
    /// The source has no sample.
    #[error("{0} has no sample to serve")]
    Empty(String),
    /// The system gives no thread or no event loop.
    #[error("cannot start the server")]
    Start(#[source] io::Error),
}

impl ServeError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Listen(error) => error.help(),
            Self::Unprotected(_) => Some(
                "listen on 127.0.0.1 and come through `ssh -L`, or name a file with a secret: --token-file FILE"
                    .to_owned(),
            ),
            Self::Source(error) => error.help().map(Into::into),
            Self::Empty(_) | Self::Start(_) => None,
        }
    }
}

/// A server that listens, before it answers.
#[derive(Debug)]
pub struct HttpServer {
    listeners: Vec<Listener>,
    feed: Arc<SourceFeed>,
    access: ClientAccess,
    units_max: usize,
    screen: Screen,
    tools: Option<HttpTools>,
    runtime: tokio::runtime::Runtime,
}

impl HttpServer {
    /// Reads the source and listens. Nobody is answered yet.
    ///
    /// # Errors
    /// [`ServeError`] if there is nothing to serve, or an address cannot be used.
    pub fn bind(options: ServeOptions) -> Result<Self, ServeError> {
        for address in &options.listen {
            if !address.is_of_this_host() && options.token.is_none() {
                return Err(ServeError::Unprotected(address.to_string()));
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ServeError::Start)?;
        // The address first: to read a source may take long, and a second server ends at once.
        let listeners = {
            let _entered = runtime.enter();
            options.listen.iter().map(Listener::bind).collect::<Result<Vec<_>, _>>()?
        };
        let access = ClientAccess::new(options.token, options.allowed_hosts);
        let feed = Arc::new(SourceFeed::open(options.source)?);
        Ok(Self {
            listeners,
            feed,
            access,
            units_max: options.units_max,
            screen: options.screen,
            tools: options.tools,
            runtime,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<BoundAddress> {
        self.listeners.iter().map(Listener::address).collect()
    }

    /// Answers until SIGTERM or SIGINT; then lets go on what is being answered, for a few seconds.
    ///
    /// # Errors
    /// [`ServeError::Start`] if the system gives no thread.
    pub fn run(self) -> Result<(), ServeError> {
        let Self { listeners, feed, access, units_max, screen, tools, runtime } = self;
        let _following = feed.follow().map_err(ServeError::Start)?;
        let answerer =
            Answerer::start(Arc::clone(&feed), screen, units_max).map_err(ServeError::Start)?;
        let routes = Routes {
            answerer,
            feed,
            access: Arc::new(access),
            followers: Followers::default(),
            calls: tools.map(AssistantCalls::new),
        };
        let sockets: Vec<PathBuf> = listeners.iter().filter_map(Listener::socket).collect();
        let result = runtime.block_on(connection::serve(listeners, routes.router()));
        for socket in sockets {
            let _ = std::fs::remove_file(socket);
        }
        result.map_err(ServeError::Start)
    }
}
