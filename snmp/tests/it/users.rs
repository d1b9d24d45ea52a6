//! The users and communities of the agent that most tests ask.

use std::net::Ipv4Addr;

use crate::snmpd::Snmpd;

pub(crate) const AUTH_PASSWORD: &str = "authentication";
pub(crate) const PRIV_PASSWORD: &str = "encryption word";

/// USM users of the agent: name, authentication and privacy as net-snmp calls them.
pub(crate) const USERS: [(&str, &str, &str); 7] = [
    ("md5", "MD5", "AES"),
    ("sha1", "SHA", "AES"),
    ("sha224", "SHA-224", "AES"),
    ("sha256", "SHA-256", "AES"),
    ("sha384", "SHA-384", "AES"),
    ("sha512", "SHA-512", "AES-256"),
    ("sha1long", "SHA", "AES-256"),
];

impl Snmpd {
    /// An agent with [`USERS`], and the communities `public` to read and `private` to write.
    pub(crate) fn start() -> Option<Self> {
        let mut lines = vec![
            "rocommunity public".to_owned(),
            "rwcommunity private".to_owned(),
            "sysContact a person".to_owned(),
            "sysServices 72".to_owned(),
            "createUser plain".to_owned(),
            "rouser plain noauth".to_owned(),
        ];
        for (user, auth, privacy) in USERS {
            lines.push(format!(
                "createUser {user} {auth} \"{AUTH_PASSWORD}\" {privacy} \"{PRIV_PASSWORD}\""
            ));
            lines.push(format!("rwuser {user} auth"));
        }
        Self::start_with(&lines.join("\n"), Ipv4Addr::LOCALHOST)
    }
}
