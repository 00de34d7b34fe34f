//! Addresses, and what every answer has in its head.

use std::sync::Arc;

use axum::Router;
use axum::body::Body as HttpBody;
use axum::extract::{Extension, Path, Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION,
    REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};
use mcp::ClientTrust;
use report::html::{self, Tag, tag};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use units::Span;

use crate::access::{COOKIE_NAME, ClientAccess, Denied};
use crate::answer::Body;
use crate::answerer::{Answerer, ClientQuestion};
use crate::api::{ApiKind, ApiQuestion};
use crate::assistant_calls::AssistantCalls;
use crate::changes::Followers;
use crate::connection::{ReachedBy, ServerEnd};
use crate::feed::{LATE, SourceFeed};
use crate::live_page::{Closer, PagePart, PageQuestion};
use crate::metrics::MetricsQuestion;
use crate::query::{Query, quoted};
use crate::refusal::Unanswered;
use crate::{request_body, schemas};

/// What answers a request.
#[derive(Debug, Clone)]
pub(crate) struct Routes {
    pub(crate) answerer: Answerer,
    pub(crate) feed: Arc<SourceFeed>,
    pub(crate) access: Arc<ClientAccess>,
    pub(crate) followers: Followers,
    pub(crate) calls: Option<AssistantCalls>,
}

/// A form with one field.
const FORM_BYTES_MAX: usize = 4 << 10;
/// Where a login is sent.
const LOGIN: &str = "/login";
/// Where assistants send their calls.
const MCP: &str = "/mcp";
/// Health is also asked by programs without the token; it names nothing of this host.
const HEALTH: &str = "/healthz";

type RoutesState = State<Routes>;

impl Routes {
    pub(crate) fn router(self) -> Router {
        let page = |part| {
            get(move |State(routes): RoutesState, request: Request| async move {
                let (head, _) = request.into_parts();
                routes.page(&head, part).await
            })
        };
        let api = |kind| {
            get(move |State(routes): RoutesState, request: Request| async move {
                let (head, _) = request.into_parts();
                routes.api(&head, kind).await
            })
        };
        Router::new()
            .route("/", page(PagePart::Html))
            .route("/data", page(PagePart::Data))
            .route("/text", page(PagePart::Text))
            .route("/changes", get(changes))
            .route("/closer", get(closer))
            .route("/compare", api(ApiKind::ComparePage))
            .route("/api/v1/check", api(ApiKind::Check))
            .route("/api/v1/where", api(ApiKind::Where))
            .route("/api/v1/headroom", api(ApiKind::Headroom))
            .route("/api/v1/compare", api(ApiKind::Compare))
            .route("/api/v1/events", api(ApiKind::Events))
            .route("/api/v1/series", api(ApiKind::Series))
            .route("/api/v1", get(index))
            .route("/schemas/{name}", get(schema))
            .route("/metrics", get(metrics))
            .route(HEALTH, get(health))
            .route(LOGIN, any(login))
            .route(MCP, post(assistants))
            .fallback(absent)
            .layer(middleware::from_fn_with_state(self.clone(), guard))
            // Numbers of charts are packed already, and each client's answer is compressed for itself.
            .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
            .with_state(self)
    }

    async fn page(&self, head: &Parts, part: PagePart) -> Response {
        let asked = async {
            let query = Query::parse(head.uri.query(), PageQuestion::NAMES)?;
            let question = PageQuestion { query, part };
            self.answerer.ask(ClientQuestion::Page(question)).await
        };
        match (asked.await, part) {
            (Ok(body), _) => sent(&head.headers, body),
            (Err(refusal), PagePart::Html) => refused_page(&refusal),
            (Err(refusal), _) => refused_text(&refusal),
        }
    }

    async fn api(&self, head: &Parts, kind: ApiKind) -> Response {
        let asked = async {
            let query = Query::parse(head.uri.query(), kind.names())?;
            let question = ApiQuestion { kind, query };
            self.answerer.ask(ClientQuestion::Api(question)).await
        };
        match asked.await {
            Ok(body) => sent(&head.headers, body),
            Err(refusal) if kind == ApiKind::ComparePage => refused_page(&refusal),
            Err(refusal) => refused_json(&refusal),
        }
    }
}

/// Answers nobody who asked for another host, or without the secret; and says in every answer what a browser may do with it.
async fn guard(
    State(routes): RoutesState,
    Extension(reached_by): Extension<ReachedBy>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let mut response = match admitted(&routes.access, &head, reached_by) {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(response) => *response,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let is_page =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    // A page has its own policy with the hashes of its script and style; a frame can only be forbidden here.
    let policy = if is_page {
        "frame-ancestors 'none'; object-src 'none'"
    } else {
        "default-src 'none'; frame-ancestors 'none'"
    };
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn admitted(
    access: &ClientAccess,
    head: &Parts,
    reached_by: ReachedBy,
) -> Result<(), Box<Response>> {
    if let Err(Denied::Host(asked)) = access.check_host(head, reached_by) {
        let refusal = Unanswered::new(421, format!("this server is not `{}`", quoted(&asked))).with_help(
            "ask for it by its address or as localhost; `memtide serve --allow-host NAME` allows another name",
        );
        return Err(Box::new(refused_text(&refusal)));
    }
    let path = head.uri.path();
    let is_login = path == LOGIN;
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let is_sent = head.method == Method::POST;
    let (is_taken, allowed, why) = match path {
        MCP => (
            is_sent,
            "POST",
            "assistants send their calls here with POST, and nothing else is answered",
        ),
        LOGIN => (is_read || is_sent, "GET, HEAD, POST", "a login is read, or sent with POST"),
        _ => (is_read, "GET, HEAD", "memtide only answers GET and HEAD: it changes nothing"),
    };
    if !is_taken {
        let mut response = refused_text(&Unanswered::new(405, why));
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        return Err(Box::new(response));
    }
    if is_sent && let Err(Denied::Origin(origin)) = ClientAccess::check_origin(head) {
        let refusal =
            Unanswered::new(403, format!("a page of `{}` may not ask here", quoted(&origin)))
                .with_help("programs send no `Origin`; a page of this server sends its own");
        return Err(Box::new(refused_text(&refusal)));
    }
    if is_login || path == HEALTH {
        return Ok(());
    }
    match access.check_token(head) {
        Ok(()) => Ok(()),
        Err(_) if wants_page(&head.headers) && path == "/" => Err(Box::new(redirected(LOGIN))),
        Err(_) => {
            let refusal = Unanswered::new(401, "this server needs a token").with_help(
                "send `Authorization: Bearer TOKEN`, or log in at /login with a browser",
            );
            let mut response = refused_text(&refusal);
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"memtide\""));
            Err(Box::new(response))
        }
    }
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(axum::http::header::ACCEPT);
    accept.and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains("text/html"))
}

/// Events for a page that follows, from the data on that `Last-Event-ID` names.
async fn changes(
    State(routes): RoutesState,
    Extension(end): Extension<ServerEnd>,
    request: Request,
) -> Response {
    let (head, _) = request.into_parts();
    let asked = || {
        let query = Query::parse(head.uri.query(), PageQuestion::NAMES)?;
        let question = PageQuestion { query, part: PagePart::Data };
        if !question.follows(&routes.feed)? {
            return Err(Unanswered::absent("this page shows what is past: it does not change"));
        }
        let has = head.headers.get("last-event-id").and_then(|value| value.to_str().ok());
        routes.followers.follow(routes.answerer.clone(), question, routes.feed.pulses(), end, has)
    };
    asked().unwrap_or_else(|refusal| refused_text(&refusal))
}

async fn closer(State(routes): RoutesState, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let asked = async {
        let query = Query::parse(head.uri.query(), &[&["of", "from", "to"]])?;
        let second = |name: &str| {
            let found = query.value(name, |typed| match typed.parse::<f64>() {
                Ok(second) if (0.0..1e10).contains(&second) => Ok(second),
                _ => Err(format!("`{}` is no second of a page", quoted(typed))),
            })?;
            found.ok_or_else(|| Unanswered::bad(format!("`{name}` is missing")))
        };
        let (from_s, to_s) = (second("from")?, second("to")?);
        if from_s >= to_s {
            return Err(Unanswered::bad("the part ends before it begins"));
        }
        let of = own_tag(query.text("of").unwrap_or_default()).to_owned();
        routes.answerer.ask(ClientQuestion::Closer(Closer { of, from_s, to_s })).await
    };
    match asked.await {
        Ok(body) => sent(&head.headers, body),
        Err(refusal) => refused_text(&refusal),
    }
}

async fn metrics(State(routes): RoutesState, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let asked = async {
        Query::parse(head.uri.query(), &[])?;
        let question = MetricsQuestion::negotiated(&head.headers);
        routes.answerer.ask(ClientQuestion::Metrics(question)).await
    };
    match asked.await {
        Ok(body) => sent(&head.headers, body),
        Err(refusal) => refused_text(&refusal),
    }
}

async fn index(request: Request) -> Response {
    match schemas::index() {
        Ok(body) => sent(request.headers(), body),
        Err(refusal) => refused_json(&refusal),
    }
}

async fn schema(Path(name): Path<String>, request: Request) -> Response {
    match schemas::file(&name) {
        Ok(body) => sent(request.headers(), body),
        Err(refusal) => refused_json(&refusal),
    }
}

/// Whether the server answers and its source goes on. It waits for no judgement.
async fn health(State(routes): RoutesState) -> Response {
    let pulse = routes.feed.pulse();
    let age = routes.feed.age().filter(|_| routes.feed.grows());
    let is_late = age.is_some_and(|age| age > LATE);
    let (status, word) = match (&pulse.gone, is_late) {
        (Some(_), _) => (StatusCode::SERVICE_UNAVAILABLE, "gone"),
        (None, true) => (StatusCode::SERVICE_UNAVAILABLE, "late"),
        (None, false) => (StatusCode::OK, "ok"),
    };
    let value =
        serde_json::json!({"status": word, "last_sample_age_s": age.map(Span::as_secs_f64)});
    let body = Body::json(value.to_string());
    whole(status, body.content_type, body.bytes)
}

async fn absent(request: Request) -> Response {
    let path = quoted(request.uri().path());
    let refusal = Unanswered::absent(format!("there is nothing at {path}")).with_help(
        "/ is the page, /api/v1 lists what programs can ask, /metrics is for Prometheus",
    );
    if wants_page(request.headers()) { refused_page(&refusal) } else { refused_text(&refusal) }
}

/// A call of an assistant.
async fn assistants(
    State(routes): RoutesState,
    Extension(reached_by): Extension<ReachedBy>,
    request: Request,
) -> Response {
    let Some(calls) = &routes.calls else {
        return refused_text(&Unanswered::absent(
            "what is served was read from standard input, where a call cannot read it again",
        ));
    };
    // Whoever connects to a port may be any user of this host.
    let is_known = reached_by == ReachedBy::Socket || routes.access.token().is_some();
    let client = if is_known { ClientTrust::SameUser } else { ClientTrust::AnyUser };
    calls
        .answer(request.into_parts(), client)
        .await
        .unwrap_or_else(|refusal| refused_text(&refusal))
}

/// The form in which a browser's user types the secret, and its answer.
async fn login(State(routes): RoutesState, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Some(token) = routes.access.token() else { return redirected("/") };
    if head.method != Method::POST {
        return login_form(StatusCode::OK, None);
    }
    let form = match request_body::whole(body, FORM_BYTES_MAX).await {
        Ok(form) => form,
        Err(refusal) => return refused_page(&refusal),
    };
    let typed = form_urlencoded::parse(&form).find(|(name, _)| name == "token");
    if !typed.is_some_and(|(_, typed)| token.is(typed.trim().as_bytes())) {
        return login_form(StatusCode::UNAUTHORIZED, Some("That is not the token."));
    }
    let cookie = format!("{COOKIE_NAME}={}; Path=/; HttpOnly; SameSite=Strict", token.cookie());
    let mut response = redirected("/");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

fn login_form(status: StatusCode, wrong: Option<&str>) -> Response {
    let text = html::served_notice("Log in · memtide", |html| {
        html.tagged(tag("h1"), "This server needs a token");
        html.tagged(
            tag("p"),
            "It is the line in the file that `memtide serve --token-file` names.",
        );
        if let Some(wrong) = wrong {
            html.tagged(tag("p").with("role", "alert"), wrong);
        }
        html.within(
            Tag::of("form", "login").with("method", "post").with("action", LOGIN),
            |html| {
                html.within(tag("label"), |html| {
                    html.text("Token");
                    let input = tag("input").with("name", "token").with("type", "password");
                    html.open(
                        &input
                            .with("autocomplete", "current-password")
                            .with("required", "")
                            .with("autofocus", ""),
                    );
                });
                html.raw("<button type=\"submit\">Log in</button>");
            },
        );
    });
    whole(status, "text/html; charset=utf-8", text)
}

fn redirected(to: &'static str) -> Response {
    let mut response = whole(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    response
}

fn whole(status: StatusCode, kind: &'static str, bytes: impl Into<HttpBody>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer; only that it is the same where the client has it.
fn sent(asked: &HeaderMap, body: Body) -> Response {
    let known = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let has = known.flat_map(|value| value.split(',')).any(|tag| own_tag(tag.trim()) == body.tag);
    let mut response = if has {
        whole(StatusCode::NOT_MODIFIED, body.content_type, "")
    } else {
        whole(StatusCode::OK, body.content_type, body.bytes)
    };
    if let Ok(tag) = HeaderValue::from_str(&body.tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The name that an answer was sent with: packed, it is one of several forms of the same.
fn own_tag(sent: &str) -> &str {
    sent.strip_prefix("W/").unwrap_or(sent)
}

fn with_status(refusal: &Unanswered, mut response: Response) -> Response {
    *response.status_mut() =
        StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if refusal.status == 503 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}

/// A sentence; what to do stands in the second line.
fn refused_text(refusal: &Unanswered) -> Response {
    let help = refusal.help.as_ref().map(|help| format!("{help}\n")).unwrap_or_default();
    let text = format!("{}\n{help}", refusal.text);
    with_status(refusal, whole(StatusCode::OK, "text/plain; charset=utf-8", text))
}

fn refused_json(refusal: &Unanswered) -> Response {
    let value = serde_json::json!({"error": refusal.text, "help": refusal.help});
    let text = report::json(&value).unwrap_or_default() + "\n";
    with_status(refusal, whole(StatusCode::OK, "application/json", text))
}

fn refused_page(refusal: &Unanswered) -> Response {
    let text = html::served_notice("memtide: no answer", |html| {
        html.tagged(tag("h1"), &refusal.text);
        if let Some(help) = &refusal.help {
            html.tagged(tag("p"), help);
        }
        html.within(tag("p"), |html| {
            html.tagged(tag("a").with("href", "/"), "The page as it opens");
        });
    });
    with_status(refusal, whole(StatusCode::OK, "text/html; charset=utf-8", text))
}
