//! Why an agent is not heard, and what a person does about that.

use std::error::Error;

use meikyo_cluster::{Access, Device};

use super::ProbeError;
use crate::client::{ReceiveError, RequestError, WalkError};
use crate::credentials::CredentialsError;
use crate::pdu::ErrorStatus;
use crate::poll::Reason;
use crate::survey::SurveyError;
use crate::usm::ReportKind;

/// Why a device cannot be measured at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What is wrong, with its causes.
    pub text: String,
    /// What to do next.
    pub remedy: String,
}

impl Trouble {
    /// The credentials cannot be used; nothing was sent.
    pub fn of_credentials(error: &CredentialsError) -> Self {
        let remedy = "the secret stands behind `env:NAME` or in `file:PATH`, relative to the \
                      cluster file: set it, or correct the reference";
        Self { text: chain(error), remedy: remedy.to_owned() }
    }

    /// A survey did not get through to the device.
    pub fn of_survey(device: &Device, error: &SurveyError) -> Self {
        let remedy = match error {
            SurveyError::Silent { unreadable: 0, .. } => silent(device),
            SurveyError::Silent { .. } => damaged(device),
            SurveyError::Refused(ReceiveError::Refused(report)) => refused(device, *report),
            SurveyError::Walk(WalkError::Status { status, .. }) if is_denial(*status) => {
                denied(device)
            }
            SurveyError::Refused(_) | SurveyError::Walk(_) => broken(),
        };
        let text = match error {
            SurveyError::Silent { .. } => format!("{} at {}", chain(error), device.address),
            _ => chain(error),
        };
        Self { text, remedy }
    }

    /// A probe did not get through to the device.
    pub fn of_probe(device: &Device, error: &ProbeError) -> Self {
        let remedy = match error {
            ProbeError::Request(RequestError::Timeout { unreadable: 0, .. }) => silent(device),
            ProbeError::Request(RequestError::Timeout { .. }) => damaged(device),
            ProbeError::Request(RequestError::NothingListens { .. }) => format!(
                "start an agent there (`systemctl start snmpd`), or correct the address: its \
                 `agentAddress` must hold {}",
                device.address
            ),
            ProbeError::Request(RequestError::Refused {
                source: ReceiveError::Refused(report),
                ..
            }) => refused(device, *report),
            ProbeError::Request(
                RequestError::Status { status, .. }
                | RequestError::Walk { source: WalkError::Status { status, .. }, .. },
            ) if is_denial(*status) => denied(device),
            ProbeError::Request(_) => broken(),
            ProbeError::Connect(_) => "the system gives no socket: see `ulimit -n`".to_owned(),
            ProbeError::Cpu(_) => {
                "name the process of the agent on this host: `pidof snmpd`".to_owned()
            }
        };
        let text = match error {
            // Answers came: not to be told that there are none.
            ProbeError::Request(error @ RequestError::Timeout { unreadable: 1.., .. }) => {
                chain(error)
            }
            _ => chain(error),
        };
        Self { text, remedy }
    }

    /// A device fails again and again while it is measured; no answer comes, or `reason` is why
    /// those that come are errors.
    pub fn of_poll(device: &Device, reason: Option<Reason>) -> Self {
        let address = device.address;
        let Some(reason) = reason else {
            return Self { text: format!("no answer from {address}"), remedy: silent(device) };
        };
        let report = match reason {
            Reason::UnknownUser => Some(ReportKind::UnknownUserName),
            Reason::WrongDigest => Some(ReportKind::WrongDigest),
            Reason::DecryptionError => Some(ReportKind::DecryptionError),
            Reason::UnsupportedSecurity => Some(ReportKind::UnsupportedSecurityLevel),
            Reason::NotInTimeWindow => Some(ReportKind::NotInTimeWindow),
            _ => None,
        };
        if let Some(report) = report {
            let text = format!("the agent at {address} refuses: {report}");
            return Self { text, remedy: refused(device, report) };
        }
        match reason {
            Reason::Unreachable => Self {
                text: format!("the system does not send to {address}"),
                remedy: format!(
                    "correct the address, or the route: `ip route get {}`",
                    address.ip()
                ),
            },
            Reason::BadPacket => Self {
                text: format!("the answers from {address} cannot be read"),
                remedy: damaged(device),
            },
            Reason::NotAuthorized => Self {
                text: format!("the agent at {address} refuses access (authorizationError)"),
                remedy: denied(device),
            },
            _ => Self {
                text: format!("the answers from {address} are errors ({})", reason.word()),
                remedy: broken(),
            },
        }
    }
}

/// An error with its causes, once each.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text += ": ";
            text += &next;
        }
        cause = error.source();
    }
    text
}

fn silent(device: &Device) -> String {
    let credential = match &device.snmp.access {
        Access::Unstated => "the cluster file gives no SNMP settings for it".to_owned(),
        Access::V1 { community } | Access::V2c { community } => format!(
            "the community in `{community}` is another (agents leave a wrong one unanswered)"
        ),
        Access::V3 { user, privacy: Some((_, secret)), .. } => format!(
            "it does not speak SNMPv3 to `{user}`, or `{secret}` or the privacy protocol is another \
             there (some agents leave a wrong one unanswered)"
        ),
        Access::V3 { user, .. } => format!("it does not speak SNMPv3 to `{user}`"),
    };
    format!(
        "the host is down, no agent listens at {}, a firewall is between, or {credential}; \
         `meikyo config snmpd` prints the snmpd.conf lines that it needs",
        device.address
    )
}

fn refused(device: &Device, report: ReportKind) -> String {
    let Access::V3 { user, auth, privacy } = &device.snmp.access else { return broken() };
    let with = |secret: Option<&meikyo_cluster::Secret>| {
        secret.map_or_else(|| "the password".to_owned(), |secret| format!("`{secret}`"))
    };
    match report {
        ReportKind::UnknownUserName => {
            format!("the agent has no user `{user}`: `meikyo config snmpd` prints its createUser")
        }
        ReportKind::WrongDigest => format!(
            "{} or the authentication protocol of `{user}` is another at the agent",
            with(auth.as_ref().map(|(_, secret)| secret))
        ),
        ReportKind::DecryptionError => format!(
            "{} or the privacy protocol of `{user}` is another at the agent",
            with(privacy.as_ref().map(|(_, secret)| secret))
        ),
        // usmStatsUnsupportedSecLevels (RFC 3414, section 3.2, step 5).
        ReportKind::UnsupportedSecurityLevel if privacy.is_none() => more_security(device, user),
        ReportKind::UnsupportedSecurityLevel => format!(
            "the agent's user `{user}` has no such authentication or encryption: compare its \
             createUser with the cluster file"
        ),
        ReportKind::NotInTimeWindow | ReportKind::UnknownEngineId => {
            "the agent changes its engine id or its clock all the time: look at its log".to_owned()
        }
    }
}

/// Whether an error status says that access control gives nothing (RFC 3416, section 4.2; RFC 3415).
fn is_denial(status: i32) -> bool {
    status == ErrorStatus::AuthorizationError.code() || status == ErrorStatus::NoAccess.code()
}

fn denied(device: &Device) -> String {
    match &device.snmp.access {
        Access::Unstated => broken(),
        Access::V3 { user, privacy: None, .. } => more_security(device, user),
        Access::V3 { user, .. } => format!(
            "the agent shows `{user}` nothing: `meikyo config snmpd` prints the view and the \
             rouser that it needs"
        ),
        Access::V1 { community } | Access::V2c { community } => format!(
            "the agent shows the community in `{community}` nothing: `meikyo config snmpd` prints \
             the view and the rocommunity that it needs"
        ),
    }
}

/// The agent serves the user at a higher level of security than the cluster file asks at.
fn more_security(device: &Device, user: &str) -> String {
    let Access::V3 { auth, .. } = &device.snmp.access else { return broken() };
    let (level, keys) = if auth.is_some() {
        ("without encryption (authNoPriv)", "`privacy`")
    } else {
        ("without authentication and encryption (noAuthNoPriv)", "`auth` and `privacy`")
    };
    format!(
        "`{user}` is asked {level}, and the agent wants more, as a rule authPriv: give {keys} beside \
         `user` in the cluster file, such as privacy = {{ protocol = \"AES-128\", password = \
         \"file:PATH\" }}, with the protocols and passwords of its createUser"
    )
}

fn damaged(device: &Device) -> String {
    format!(
        "something on the way cuts or changes packets (a firewall, an MTU), or the agent itself is \
         broken: look at them with `tcpdump -ni any -X host {}`, and at its log",
        device.address.ip()
    )
}

fn broken() -> String {
    "the agent's answers cannot be used: look at its log, and try another SNMP version".to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn device(snmp: &str) -> Device {
        let text = format!(
            "name = \"test\"\nmeasure = [\"load\"]\nsnmp = {{ {snmp} }}\n[[hosts]]\n\
             name = \"node1\"\naddress = \"10.0.0.7\"\n"
        );
        meikyo_cluster::parse(&text, Path::new("cluster.toml")).unwrap().devices.remove(0)
    }

    #[test]
    fn silence_names_the_reference_of_the_community_and_not_the_community() {
        let device = device("version = \"2c\", community = \"env:COMMUNITY\"");
        let error = SurveyError::Silent { attempts: 3, unreadable: 0, last: None };
        let trouble = Trouble::of_survey(&device, &error);
        assert_eq!(trouble.text, "no answer from the agent after 3 attempts at 10.0.0.7:161");
        assert!(trouble.remedy.contains("`env:COMMUNITY`"), "{}", trouble.remedy);
    }

    #[test]
    fn answers_that_cannot_be_read_are_no_silence() {
        let device = device("version = \"2c\", community = \"env:COMMUNITY\"");
        let error = SurveyError::Silent { attempts: 3, unreadable: 3, last: None };
        let trouble = Trouble::of_survey(&device, &error);
        assert!(trouble.text.starts_with("3 answers came, and none could be read"), "{trouble:?}");
        assert!(trouble.remedy.contains("cuts or changes packets"), "{trouble:?}");
        assert!(!trouble.remedy.contains("host is down"), "{trouble:?}");
        assert_eq!(Trouble::of_poll(&device, Some(Reason::BadPacket)).remedy, trouble.remedy);
    }

    #[test]
    fn silence_under_v3_names_the_privacy_password_too() {
        let device = device(
            "version = \"3\", user = \"meikyo\", auth = { protocol = \"SHA-256\", password = \
             \"file:auth\" }, privacy = { protocol = \"AES-128\", password = \"file:privacy\" }",
        );
        let trouble = Trouble::of_poll(&device, None);
        assert_eq!(trouble.text, "no answer from 10.0.0.7:161");
        assert!(trouble.remedy.contains("`file:privacy`"), "{trouble:?}");
        let refused = Trouble::of_poll(&device, Some(Reason::DecryptionError));
        assert!(refused.remedy.contains("`file:privacy`"), "{refused:?}");
    }

    #[test]
    fn a_refused_user_is_told_which_secret_is_wrong() {
        let device = device(
            "version = \"3\", user = \"meikyo\", auth = { protocol = \"SHA-256\", password = \
             \"file:auth\" }",
        );
        let error = SurveyError::Refused(ReceiveError::Refused(ReportKind::WrongDigest));
        let trouble = Trouble::of_survey(&device, &error);
        assert!(trouble.remedy.contains("`file:auth`"), "{}", trouble.remedy);
        let error = SurveyError::Refused(ReceiveError::Refused(ReportKind::UnknownUserName));
        assert!(Trouble::of_survey(&device, &error).remedy.contains("no user `meikyo`"));
    }

    #[test]
    fn a_level_that_is_too_low_names_the_keys_that_are_missing() {
        let plain = device("version = \"3\", user = \"meikyo\"");
        let signed = device(
            "version = \"3\", user = \"meikyo\", auth = { protocol = \"SHA-256\", password = \
             \"file:auth\" }",
        );
        let told = |device: &Device| {
            let status = ErrorStatus::AuthorizationError.code();
            let oid = crate::Oid::from_slice(&[1, 3]);
            let address = device.address;
            let report = ReceiveError::Refused(ReportKind::UnsupportedSecurityLevel);
            let walk = WalkError::Status { status, oid: oid.clone() };
            let probed = RequestError::Status { address, status, oid: Some(oid) };
            [
                Trouble::of_survey(device, &SurveyError::Refused(report)),
                Trouble::of_survey(device, &SurveyError::Walk(walk)),
                Trouble::of_probe(device, &ProbeError::Request(probed)),
                Trouble::of_poll(device, Some(Reason::NotAuthorized)),
                Trouble::of_poll(device, Some(Reason::UnsupportedSecurity)),
            ]
        };
        for trouble in told(&plain) {
            assert!(trouble.remedy.contains("noAuthNoPriv"), "{trouble:?}");
            assert!(trouble.remedy.contains("wants more, as a rule authPriv"), "{trouble:?}");
            assert!(trouble.remedy.contains("give `auth` and `privacy`"), "{trouble:?}");
        }
        for trouble in told(&signed) {
            assert!(trouble.remedy.contains("(authNoPriv)"), "{trouble:?}");
            assert!(trouble.remedy.contains("give `privacy` beside `user`"), "{trouble:?}");
        }
        let community = device("version = \"2c\", community = \"env:C\"");
        let trouble = Trouble::of_poll(&community, Some(Reason::NotAuthorized));
        assert!(trouble.remedy.contains("rocommunity"), "{trouble:?}");
    }
}
