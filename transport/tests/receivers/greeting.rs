//! A receiver of one sender, as far as it greets.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use meikyo_transport::wire::{Message, Welcome};

/// The connection of the next sender, which is welcome.
pub(crate) fn greet(listener: &TcpListener) -> TcpStream {
    let (mut socket, _) = listener.accept().unwrap();
    let mut request = [0; 4_096];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        assert!(socket.read(&mut request).unwrap() > 0);
    }
    let (version, window_bytes, has) = (1, 8 << 20, Vec::new());
    let welcome = Message::Welcome(Welcome { version, window_bytes, has }).encoded();
    let upgraded = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: meikyo-rows/1\r\n\r\n";
    socket.write_all(&[&upgraded[..], &welcome].concat()).unwrap();
    socket
}
