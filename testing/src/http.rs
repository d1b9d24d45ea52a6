//! HTTP/1 as it is on the wire, so that a test can also send what no library would.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// How long a test waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    /// The status; 0 where there was no answer.
    pub status: u16,
    /// The first line and the headers.
    pub head: String,
    /// The body, put together where it came in chunks.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as a text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a header; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        let found = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = found.filter(|(of, _)| of.eq_ignore_ascii_case(name));
        found.next().map_or("", |(_, value)| value.trim())
    }
}

/// Asks whoever listens at `address`, as `127.0.0.1:8420`, over a connection of its own.
///
/// # Errors
/// If nobody listens there, or the connection breaks before the request was sent.
pub fn ask(address: &str, method: &str, path: &str, body: &str) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    Ok(read_answer(stream))
}

/// Reads an answer whose connection ends with it.
///
/// # Panics
/// If the head is no text, or a chunked body is cut.
pub fn read_answer(stream: impl Read) -> Answer {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        let read = reader.read_line(&mut line).expect("the head can be read");
        if read == 0 || line == "\r\n" {
            break;
        }
        head += &line;
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    // A refusal can close the connection before all of a request was sent; what came counts.
    let ended = reader.read_to_end(&mut body);
    let answer = Answer { status, head, body };
    if answer.header("transfer-encoding") == "chunked" {
        ended.expect("a chunked body has an end");
        let body = unchunked(&answer.body);
        return Answer { body, ..answer };
    }
    answer
}

/// The octets of a chunked body (RFC 9112, section 7.1).
fn unchunked(mut octets: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = octets.windows(2).position(|pair| pair == b"\r\n").expect("a chunk has a size");
        let length = std::str::from_utf8(&octets[..end]).expect("a size is text");
        let length = usize::from_str_radix(length, 16).expect("a size is hexadecimal");
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&octets[end + 2..end + 2 + length]);
        octets = &octets[end + 4 + length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_chunks_are_read() {
        let octets = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y z\r\n\r\n\
                       4\r\nWiki\r\n6\r\npedia \r\n0\r\n\r\n";
        let answer = read_answer(&octets[..]);
        assert_eq!((answer.status, answer.header("x")), (200, "y z"));
        assert_eq!(answer.text(), "Wikipedia ");
        assert_eq!(read_answer(&b""[..]).status, 0);
    }
}
