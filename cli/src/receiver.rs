//! A server that takes rows from other hosts, as those that send name it.

use std::net::SocketAddr;
use std::path::Path;

use meikyo_console::failure::Failure;
use meikyo_transport::shell::{Target, UplinkStatus, with_port};

/// What tells this life of the machine from every other.
pub(crate) fn machine() -> Result<String, std::io::Error> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

/// How a connection stands, without numbers that always change.
pub(crate) fn state(status: &UplinkStatus, to: &str) -> String {
    match &status.trouble {
        Some(trouble) => format!("not sending to {to}, blocks wait: {trouble}"),
        None if status.sender.is_welcome => format!("sending to {to}"),
        None => format!("connecting to {to}"),
    }
}

/// The token in a file.
pub(crate) fn token(file: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(file) = file else { return Ok(None) };
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(format!("cannot read `{}`: {error}", file.display())))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|octet| octet.is_ascii_graphic()) {
        let failure = Failure::new(format!("`{}` is no token", file.display()));
        return Err(
            failure.hint("it contains only the token that `meikyo serve --new-token` printed")
        );
    }
    Ok(Some(token.to_owned()))
}

/// The receiver at a URL.
pub(crate) fn target(
    option: &str,
    url: &str,
    roots: &Path,
    token: Option<String>,
) -> Result<Target, Failure> {
    let refused = || {
        Failure::new(format!("`{url}` is no address of a server"))
            .hint(format!("write for example `{option} https://mon.example:8420`"))
    };
    let (roots, rest, port) = match url.split_once("://") {
        Some(("https", rest)) => (Some(roots.to_owned()), rest, 443),
        Some(("http", rest)) => (None, rest, 80),
        _ => return Err(refused()),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_plain = |text: &str| {
        text.bytes().all(|octet| octet.is_ascii_graphic() && !b"?#@\\".contains(&octet))
    };
    if authority.is_empty() || !is_plain(rest) {
        return Err(refused());
    }
    let authority = with_port(authority, port).ok_or_else(refused)?;
    let address: Option<SocketAddr> = authority.parse().ok();
    if roots.is_none() && address.is_some_and(|address| !address.ip().is_loopback()) {
        return Err(Failure::new(format!("`{url}` would send everything unprotected"))
            .hint("use https; http is for addresses of this host"));
    }
    Ok(Target { authority, prefix: path.trim_end_matches('/').to_owned(), roots, token })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_server_its_port_and_the_path_before_everything() {
        let roots = Path::new("/roots");
        for (url, authority, prefix, is_tls) in [
            ("http://127.0.0.1:8420", "127.0.0.1:8420", "", false),
            ("https://mon.example", "mon.example:443", "", true),
            ("https://mon.example:8420/a/b/", "mon.example:8420", "/a/b", true),
            ("http://[::1]/", "[::1]:80", "", false),
            ("http://[::1]:9", "[::1]:9", "", false),
        ] {
            let found = target("--server", url, roots, None).unwrap();
            assert_eq!((&*found.authority, &*found.prefix), (authority, prefix), "{url}");
            assert_eq!(found.roots.is_some(), is_tls, "{url}");
        }
        for wrong in [
            "",
            "mon.example",
            "ftp://x",
            "http://",
            "http://x:port",
            "http://x:70000",
            "https://user@x",
            "http://x/ y",
            "http://x/\r\nHost: y",
            "http://x?a",
            // Everybody on the way would read it.
            "http://10.1.1.1:8420",
            "http://[2001:db8::1]",
        ] {
            assert!(target("--server", wrong, roots, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_one_word() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "abc-1\n").unwrap();
        assert_eq!(token(Some(&path)).unwrap().as_deref(), Some("abc-1"));
        assert_eq!(token(None).unwrap(), None);
        for wrong in ["", "two words", "a\r\nHost: x"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(token(Some(&path)).is_err(), "{wrong}");
        }
        assert!(token(Some(directory.path())).is_err());
    }
}
