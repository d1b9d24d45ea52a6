//! The page: files that were embedded when the program was built.
//!
//! Every address that is not of the API and not of a file is the page itself, which reads its view
//! from the address. Files whose name holds a hash of their contents may be kept for ever.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Names and octets, sorted by name.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// What is served when the page was not built.
const NOTICE: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <title>Meikyo</title>\n<h1>Meikyo is serving</h1>\n\
    <p>This build has no page embedded. Build it with\n\
    <code>npm ci &amp;&amp; npm run build</code> in <code>web/</code> and build the program again.\n\
    <p>The API works: <a href=\"api/v1/recordings\">api/v1/recordings</a>,\n\
    <a href=\"api/v1/openapi.json\">api/v1/openapi.json</a>, <a href=\"metrics\">metrics</a>.\n</html>\n";

/// The answer for a path below the prefix, without its leading slash.
pub(crate) fn answer(path: &str) -> Response {
    answer_from(FILES, path)
}

fn answer_from(files: &[(&str, &'static [u8])], path: &str) -> Response {
    if path.split('/').any(|part| part == "..") || path.contains('\\') {
        return (StatusCode::BAD_REQUEST, "this path leads nowhere\n").into_response();
    }
    let find = |name: &str| files.binary_search_by_key(&name, |(of, _)| of).ok();
    if let Some(found) = find(path) {
        let kept = if path.starts_with("assets/") {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        };
        return file(files[found].1, media_type(path), kept);
    }
    // A missing asset is an error, and not the page in its place.
    if path.starts_with("assets/") || path.starts_with("api/") {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    }
    let page = find("index.html").map_or(NOTICE.as_bytes(), |found| files[found].1);
    file(page, "text/html; charset=utf-8", "no-cache")
}

fn file(octets: &'static [u8], media: &'static str, kept: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media)),
        (header::CACHE_CONTROL, HeaderValue::from_static(kept)),
    ];
    (headers, octets).into_response()
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("json" | "map") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &[(&str, &[u8])] = &[("assets/a-1f.js", b"a"), ("index.html", b"<html>")];

    fn facts(files: &[(&str, &'static [u8])], path: &str) -> (StatusCode, String, String) {
        let answer = answer_from(files, path);
        let header =
            |name| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let kept = header(header::CACHE_CONTROL).unwrap_or_default();
        (answer.status(), header(header::CONTENT_TYPE).unwrap_or_default(), kept)
    }

    #[test]
    fn files_are_found_and_every_other_path_is_the_page() {
        let (status, media, kept) = facts(SOME, "assets/a-1f.js");
        assert_eq!(status, StatusCode::OK);
        assert!(media.starts_with("text/javascript") && kept.contains("immutable"));
        assert_eq!(facts(SOME, "assets/b.js").0, StatusCode::NOT_FOUND);
        for path in ["", "index.html", "device/node001", "x.y"] {
            let (status, media, kept) = facts(SOME, path);
            assert_eq!((status, kept.as_str()), (StatusCode::OK, "no-cache"), "{path}");
            assert!(media.starts_with("text/html"), "{path}");
        }
        assert_eq!(facts(&[], "").0, StatusCode::OK);
        for path in ["../Cargo.toml", "a/../../b", "..\\x"] {
            assert_eq!(facts(SOME, path).0, StatusCode::BAD_REQUEST, "{path}");
        }
    }
}
