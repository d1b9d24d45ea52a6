//! What a token allows, and whether rows keep to it.

use meikyo_recording::PackedRows;
use meikyo_units::glob;

use super::damaged;
use crate::wire::{Code, Refusal};

/// The column in which rows say which host they are of.
const HOST_COLUMN: &str = "host";

/// What a token allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// Patterns of names of senders, of which one must fit.
    pub senders: Vec<String>,
}

impl Permit {
    /// Whoever it is.
    pub fn anybody() -> Self {
        Self { senders: vec!["*".into()] }
    }

    pub(super) fn allows(&self, sender: &str) -> bool {
        self.senders.iter().any(|pattern| glob::matches(pattern, sender))
    }

    /// Whether everybody is allowed to say everything.
    fn is_for_all(&self) -> bool {
        self.senders.iter().any(|pattern| pattern == "*")
    }

    /// Whether rows of a sender may be those of a host: one that the token names, as it is or in the
    /// sender's cluster, whose name stands before the last colon of the sender's.
    fn allows_host(&self, sender: &str, host: &str) -> bool {
        let cluster = sender.rsplit_once(':').map(|(cluster, _)| cluster);
        self.allows(host) || cluster.is_some_and(|of| self.allows(&format!("{of}:{host}")))
    }
}

/// Rows of a sender whose token names hosts are of these hosts.
pub(super) fn check_hosts(permit: &Permit, sender: &str, rows: &PackedRows) -> Result<(), Refusal> {
    if permit.is_for_all() {
        return Ok(());
    }
    let hosts = rows.texts_of(HOST_COLUMN).map_err(|error| damaged(&error.to_string()))?;
    match hosts.iter().find(|host| !permit.allows_host(sender, host)) {
        None => Ok(()),
        Some(host) => {
            let allowed = permit.senders.join(", ");
            let text =
                format!("`{sender}` sent rows of host `{host}`, and its token is for {allowed}");
            Err(Refusal { code: Code::Forbidden, text })
        }
    }
}
