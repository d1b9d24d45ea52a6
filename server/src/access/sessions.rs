//! Sessions: what a browser holds instead of the token.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::token::{Hash, random_text};

/// Most sessions at a time; the oldest ends when another one begins.
const SESSIONS_MAX: usize = 256;

/// The sessions of browsers that showed a token, in memory only: a new start asks again.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<Session>>);

#[derive(Debug)]
struct Session {
    secret: String,
    /// The hash of the token that was shown; `None` where none is asked for.
    of: Option<Hash>,
}

impl Sessions {
    /// Begins a session of somebody who showed the token with this hash; what the browser keeps.
    pub(crate) fn begin(&self, of: Option<Hash>) -> String {
        let secret = random_text();
        let mut sessions = self.0.lock().expect("nothing that holds the sessions can panic");
        if sessions.len() == SESSIONS_MAX {
            sessions.pop_front();
        }
        sessions.push_back(Session { secret: secret.clone(), of });
        secret
    }

    /// The hash of the token that a session began with; `None` when there is no such session.
    pub(crate) fn holder(&self, secret: &str) -> Option<Hash> {
        let sessions = self.0.lock().expect("nothing that holds the sessions can panic");
        // All are compared, so that the time tells nothing.
        let found = sessions.iter().fold(None, |found, own| {
            if same(own.secret.as_bytes(), secret.as_bytes()) { Some(own) } else { found }
        });
        found.and_then(|session| session.of.clone())
    }
}

/// Whether octets agree, in a time that depends on their number only.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::token;

    #[test]
    fn the_oldest_session_ends_when_there_are_too_many() {
        let sessions = Sessions::default();
        let of = token::taken_for_viewing();
        let begin = || sessions.begin(Some(Hash::clone(&of)));
        let first = begin();
        assert_eq!(sessions.holder(&first), Some(Hash::clone(&of)));
        assert!(sessions.holder("").is_none() && sessions.holder("x").is_none());
        let others: Vec<_> = (0..SESSIONS_MAX).map(|_| begin()).collect();
        assert!(sessions.holder(&first).is_none());
        assert!(others.iter().all(|session| sessions.holder(session).is_some()));
    }
}
