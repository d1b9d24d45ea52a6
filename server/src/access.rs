//! Who may ask: the name that the server is called by, the origin of the page that asks, the token.
//!
//! On loopback there is no login; what protects a person there is that the `Host` header must name
//! this machine (a foreign name that resolves to 127.0.0.1 is refused) and that pages of other
//! origins may open no socket. Elsewhere a token is asked for, over TLS.

mod hosts;
mod rate;
mod sessions;
mod token;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use meikyo_units::WallTime;

pub use hosts::HostError;
pub(crate) use hosts::Hosts;
pub use rate::REQUESTS_PER_S;
pub(crate) use rate::{Client, Rates};
pub(crate) use sessions::Sessions;
#[cfg(test)]
pub(crate) use token::taken_for_viewing;
pub(crate) use token::{Hash, Role, Tokens};
pub use token::{TokenError, hash_token, make_token, patterns_of};

use crate::errors::ApiError;

/// Most octets of a request's body.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;

/// Where senders send rows to.
const INGEST_PATH: &str = "/api/v1/ingest";

/// The cookie that stands for a token that was shown once.
const COOKIE: &str = "meikyo_session";

/// Who may ask.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) hosts: Hosts,
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

/// Whose request it is: what stands for a token that was shown.
#[derive(Debug, Clone)]
pub(crate) struct Proof(pub(crate) Hash);

impl Proof {
    /// The jobs and users whose samples may be seen, and no other rows; everything when there are none.
    pub(crate) fn visible(&self) -> Vec<String> {
        match &self.0.role {
            Role::Jobs(patterns) => patterns.clone(),
            Role::View | Role::Ingest(_) => Vec::new(),
        }
    }
}

/// What becomes of a request.
pub(crate) enum Verdict {
    /// It goes on, with the hash of the token that its session began with.
    Pass(Option<Hash>),
    /// It goes on although nothing was shown: it is a form with a token.
    Try,
    /// It goes on if that token is right; a browser gets a session and is sent to the page.
    Check { token: String, browser: bool },
    /// This is answered in its place.
    Answer(Response),
}

impl Access {
    /// Looks at the head of a request.
    pub(crate) fn admit(&self, request: &Request) -> Result<Verdict, ApiError> {
        let taken = self.rates.charge(client_of(request), WallTime::now());
        taken.map_err(ApiError::too_often)?;
        self.check_host(request)?;
        self.check_origin(request.headers())?;
        check_length(request.headers())?;
        let Some(tokens) = &self.tokens else { return Ok(Verdict::Pass(None)) };
        if let Some(hash) = self.session(request.headers()).filter(|hash| tokens.takes(hash)) {
            return Ok(Verdict::Pass(Some(hash)));
        }
        if let Some(token) = bearer(request.headers()) {
            return Ok(Verdict::Check { token: token.to_owned(), browser: false });
        }
        let path = request.uri().path().strip_prefix(self.prefix.as_str()).unwrap_or_default();
        if path == "/login" && request.method() == Method::POST {
            return Ok(Verdict::Try);
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

    /// Whether the token that somebody came with is for what is asked: those for viewing send no
    /// rows, and those for sending rows show nothing.
    pub(crate) fn allow(&self, request: &Request, proof: Option<&Hash>) -> Result<(), ApiError> {
        let path = request.uri().path().strip_prefix(self.prefix.as_str()).unwrap_or_default();
        if let Some(Role::Jobs(_)) = proof.map(|taken| &taken.role)
            && !is_of_own_samples(request.method(), path)
        {
            let text = "the token is for the samples of some jobs: of the API it opens the list of \
                        recordings, `heat`, `cores` and `profile/flame`";
            return Err(ApiError::new(StatusCode::FORBIDDEN, text, "authorization"));
        }
        self.allow_role(path == INGEST_PATH, proof)
    }

    /// As [`Access::allow`], of somebody who sends rows or does not.
    pub(crate) fn allow_role(&self, ingests: bool, proof: Option<&Hash>) -> Result<(), ApiError> {
        let text = match proof.map(|taken| &taken.role) {
            Some(Role::View | Role::Jobs(_)) if ingests => {
                "the token is for viewing: sending rows needs one made with \
                 `meikyo serve --new-token=ingest:PATTERN`"
            }
            Some(Role::Ingest(_)) if !ingests => "the token is for sending rows, not for viewing",
            _ => return Ok(()),
        };
        Err(ApiError::new(StatusCode::FORBIDDEN, text, "authorization"))
    }

    /// Checks a token that a client shows; every one is right when none is asked for.
    pub(crate) async fn check(
        &self,
        client: Client,
        token: &str,
    ) -> Result<Option<Hash>, ApiError> {
        match &self.tokens {
            Some(tokens) => tokens.verify(client, token).await.map(Some),
            None => Ok(None),
        }
    }

    /// Sends a browser to the page with a session in its cookie, and the token out of the address.
    pub(crate) fn welcome(&self, proof: Option<Hash>) -> Response {
        let session = self.sessions.begin(proof);
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

    /// All names in a request must be the server's own. Two `Host` headers are refused (RFC 9112,
    /// 3.2): a proxy in front may have believed the other one.
    fn check_host(&self, request: &Request) -> Result<(), ApiError> {
        let header = the_only(request.headers(), &header::HOST)?;
        let authority = request.uri().authority().map(|authority| authority.as_str());
        let mut named = header.into_iter().chain(authority).peekable();
        let some = named.peek().is_some();
        match named.find(|name| !self.hosts.is_ours(name)) {
            None if some => Ok(()),
            foreign => {
                let text = format!(
                    "the server is not known as `{}`; start it with `--host NAME` to allow that",
                    foreign.unwrap_or_default()
                );
                Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, text, "host"))
            }
        }
    }

    /// A page of another origin may ask for nothing. Browsers send `Origin` with every socket and
    /// with everything that changes something.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(origin) = the_only(headers, &header::ORIGIN)? else { return Ok(()) };
        if self.hosts.admits(origin, the_only(headers, &header::HOST)?) {
            return Ok(());
        }
        let text = format!(
            "pages of `{origin}` may not ask this server; if it is the server's own, behind a \
             proxy, start it with `--host {origin}`"
        );
        Err(ApiError::new(StatusCode::FORBIDDEN, text, "origin"))
    }

    /// The hash of the token that the session in a cookie began with.
    fn session(&self, headers: &HeaderMap) -> Option<Hash> {
        let cookies =
            headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
        pairs.find_map(|pair| {
            let (name, session) = pair.trim().split_once('=')?;
            (name == COOKIE).then(|| self.sessions.holder(session))?
        })
    }
}

/// Whether what is asked is answered to a token for the samples of some jobs: the page's own files, the list of
/// recordings, and what looks at samples one by one.
fn is_of_own_samples(method: &Method, path: &str) -> bool {
    if path == "/login" {
        return method == Method::POST;
    }
    if method != Method::GET && method != Method::HEAD {
        return false;
    }
    if !path.starts_with("/api") {
        return path != "/metrics";
    }
    let Some(below) = path.strip_prefix("/api/v1/recordings") else { return false };
    let of_recording = below.strip_prefix('/').and_then(|rest| rest.split_once('/'));
    below.is_empty()
        || of_recording.is_some_and(|(id, what)| {
            !id.is_empty() && ["heat", "cores", "profile/flame"].contains(&what)
        })
}

/// Whose connection a request came by.
pub(crate) fn client_of(request: &Request) -> Client {
    let client = request.extensions().get().copied();
    client.expect("a connection is taken together with whose it is")
}

/// The value of a header that a request has once at most; one that is no text is empty.
fn the_only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().unwrap_or_default());
    if values.next().is_some() {
        let text = format!("the request has several `{name}` headers, and one is allowed");
        return Err(ApiError::bad(text, name.as_str()));
    }
    Ok(first)
}

/// The type of the pages that are made here.
const HTML: (HeaderName, &str) = (header::CONTENT_TYPE, "text/html; charset=utf-8");

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
    if usize::try_from(length).is_ok_and(|length| length <= BODY_BYTES_MAX) {
        return Ok(());
    }
    Err(too_long(&format!("the body has {length} octets and")))
}

pub(crate) fn too_long(what: &str) -> ApiError {
    let text = format!("{what} is too long: at most {BODY_BYTES_MAX} octets are taken");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, text, "body")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
