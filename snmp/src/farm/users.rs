//! Users of simulated agents. Their passwords are known to everybody: they guard nothing.

use meikyo_cluster::{AuthProtocol, PrivProtocol};
use thiserror::Error;

use crate::agent::AgentUser;
use crate::credentials::{Credentials, CredentialsError};

/// The user that every farm has.
pub const USER: &str = "meikyo";
/// The authentication password of every simulated user.
pub const AUTH_PASSWORD: &str = "simulated-authentication";
/// The privacy password of every simulated user.
pub const PRIVACY_PASSWORD: &str = "simulated-privacy";

/// A text that describes no user.
#[derive(Debug, Error)]
pub enum SimulatedUserError {
    /// Not `NAME[:AUTH[:PRIVACY]]`.
    #[error(
        "`{0}` describes no user; write `NAME`, `NAME:AUTH` or `NAME:AUTH:PRIVACY` with AUTH one of \
         MD5, SHA-1, SHA-224, SHA-256, SHA-384, SHA-512 and PRIVACY one of AES-128, AES-256"
    )]
    Text(String),
    /// A name that SNMPv3 does not allow.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
}

/// The user that `text`, `NAME[:AUTH[:PRIVACY]]`, describes; it may write.
///
/// # Errors
///
/// [`SimulatedUserError`] with what is allowed.
pub fn simulated_user(text: &str) -> Result<AgentUser, SimulatedUserError> {
    let wrong = || SimulatedUserError::Text(text.into());
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or("");
    let auth = parts.next().map(str::parse::<AuthProtocol>).transpose().map_err(|_| wrong())?;
    let privacy = parts.next().map(str::parse::<PrivProtocol>).transpose().map_err(|_| wrong())?;
    let auth = auth.map(|protocol| (protocol, AUTH_PASSWORD));
    let privacy = privacy.map(|protocol| (protocol, PRIVACY_PASSWORD));
    let credentials = Credentials::from_passwords(name, auth, privacy)?;
    if parts.next().is_some() {
        return Err(wrong());
    }
    AgentUser::new(credentials, true).ok_or_else(wrong)
}

/// The user that every farm has.
pub(super) fn default_user() -> AgentUser {
    simulated_user("meikyo:SHA-256:AES-128").expect("the text is one that the doc allows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_described_by_name_and_protocols() {
        assert_eq!(simulated_user("m:SHA-512:AES-256").unwrap().name(), "m");
        assert_eq!(simulated_user("m").unwrap().name(), "m");
        for text in ["m:SHA", "m:SHA-1:DES", "m:SHA-1:AES-128:x", ""] {
            assert!(simulated_user(text).is_err(), "{text}");
        }
    }
}
