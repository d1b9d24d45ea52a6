//! A connection whose client is given up when it reads nothing for too long.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::counts::{Closed, Counts};
use crate::room::Seat;

/// A stream that fails with [`io::ErrorKind::TimedOut`] when the system takes nothing of what is
/// written for some time, which means that the client reads nothing.
///
/// It lies below TLS and HTTP, and stays below a WebSocket, so that all writes are watched.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    patience: Duration,
    /// Runs while the system takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    /// The place to keep, as long as the connection is not a viewer's.
    seat: Weak<Seat>,
    counts: Arc<Counts>,
}

impl<S> Watched<S> {
    pub(super) fn new(
        stream: S,
        patience: Duration,
        seat: &Arc<Seat>,
        counts: Arc<Counts>,
    ) -> Self {
        Self { stream, patience, stalled: None, seat: Arc::downgrade(seat), counts }
    }

    fn progress(&self) {
        if let Some(seat) = self.seat.upgrade() {
            seat.progress();
        }
    }

    /// What became of a write, or that there was time enough for it.
    fn judged(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            self.progress();
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        self.counts.close(Closed::Unread);
        let text = format!("the client read nothing for {patience:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let of = self.get_mut();
        let read = Pin::new(&mut of.stream).poll_read(context, into);
        if read.is_ready() {
            of.progress();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let of = self.get_mut();
        let written = Pin::new(&mut of.stream).poll_write(context, octets);
        of.judged(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let of = self.get_mut();
        let written = Pin::new(&mut of.stream).poll_write_vectored(context, octets);
        of.judged(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Sockets of this kind have nothing to flush: what was written is the system's.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().build().unwrap().block_on(work)
    }

    /// The server's end of a connection that holds 1 KiB on its way, and the client's end.
    fn pair(patience: Duration, counts: &Arc<Counts>) -> (Watched<DuplexStream>, DuplexStream) {
        let (server, client) = tokio::io::duplex(1_024);
        let counts = Arc::clone(counts);
        let (seat, stalled) = (Weak::new(), None);
        (Watched { stream: server, patience, stalled, seat, counts }, client)
    }

    #[test]
    fn a_client_who_reads_nothing_is_given_up() {
        let counts = Arc::default();
        let error = block_on(async {
            let (mut server, _client) = pair(Duration::from_millis(50), &counts);
            server.write_all(&[7; 4_096]).await.unwrap_err()
        });
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(counts.closed(Closed::Unread), 1);
    }

    #[test]
    fn a_slow_client_gets_everything_however_long_it_takes() {
        let (counts, patience) = (Arc::default(), Duration::from_millis(1_500));
        let pace = Duration::from_millis(100);
        block_on(async {
            let (mut server, mut client) = pair(patience, &counts);
            let sent = tokio::spawn(async move { server.write_all(&[7; 24 << 10]).await });
            let (mut piece, mut read) = ([0; 1_024], 0);
            while read < 24 << 10 {
                tokio::time::sleep(pace).await;
                read += client.read(&mut piece).await.unwrap();
            }
            sent.await.unwrap().unwrap();
        });
        assert_eq!(counts.closed(Closed::Unread), 0, "24 pieces took longer than the patience");
    }
}
