//! Who is answered: by the name under which this server was asked for, and by the secret.

use std::net::IpAddr;

use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;

use crate::connection::ReachedBy;
use crate::token::AccessToken;

/// The name of the cookie that a login leaves.
pub(crate) const COOKIE_NAME: &str = "memtide";

#[derive(Debug)]
pub(crate) struct ClientAccess {
    token: Option<AccessToken>,
    allowed_hosts: Vec<String>,
}

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The name that was asked for is none of this host: a page of another site may have led a browser here (DNS rebinding).
    Host(String),
    /// A page of this origin sent it, which is of another site.
    Origin(String),
    /// It needs the secret.
    Token,
}

impl ClientAccess {
    pub(crate) fn new(token: Option<AccessToken>, allowed_hosts: Vec<String>) -> Self {
        Self { token, allowed_hosts }
    }

    pub(crate) fn token(&self) -> Option<&AccessToken> {
        self.token.as_ref()
    }

    /// Checks the name that was asked for. Whoever reaches a socket in the file system is a program of this user.
    pub(crate) fn check_host(&self, request: &Parts, reached_by: ReachedBy) -> Result<(), Denied> {
        if reached_by == ReachedBy::Socket {
            return Ok(());
        }
        let header = request
            .headers
            .get(HOST)
            .map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
        // A request to a proxy names the host in its line.
        let asked = request.uri.authority().map(ToString::to_string).or(header);
        let Some(asked) = asked else { return Err(Denied::Host(String::new())) };
        if self.is_allowed(&asked) { Ok(()) } else { Err(Denied::Host(asked)) }
    }

    /// An address is no name that another site could make a browser resolve; names are those of loopback, and those allowed.
    fn is_allowed(&self, asked: &str) -> bool {
        let name = without_port(asked);
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        bare.parse::<IpAddr>().is_ok()
            || name == "localhost"
            || self.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(&name))
    }

    /// Checks that what is sent comes from a program, or from a page of this server: its origin has the name that was asked for.
    pub(crate) fn check_origin(request: &Parts) -> Result<(), Denied> {
        let Some(origin) = request.headers.get(ORIGIN) else { return Ok(()) };
        let origin = String::from_utf8_lossy(origin.as_bytes());
        let of_page = origin.split_once("://").map(|(_, name)| name.as_bytes());
        let asked = request.headers.get(HOST).map(HeaderValue::as_bytes);
        if of_page.is_some() && of_page == asked {
            Ok(())
        } else {
            Err(Denied::Origin(origin.into_owned()))
        }
    }

    /// Checks the secret, where there is one.
    pub(crate) fn check_token(&self, request: &Parts) -> Result<(), Denied> {
        let Some(token) = &self.token else { return Ok(()) };
        let bearer = request.headers.get(AUTHORIZATION).and_then(|value| {
            let (scheme, secret) = value.as_bytes().split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then(|| secret.trim_ascii())
        });
        let has_cookie = || {
            let sent = request.headers.get_all(COOKIE).iter();
            let mut pairs =
                sent.filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(';'));
            pairs.any(|pair| {
                let pair = pair.trim().split_once('=');
                pair.is_some_and(|(name, value)| name == COOKIE_NAME && token.is_cookie(value))
            })
        };
        if bearer.is_some_and(|sent| token.is(sent)) || has_cookie() {
            Ok(())
        } else {
            Err(Denied::Token)
        }
    }
}

/// `host`, `host:80`, `[::1]:80`.
fn without_port(asked: &str) -> &str {
    match asked.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() =>
        {
            // An address of IPv6 without brackets has colons of its own.
            if name.contains(':') && !name.ends_with(']') { asked } else { name }
        }
        _ => asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_host_are_answered_and_no_others() {
        let access = ClientAccess::new(None, vec!["db7.example.org".to_owned()]);
        for (asked, is_allowed) in [
            ("localhost", true),
            ("LOCALHOST:7424", true),
            ("127.0.0.1:7424", true),
            ("[::1]:7424", true),
            ("192.168.3.4", true),
            ("db7.example.org", true),
            ("DB7.example.org:80", true),
            ("db7.example.org.", true),
            ("evil.example.org", false),
            ("localhost.evil.org", false),
            ("127.0.0.1.evil.org:7424", false),
            ("db7.example.org.evil.org", false),
            ("", false),
            (":7424", false),
            ("localhost:7424@evil.org", false),
        ] {
            assert_eq!(access.is_allowed(asked), is_allowed, "{asked}");
        }
    }
}
