use std::net::{Ipv6Addr, UdpSocket};

use meikyo_units::{Bytes, Nanos};

use super::*;
use crate::{options, readable, wait};

fn receive(batch: &mut ReceiveBatch, socket: &UdpSocket) -> usize {
    let ready = wait(&mut [readable(socket)], Some(Nanos::from_secs(5))).unwrap();
    assert_eq!(ready, 1, "nothing arrived within 5 s");
    batch.receive(socket).unwrap()
}

/// What is sent in batches is what the standard library receives, and the other way round.
#[test]
fn datagrams_of_all_lengths_arrive_whole_and_with_their_sender() {
    for ip in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), (Ipv6Addr::LOCALHOST, 0).into()] {
        let Ok(peer) = UdpSocket::bind(ip) else {
            meikyo_testing::skipped("no IPv6 on loopback");
            continue;
        };
        let socket = UdpSocket::bind(ip).unwrap();
        let to = Address::from(peer.local_addr().unwrap());
        let texts: Vec<Vec<u8>> = (0..200_u8).map(|n| vec![n; usize::from(n)]).collect();
        let mut sends = SendBatch::default();
        for text in &texts {
            sends.octets_mut().extend_from_slice(text);
            sends.end_datagram(&to);
        }
        assert_eq!((sends.len(), sends.address(7)), (200, peer.local_addr().unwrap()));
        let mut batch = ReceiveBatch::new(256);
        let mut buffer = [0; 256];
        let (mut from, mut seen) = (0, Vec::new());
        while from < texts.len() {
            let sent = sends.send(&socket, from).unwrap();
            assert_eq!(sent, (texts.len() - from).min(BATCH));
            for text in &texts[from..from + sent] {
                let (length, sender) = peer.recv_from(&mut buffer).unwrap();
                assert_eq!(&buffer[..length], text);
                peer.send_to(text, sender).unwrap();
            }
            let before = seen.len();
            while seen.len() < before + sent {
                receive(&mut batch, &socket);
                for datagram in batch.datagrams() {
                    assert_eq!(datagram.from, peer.local_addr().unwrap());
                    assert_eq!(
                        (datagram.received, datagram.drops, datagram.to),
                        (None, None, None)
                    );
                    seen.push(datagram.octets.to_vec());
                }
            }
            from += sent;
        }
        assert_eq!(seen, texts);
        assert_eq!(batch.receive(&socket).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}

#[test]
fn a_batch_that_grows_after_it_was_sent_is_laid_out_anew() {
    let (socket, peer) =
        (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let to = Address::from(peer.local_addr().unwrap());
    let mut sends = SendBatch::default();
    let mut buffer = [0; 4_096];
    for length in [10, 1_000, 4_000] {
        sends.octets_mut().extend(std::iter::repeat_n(9, length));
        sends.end_datagram(&to);
        let newest = sends.len() - 1;
        assert_eq!(sends.send(&socket, newest).unwrap(), 1);
        assert_eq!(peer.recv(&mut buffer).unwrap(), length);
        assert!(buffer[..length].iter().all(|&octet| octet == 9));
    }
    // One without octets, which goes behind those that were laid out.
    sends.end_datagram(&to);
    assert_eq!(sends.send(&socket, 3).unwrap(), 1);
    assert_eq!(peer.recv(&mut buffer).unwrap(), 0);
    // Whoever appends may move the octets that the kernel is pointed at.
    sends.octets_mut();
    assert!(!sends.is_laid_out);
    sends.clear();
    assert!(sends.is_empty());
}

#[test]
fn datagrams_say_where_they_went_and_leave_from_there() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    options::tell_destinations(&socket).unwrap();
    options::stamp_arrivals(&socket).unwrap();
    let port = socket.local_addr().unwrap().port();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut batch, mut answers) = (ReceiveBatch::new(64), SendBatch::default());
    for last in [1_u8, 7, 254] {
        let agent = Ipv4Addr::new(127, 1, 2, last);
        let before = WallTime::now();
        client.send_to(&[last; 3], (agent, port)).unwrap();
        assert_eq!(receive(&mut batch, &socket), 1);
        answers.clear();
        for datagram in batch.datagrams() {
            assert_eq!((datagram.to, &*datagram.octets), (Some(agent), &[last; 3][..]));
            let received = datagram.received.expect("arrivals are stamped");
            assert!(before <= received && received <= WallTime::now());
            answers.octets_mut().extend_from_slice(datagram.octets);
            answers.end_datagram_from(agent, &Address::from(datagram.from));
        }
        assert_eq!(answers.send(&socket, 0).unwrap(), 1);
        let mut buffer = [0; 8];
        let (length, from) = client.recv_from(&mut buffer).unwrap();
        assert_eq!((length, from), (3, (agent, port).into()));
    }
}

#[test]
fn drops_are_counted_and_long_datagrams_are_cut() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    options::enlarge_receive_buffer(&socket, Bytes::new(4_096)).unwrap();
    options::count_drops(&socket).unwrap();
    let to = socket.local_addr().unwrap();
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..200 {
        peer.send_to(&[0; 100], to).unwrap();
    }
    let mut batch = ReceiveBatch::new(64);
    let mut read = 0;
    while let Ok(count) = batch.receive(&socket) {
        assert!(batch.datagrams().all(|datagram| datagram.cut && datagram.octets.len() == 64));
        read += count;
    }
    assert!(read < 200, "a buffer of 4 kB cannot hold 200 datagrams");
    peer.send_to(&[0; 64], to).unwrap();
    assert_eq!(receive(&mut batch, &socket), 1);
    let last = batch.datagrams().next().unwrap();
    assert_eq!((last.drops.map(|drops| drops as usize), last.cut), (Some(200 - read), false));
}
