//! A relay between senders and receiver whose connections can be cut.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Both ends of every connection that goes through.
type Open = Arc<Mutex<Vec<TcpStream>>>;

pub(crate) struct Relay {
    port: u16,
    open: Open,
}

impl Relay {
    /// Listens at a port of its own for as long as the test runs.
    pub(crate) fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let open = Open::default();
        let known = Arc::clone(&open);
        std::thread::spawn(move || {
            for from in listener.incoming() {
                let from = from.unwrap();
                // While the receiver is away nobody is connected.
                let Ok(to) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let ends = [&from, &to].map(|end| end.try_clone().unwrap());
                known.lock().unwrap().extend(ends);
                let (back_from, back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
                std::thread::spawn(move || carry(from, to));
                std::thread::spawn(move || carry(back_from, back_to));
            }
        });
        Self { port, open }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Breaks all connections; what is under way is gone.
    pub(crate) fn cut(&self) {
        for end in self.open.lock().unwrap().drain(..) {
            // It may have ended already.
            drop(end.shutdown(Shutdown::Both));
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut octets = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut octets) {
        if count == 0 || to.write_all(&octets[..count]).is_err() {
            break;
        }
    }
    for end in [from, to] {
        drop(end.shutdown(Shutdown::Both));
    }
}
