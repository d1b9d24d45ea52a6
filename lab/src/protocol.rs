//! What goes over the one channel between outside and inside, and between a command and its keeper.
//!
//! A frame is a session (32 bits), a kind (8 bits), a length (16 bits), all little endian, and that
//! many bytes. A session is one command; session 0 is the lab itself. Who sends bytes of a stream has
//! a credit of [`WINDOW_BYTES`] and gets back what the other side has passed on, so that a reader that
//! stands still stops its own command and nobody else's, and no queue is longer than its window.
//!
//! What goes to inside has a credit of its own, [`LINE_BYTES`] over all sessions: a serial line's buffer
//! must never be full, since user-mode Linux then stops reading for ever.
//!
//! The channel is a serial line where the inside is a machine of its own: it may say something before
//! it is a plain way for bytes, so the inside begins with [`GREETING`].

use serde::{Deserialize, Serialize};

/// The first bytes from inside.
pub(crate) const GREETING: &[u8] = b"\nmeikyo-lab-1\n";
/// Most bytes of a stream that were sent and not yet passed on.
pub(crate) const WINDOW_BYTES: usize = 64 * 1024;
/// Most bytes on their way to inside that it has not read: half of what a terminal keeps.
pub(crate) const LINE_BYTES: usize = 2 * 1024;
/// Most bytes of one frame.
pub(crate) const FRAME_BYTES_MAX: usize = 16 * 1024;
/// The session of the lab itself.
pub(crate) const LAB: u32 = 0;
const HEADER_BYTES: usize = 7;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To inside: start a command ([`Start`] as JSON, maybe in several frames; the last has
    /// [`Kind::Start`], those before it [`Kind::StartPart`]).
    Start,
    /// To inside: a part of a [`Start`].
    StartPart,
    /// To inside: bytes of standard input.
    Input,
    /// To inside: standard input has ended.
    InputEnd,
    /// To inside: a signal for the command's group of processes, one byte.
    Signal,
    /// To inside: nobody waits for the command any more; it is killed.
    Abandon,
    /// To outside: bytes of standard output.
    Output,
    /// To outside: bytes of standard error.
    Errors,
    /// To outside: the command has ended with this code, one byte.
    Ended,
    /// To outside: the command could not be started; a text.
    Refused,
    /// Both ways: this many bytes of the other's stream were passed on. Stream (8 bits), count
    /// (32 bits).
    Credit,
    /// To outside, session 0: everything is set up; a [`Ready`] as JSON.
    Ready,
    /// To outside, session 0: it cannot be set up; a text.
    Failed,
    /// To inside, session 0: write everything and end.
    PowerOff,
    /// To outside, session 0: this many bytes were read off the channel (32 bits).
    Taken,
    /// Between a command and its keeper, session 0: what runs; a `Status` as JSON comes back.
    Status,
}

const KINDS: [Kind; 16] = [
    Kind::Start,
    Kind::StartPart,
    Kind::Input,
    Kind::InputEnd,
    Kind::Signal,
    Kind::Abandon,
    Kind::Output,
    Kind::Errors,
    Kind::Ended,
    Kind::Refused,
    Kind::Credit,
    Kind::Ready,
    Kind::Failed,
    Kind::PowerOff,
    Kind::Taken,
    Kind::Status,
];

/// A command to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Start {
    /// The host or switch; `None` is none of them: the machine that they are in.
    pub(crate) space: Option<String>,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Environment variables that are set beside those of the lab.
    pub(crate) environment: Vec<(String, String)>,
}

/// The lab is set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The kernel inside.
    pub kernel: String,
    /// How long each step took, in the order in which they were done.
    pub steps: Vec<Step>,
}

/// One step of setting up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The step in words for people.
    pub step: String,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// One message between keeper, inside and clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Which command it belongs to.
    pub(crate) session: u32,
    /// By which the receiver knows what the bytes are.
    pub(crate) kind: Kind,
    /// At most [`FRAME_BYTES_MAX`] bytes.
    pub(crate) bytes: Vec<u8>,
}

/// A frame whose kind is unknown: the two sides are not of the same build, or bytes were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of kind {kind} and {length} bytes is none that this program knows")]
pub(crate) struct BadFrame {
    kind: u8,
    length: usize,
}

/// Adds a frame to what is to be written. Longer bytes are an error of the caller.
pub(crate) fn encode(out: &mut Vec<u8>, session: u32, kind: Kind, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).expect("frames are at most 16 KiB");
    let number = KINDS.iter().position(|&known| known == kind).expect("every kind is listed");
    out.extend_from_slice(&session.to_le_bytes());
    out.push(u8::try_from(number).expect("there are few kinds"));
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Adds a command to be started, in as many frames as it needs.
pub(crate) fn encode_start(out: &mut Vec<u8>, session: u32, start: &Start) {
    let bytes = serde_json::to_vec(start).expect("texts have a JSON form");
    let mut parts = bytes.chunks(FRAME_BYTES_MAX).peekable();
    while let Some(part) = parts.next() {
        let kind = if parts.peek().is_some() { Kind::StartPart } else { Kind::Start };
        encode(out, session, kind, part);
    }
}

/// Adds a credit.
pub(crate) fn encode_credit(out: &mut Vec<u8>, session: u32, stream: u8, count: usize) {
    let count = u32::try_from(count).expect("a window is small");
    let [b0, b1, b2, b3] = count.to_le_bytes();
    encode(out, session, Kind::Credit, &[stream, b0, b1, b2, b3]);
}

/// The stream and the count of a credit; `None` if it is none.
pub(crate) fn decode_credit(bytes: &[u8]) -> Option<(u8, usize)> {
    let &[stream, b0, b1, b2, b3] = bytes else { return None };
    Some((stream, usize::try_from(u32::from_le_bytes([b0, b1, b2, b3])).ok()?))
}

/// Takes the first whole frame off what was read; `None` while it is not whole.
pub(crate) fn decode(read: &mut Vec<u8>) -> Result<Option<Frame>, BadFrame> {
    let Some(&[s0, s1, s2, s3, kind, l0, l1]) = read.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_le_bytes([l0, l1]));
    let Some(&known) = KINDS.get(usize::from(kind)).filter(|_| length <= FRAME_BYTES_MAX) else {
        return Err(BadFrame { kind, length });
    };
    if read.len() < HEADER_BYTES + length {
        return Ok(None);
    }
    let rest = read.split_off(HEADER_BYTES + length);
    let bytes = std::mem::replace(read, rest).split_off(HEADER_BYTES);
    Ok(Some(Frame { session: u32::from_le_bytes([s0, s1, s2, s3]), kind: known, bytes }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_are_read_back_however_they_are_cut(
            frames in proptest::collection::vec(
                (any::<u32>(), 0..KINDS.len(), proptest::collection::vec(any::<u8>(), 0..300)),
                0..20,
            ),
            cut in 1_usize..64,
        ) {
            let mut bytes = Vec::new();
            for (session, kind, content) in &frames {
                encode(&mut bytes, *session, KINDS[*kind], content);
            }
            let (mut read, mut got) = (Vec::new(), Vec::new());
            for piece in bytes.chunks(cut) {
                read.extend_from_slice(piece);
                while let Some(frame) = decode(&mut read).unwrap() {
                    got.push((frame.session, frame.kind, frame.bytes));
                }
            }
            let sent: Vec<_> =
                frames.into_iter().map(|(session, kind, bytes)| (session, KINDS[kind], bytes)).collect();
            prop_assert_eq!(got, sent);
            prop_assert!(read.is_empty());
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            while let Ok(Some(_)) = decode(&mut bytes) {}
        }
    }
}
