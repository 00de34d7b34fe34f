//! The tools over HTTP, for a server that is asked other things, too: it decides who may ask, and how much.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::tools::MemoryTools;
use crate::{ClientTrust, McpOptions};

/// The tools, answered over HTTP without sessions: each request stands alone, so a client leaves nothing behind.
#[derive(Clone)]
pub struct HttpTools {
    of_same_user: StreamableHttpService<MemoryTools, NeverSessionManager>,
    of_any_user: StreamableHttpService<MemoryTools, NeverSessionManager>,
}

impl std::fmt::Debug for HttpTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpTools(..)")
    }
}

impl HttpTools {
    /// Makes the tools; nothing runs yet.
    pub fn new(options: McpOptions) -> Self {
        let tools = MemoryTools::new(options, ClientTrust::SameUser);
        Self {
            of_any_user: service(tools.of_client(ClientTrust::AnyUser)),
            of_same_user: service(tools),
        }
    }

    /// Answers a request, of which the host, the origin and the length of the body were checked. A call ends where this future
    /// is dropped.
    pub async fn answer<B>(
        &self,
        request: http::Request<B>,
        client: ClientTrust,
    ) -> http::Response<impl http_body::Body<Data = Bytes, Error = Infallible> + Send + use<B>>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Display,
    {
        match client {
            ClientTrust::SameUser => self.of_same_user.handle(request).await,
            ClientTrust::AnyUser => self.of_any_user.handle(request).await,
        }
    }
}

fn service(tools: MemoryTools) -> StreamableHttpService<MemoryTools, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // Checked by the server in front, which knows its own names.
        .disable_allowed_hosts();
    StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config)
}
