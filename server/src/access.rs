//! Who may ask: the name that the server is called by, the origin of the page that asks, the token.
//!
//! On loopback there is no login; what protects a person there is that the `Host` header must name
//! this machine (a foreign name that resolves to 127.0.0.1 is refused) and that pages of other
//! origins may open no socket. Elsewhere a token is asked for, over TLS.

mod rate;
mod sessions;
mod token;

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

pub use rate::REQUESTS_PER_S;
pub(crate) use rate::{Client, Rates};
pub(crate) use sessions::Sessions;
pub(crate) use token::Tokens;
pub use token::{TokenError, hash_token, make_token};

use meikyo_units::WallTime;

use crate::errors::ApiError;
use crate::state::Shared;

/// Most octets of a request's body.
pub(crate) const BODY_BYTES_MAX: u64 = 64 << 10;

/// What a page may load: its own files and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'";

/// The cookie that stands for a token that was shown once.
const COOKIE: &str = "meikyo_session";

/// Who may ask.
#[derive(Debug)]
pub(crate) struct Access {
    /// Names that the server may be called by besides those of loopback.
    pub(crate) hosts: Vec<String>,
    /// The tokens that are taken; nobody is asked for one when there are none.
    pub(crate) tokens: Option<Tokens>,
    pub(crate) sessions: Sessions,
    /// How often each client may ask.
    pub(crate) rates: Rates,
    /// Path before everything, with a leading and no trailing slash; empty for none.
    pub(crate) prefix: String,
    /// Whether cookies travel encrypted only.
    pub(crate) tls: bool,
}

/// Lets a request through, or refuses it.
pub(crate) async fn guard(State(server): State<Shared>, request: Request, next: Next) -> Response {
    let access = &server.access;
    let mut response = match access.admit(&request) {
        Ok(Verdict::Pass) => next.run(request).await,
        Ok(Verdict::Answer(response)) => response,
        Ok(Verdict::Check { token, browser }) => match access.check(&server, &token).await {
            Ok(()) if browser => access.welcome(),
            Ok(()) => next.run(request).await,
            Err(error) => error.into_response(),
        },
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// What becomes of a request.
enum Verdict {
    /// It goes on.
    Pass,
    /// It goes on if that token is right; a browser gets a session and is sent to the page.
    Check { token: String, browser: bool },
    /// This is answered in its place.
    Answer(Response),
}

impl Access {
    /// Looks at the head of a request.
    fn admit(&self, request: &Request) -> Result<Verdict, ApiError> {
        if let Some(client) = request.extensions().get::<Client>() {
            let taken = self.rates.take(*client, WallTime::now());
            taken.map_err(ApiError::too_often)?;
        }
        self.check_host(request)?;
        self.check_origin(request.headers())?;
        check_length(request.headers())?;
        if self.tokens.is_none() || self.has_session(request.headers()) {
            return Ok(Verdict::Pass);
        }
        if let Some(token) = bearer(request.headers()) {
            return Ok(Verdict::Check { token: token.to_owned(), browser: false });
        }
        let path = request.uri().path().strip_prefix(self.prefix.as_str()).unwrap_or_default();
        if path == "/login" && request.method() == Method::POST {
            return Ok(Verdict::Pass);
        }
        if path.starts_with("/api/") || path == "/metrics" {
            let text = "a token is needed: send `Authorization: Bearer TOKEN`";
            return Err(ApiError::new(StatusCode::UNAUTHORIZED, text, "authorization"));
        }
        let query = request.uri().query().unwrap_or_default();
        let shown = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token");
        if let Some((_, token)) = shown {
            return Ok(Verdict::Check { token: token.into_owned(), browser: true });
        }
        let page = (StatusCode::UNAUTHORIZED, [HTML], login_page(&self.prefix));
        Ok(Verdict::Answer(page.into_response()))
    }

    /// Checks a token; every one is right when none is asked for.
    pub(crate) async fn check(&self, server: &Shared, token: &str) -> Result<(), ApiError> {
        match &self.tokens {
            Some(tokens) => tokens.verify(server, token).await,
            None => Ok(()),
        }
    }

    /// Sends a browser to the page with a session in its cookie, and the token out of the address.
    pub(crate) fn welcome(&self) -> Response {
        let session = self.sessions.begin();
        let secure = if self.tls { "; Secure" } else { "" };
        let path = if self.prefix.is_empty() { "/" } else { self.prefix.as_str() };
        let cookie = format!("{COOKIE}={session}; Path={path}; HttpOnly; SameSite=Strict{secure}");
        let cookie = HeaderValue::from_str(&cookie).ok();
        let mut response = Redirect::to(&format!("{}/", self.prefix)).into_response();
        if let Some(cookie) = cookie {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    fn check_host(&self, request: &Request) -> Result<(), ApiError> {
        let header = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let named =
            header.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
        if named.is_some_and(|named| self.is_ours(name_of(named))) {
            return Ok(());
        }
        let text = format!(
            "the server is not known as `{}`; start it with `--host NAME` to allow that",
            named.unwrap_or_default()
        );
        Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, text, "host"))
    }

    fn is_ours(&self, name: &str) -> bool {
        is_loopback(name) || self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }

    /// A page of another origin may ask for nothing. Browsers send `Origin` with every socket and
    /// with everything that changes something.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let same = host.is_some_and(|host| host.eq_ignore_ascii_case(authority));
        let listed =
            self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name_of(authority)));
        if same || listed {
            return Ok(());
        }
        let text = format!("pages of `{origin}` may not ask this server");
        Err(ApiError::new(StatusCode::FORBIDDEN, text, "origin"))
    }

    fn has_session(&self, headers: &HeaderMap) -> bool {
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
        pairs.any(|pair| {
            let pair = pair.trim().split_once('=');
            pair.is_some_and(|(name, session)| name == COOKIE && self.sessions.holds(session))
        })
    }
}

/// The type of the pages that are made here.
const HTML: (header::HeaderName, &str) = (header::CONTENT_TYPE, "text/html; charset=utf-8");

fn login_page(prefix: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Meikyo</title>\n\
         <h1>Meikyo</h1>\n<form method=\"post\" action=\"{prefix}/login\">\n\
         <label>Token <input type=\"password\" name=\"token\" autofocus></label>\n\
         <button>Open</button>\n</form>\n</html>\n"
    )
}

fn check_length(headers: &HeaderMap) -> Result<(), ApiError> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse::<u64>().ok()).unwrap_or(0);
    if length > BODY_BYTES_MAX {
        let text = format!("the body has {length} octets, at most {BODY_BYTES_MAX} are taken");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, text, "body"));
    }
    Ok(())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// The host of `host:port` or `[address]:port`.
fn name_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(address, _)| address);
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// Whether a name is this machine's own and nobody else's.
pub(crate) fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access {
            hosts: vec!["cluster.example".into()],
            tokens: None,
            sessions: Sessions::default(),
            rates: Rates::new(REQUESTS_PER_S),
            prefix: String::new(),
            tls: false,
        }
    }

    #[test]
    fn only_own_names_are_answered() {
        for (name, ours) in [
            ("127.0.0.1:8420", true),
            ("localhost", true),
            ("[::1]:8420", true),
            ("Cluster.Example:443", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example:8420", false),
            ("", false),
        ] {
            assert_eq!(access().is_ours(name_of(name)), ours, "{name}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        for (origin, allowed) in [
            ("http://127.0.0.1:8420", true),
            ("https://cluster.example", true),
            ("http://127.0.0.1:9999", false),
            ("https://evil.example", false),
            ("null", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:8420"));
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            assert_eq!(access().check_origin(&headers).is_ok(), allowed, "{origin}");
        }
    }
}
