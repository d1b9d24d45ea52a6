//! The viewers of one recording, and what they have in common.

use std::sync::Arc;

use meikyo_live::{Follower, Opened};

use super::encoded::SharedMessages;

/// All viewers of one recording.
#[derive(Debug)]
pub(crate) struct Audience {
    /// Follows the recording while one of them looks at what is new.
    pub(crate) follower: Follower,
    /// Messages with rows, each made once for all who see the same.
    pub(super) messages: SharedMessages,
}

impl Audience {
    /// The viewers that a recording will have.
    pub(crate) fn new(opened: Arc<Opened>) -> Self {
        Self { follower: Follower::new(opened), messages: SharedMessages::default() }
    }

    /// The recording that they look at.
    pub(crate) fn opened(&self) -> &Arc<Opened> {
        self.follower.opened()
    }
}
