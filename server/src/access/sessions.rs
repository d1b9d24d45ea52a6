//! Sessions: what a browser holds instead of the token.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::token::random_text;

/// Most sessions at a time; the oldest ends when another one begins.
const SESSIONS_MAX: usize = 256;

/// The sessions of browsers that showed a token, in memory only: a new start asks again.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<String>>);

impl Sessions {
    /// Begins a session.
    pub(crate) fn begin(&self) -> String {
        let session = random_text();
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() == SESSIONS_MAX {
            sessions.pop_front();
        }
        sessions.push_back(session.clone());
        session
    }

    /// Whether there is such a session.
    pub(crate) fn holds(&self, session: &str) -> bool {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // All are compared, so that the time tells nothing.
        sessions.iter().fold(false, |found, own| found | same(own.as_bytes(), session.as_bytes()))
    }
}

/// Whether octets agree, in a time that depends on their number only.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_session_ends_when_there_are_too_many() {
        let sessions = Sessions::default();
        let first = sessions.begin();
        assert!(sessions.holds(&first) && !sessions.holds("") && !sessions.holds("x"));
        let others: Vec<_> = (0..SESSIONS_MAX).map(|_| sessions.begin()).collect();
        assert!(!sessions.holds(&first));
        assert!(others.iter().all(|session| sessions.holds(session)));
    }
}
