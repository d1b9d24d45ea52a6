//! The few plain requests that a bench has of the server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use meikyo_console::failure::Failure;

use crate::live::server_process::ServerProcess;

/// The body of what the server has at a path below its own.
pub(crate) fn get(server: &ServerProcess, path: &str) -> Result<Vec<u8>, Failure> {
    get_from(server.authority(), path)
}

/// The body of what whoever listens at `authority` has at a path.
pub(crate) fn get_from(authority: &str, path: &str) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect(authority)?;
    // HTTP/1.0 asks for the body as it is and for the end of the connection behind it.
    write!(stream, "GET /{path} HTTP/1.0\r\nHost: {authority}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|octets| octets == b"\r\n\r\n");
    let end = end.ok_or_else(|| Failure::new(format!("`/{path}`: no HTTP answer")))?;
    if !answer.starts_with(b"HTTP/1.0 200") && !answer.starts_with(b"HTTP/1.1 200") {
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        return Err(Failure::new(format!("`/{path}`: {head}")));
    }
    Ok(answer.split_off(end + 4))
}

/// Octets of the scripts that the page loads first, compressed as a server would (`gzip -9`).
pub(super) fn first_scripts_gzip_bytes(server: &ServerProcess) -> Result<usize, Failure> {
    let page = String::from_utf8_lossy(&get(server, "")?).into_owned();
    let mut total = 0;
    for name in scripts_of(&page) {
        total += gzipped(get(server, name.trim_start_matches("./").trim_start_matches('/'))?)?;
    }
    if total == 0 {
        return Err(Failure::new("the page has no script: it was built without `web/dist`"));
    }
    Ok(total)
}

/// The addresses of the scripts, preloaded ones included, in a page's text.
fn scripts_of(page: &str) -> impl Iterator<Item = &str> {
    let quoted = page.split(['"', '\'']).skip(1).step_by(2);
    quoted.filter(|text| text.ends_with(".js"))
}

fn gzipped(octets: Vec<u8>) -> Result<usize, Failure> {
    let mut gzip = Command::new("gzip")
        .args(["-9", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = gzip.stdin.take().expect("standard input is piped");
    let writer = std::thread::spawn(move || input.write_all(&octets));
    let output = gzip.wait_with_output()?;
    writer.join().map_err(|_| Failure::new("the thread that feeds gzip has panicked"))??;
    Ok(output.stdout.len())
}

#[cfg(test)]
mod tests {
    #[test]
    fn scripts_and_preloads_are_found() {
        let page = r#"<link rel="modulepreload" href="./assets/a.js"><script type="module" src="./assets/b-1.js"></script><link href="c.css">"#;
        let found: Vec<_> = super::scripts_of(page).collect();
        assert_eq!(found, ["./assets/a.js", "./assets/b-1.js"]);
    }
}
