//! Answers in fewer octets, for clients that take them so (RFC 9110, 8.4.1 and 12.5.3).
//!
//! Over 1 Mbit/s an answer of 100 kB takes a second. Zstandard at its fastest level takes 2 to 3 ms
//! for a megabyte and leaves a fifth of JSON; gzip (RFC 1952), for clients without it, takes five
//! times as long. What is streamed, or is compressed already, goes as it is.

use std::io::Write as _;
use std::ops::RangeInclusive;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::errors::ApiError;

/// Below this a packet holds it anyway.
const LEAST_BYTES: u64 = 1_024;
/// The media types that become smaller.
const MEDIA: [&str; 7] = [
    "application/json",
    "application/vnd.apache.arrow.stream",
    "text/javascript",
    "text/css",
    "text/html",
    "text/plain",
    "image/svg+xml",
];

/// How the octets of an answer are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Zstd,
    Gzip,
}

impl Coding {
    /// The best that a request accepts; `None` when that is the octets as they are.
    pub(super) fn accepted(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(header::ACCEPT_ENCODING).iter();
        let texts: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
        let accepts = |wanted: &str| {
            texts.iter().flat_map(|text| text.split(',')).any(|coding| {
                let mut parts = coding.split(';').map(str::trim);
                let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
                let weight = parts.find_map(|part| part.strip_prefix("q="));
                let refused = weight.is_some_and(|weight| weight.parse() == Ok(0.0));
                named && !refused
            })
        };
        [("zstd", Self::Zstd), ("gzip", Self::Gzip)]
            .into_iter()
            .find_map(|(name, coding)| accepts(name).then_some(coding))
    }

    /// Answers of so many octets become smaller; more would keep a thread of the server too long.
    const fn bytes(self) -> RangeInclusive<u64> {
        match self {
            Self::Zstd => LEAST_BYTES..=16 << 20,
            Self::Gzip => LEAST_BYTES..=512 << 10,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    fn encode(self, octets: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Zstd => zstd::bulk::compress(octets, 1),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(octets)?;
                encoder.finish()
            }
        }
    }
}

/// The same answer in fewer octets, if it becomes smaller.
pub(super) async fn compressed(response: Response, coding: Option<Coding>) -> Response {
    let media = response.headers().get(header::CONTENT_TYPE);
    let media = media.and_then(|media| media.to_str().ok()).unwrap_or_default();
    let length = response.body().size_hint().exact();
    let fits = MEDIA.iter().any(|fitting| media.starts_with(fitting))
        && !response.headers().contains_key(header::CONTENT_ENCODING)
        && length.is_some_and(|length| length >= LEAST_BYTES);
    if !fits {
        return response;
    }
    let (mut head, body) = response.into_parts();
    head.headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let coding = coding.filter(|coding| length.is_some_and(|of| coding.bytes().contains(&of)));
    let Some(coding) = coding else { return Response::from_parts(head, body) };
    let octets = match to_bytes(body, usize::MAX).await {
        Ok(octets) => octets,
        Err(error) => return ApiError::internal(&error).into_response(),
    };
    match coding.encode(&octets) {
        Ok(fewer) if fewer.len() < octets.len() => {
            head.headers.remove(header::CONTENT_LENGTH);
            let name = HeaderValue::from_static(coding.name());
            head.headers.insert(header::CONTENT_ENCODING, name);
            Response::from_parts(head, Body::from(fewer))
        }
        _ => Response::from_parts(head, Body::from(octets)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(text: &'static str) -> Option<Coding> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(text));
        Coding::accepted(&headers)
    }

    #[test]
    fn a_client_gets_what_it_accepts() {
        assert_eq!(accepted("gzip, deflate, br, zstd"), Some(Coding::Zstd));
        assert_eq!(accepted("gzip;q=0.8, zstd;q=0"), Some(Coding::Gzip));
        assert_eq!(accepted("GZIP; q=0.5"), Some(Coding::Gzip));
        assert_eq!(accepted("identity, br"), None);
        assert_eq!(Coding::accepted(&HeaderMap::new()), None);
    }
}
