//! The client against net-snmp, values compared with those that net-snmp's own tools read.

use meikyo_cluster::{AuthProtocol, PrivProtocol};
use meikyo_snmp::client::ReceiveError;
use meikyo_snmp::usm::ReportKind;
use meikyo_snmp::{Client, ClientOptions, Credentials, Oid, RequestError, Value};
use meikyo_units::Nanos;

use crate::snmpd::Snmpd;
use crate::users::{AUTH_PASSWORD, PRIV_PASSWORD, USERS};

const OPTIONS: ClientOptions = ClientOptions { timeout: Nanos::from_secs(3), retries: 2 };
const HASTY: ClientOptions = ClientOptions { timeout: Nanos::from_millis(200), retries: 0 };

const SYSTEM: &str = "1.3.6.1.2.1.1";
const SYS_CONTACT: &str = "1.3.6.1.2.1.1.4.0";
const IF_DESCR: &str = "1.3.6.1.2.1.2.2.1.2";

fn oid(text: &str) -> Oid {
    text.parse().unwrap()
}

fn community(version: &str, community: &str) -> Credentials {
    let community = community.as_bytes().to_vec();
    if version == "1" { Credentials::V1 { community } } else { Credentials::V2c { community } }
}

fn user(name: &str, auth_password: &str, priv_password: Option<&str>) -> Credentials {
    let (_, auth, privacy) = USERS.into_iter().find(|(user, ..)| *user == name).unwrap();
    let auth = match auth {
        "MD5" => AuthProtocol::Md5,
        "SHA" => AuthProtocol::Sha1,
        "SHA-224" => AuthProtocol::Sha224,
        "SHA-256" => AuthProtocol::Sha256,
        "SHA-384" => AuthProtocol::Sha384,
        _ => AuthProtocol::Sha512,
    };
    let privacy = if privacy == "AES" { PrivProtocol::Aes128 } else { PrivProtocol::Aes256 };
    let privacy = priv_password.map(|password| (privacy, password));
    Credentials::from_passwords(name, Some((auth, auth_password)), privacy).unwrap()
}

/// The lines that net-snmp's tools print for these values.
fn lines(values: &[(Oid, Value)]) -> String {
    let lines: Vec<_> = values
        .iter()
        .map(|(oid, value)| match value {
            Value::OctetString(_) => format!(".{oid} \"{value}\""),
            Value::ObjectId(name) => format!(".{oid} .{name}"),
            _ => format!(".{oid} {value}"),
        })
        .collect();
    lines.join("\n")
}

/// Without objects that change from one request to the next.
fn steady(lines: &str) -> String {
    let moving = |line: &&str| !line.starts_with(".1.3.6.1.2.1.1.3.0 ");
    lines.lines().filter(moving).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_version_and_protocol_reads_what_snmpget_reads() {
    let Some(agent) = Snmpd::start() else { return };
    let names = ["1.3.6.1.2.1.1.1.0", "1.3.6.1.2.1.1.2.0", SYS_CONTACT, "1.3.6.1.2.1.1.7.0"];
    let oids: Vec<Oid> = names.into_iter().map(oid).collect();
    let check = |credentials: Credentials, arguments: &[&str]| {
        let mut client = Client::connect(agent.address, credentials, OPTIONS).unwrap();
        let expected = agent.tool("snmpget", arguments, &names);
        assert_eq!(lines(&client.get(&oids).unwrap()), expected, "{arguments:?}");
    };
    check(community("1", "public"), &["-v1", "-c", "public"]);
    check(community("2c", "public"), &["-v2c", "-c", "public"]);
    let plain = Credentials::from_passwords("plain", None, None).unwrap();
    check(plain, &["-v3", "-u", "plain", "-l", "noAuthNoPriv"]);
    for (name, auth, privacy) in USERS {
        let identity = ["-v3", "-u", name, "-a", auth, "-A", AUTH_PASSWORD];
        let mut arguments = identity.to_vec();
        arguments.extend(["-l", "authNoPriv"]);
        check(user(name, AUTH_PASSWORD, None), &arguments);
        let mut arguments = identity.to_vec();
        arguments.extend(["-l", "authPriv", "-x", privacy, "-X", PRIV_PASSWORD]);
        check(user(name, AUTH_PASSWORD, Some(PRIV_PASSWORD)), &arguments);
    }
}

#[test]
fn walks_find_what_snmpwalk_finds() {
    let Some(agent) = Snmpd::start() else { return };
    for subtree in [SYSTEM, IF_DESCR] {
        let expected = steady(&agent.tool("snmpwalk", &["-v2c", "-c", "public"], &[subtree]));
        for credentials in [
            community("1", "public"),
            community("2c", "public"),
            user("sha256", AUTH_PASSWORD, Some(PRIV_PASSWORD)),
        ] {
            let mut client = Client::connect(agent.address, credentials, OPTIONS).unwrap();
            let found = client.walk(&oid(subtree)).unwrap();
            assert_eq!(steady(&lines(&found)), expected);
        }
    }
}

#[test]
fn next_objects_follow_and_missing_objects_are_told_apart() {
    let Some(agent) = Snmpd::start() else { return };
    let (contact, missing) = (oid(SYS_CONTACT), oid("1.3.6.1.2.1.1.4.1"));
    for version in ["1", "2c"] {
        let credentials = community(version, "public");
        let mut client = Client::connect(agent.address, credentials, OPTIONS).unwrap();
        let next = client.get_next(&[oid("1.3.6.1.2.1.1.4")]).unwrap();
        assert_eq!(next, [(contact.clone(), Value::OctetString(b"a person".to_vec()))]);
        let asked = [missing.clone(), contact.clone(), oid("1.3.6.1.9.9")];
        let values = client.get(&asked).unwrap();
        assert!(values[0].1.is_exception());
        assert_eq!(values[1].1, Value::OctetString(b"a person".to_vec()));
        assert!(values[2].1.is_exception());
    }
}

#[test]
fn a_set_is_seen_by_snmpget_and_a_refused_one_names_the_object() {
    let Some(agent) = Snmpd::start() else { return };
    // nsCacheTimeout of ifTable, which exists once the table was read.
    let timeout = "1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2";
    for (seconds, credentials) in
        [(7, community("2c", "private")), (9, user("sha256", AUTH_PASSWORD, Some(PRIV_PASSWORD)))]
    {
        let mut client = Client::connect(agent.address, credentials, OPTIONS).unwrap();
        client.walk(&oid(IF_DESCR)).unwrap();
        client.set(&[(oid(timeout), Value::Integer(seconds))]).unwrap();
        let seen = agent.tool("snmpget", &["-v2c", "-c", "public"], &[timeout]);
        assert_eq!(seen, format!(".{timeout} {seconds}"));
    }
    let mut client = Client::connect(agent.address, community("2c", "public"), OPTIONS).unwrap();
    let error = client.set(&[(oid(timeout), Value::Integer(1))]).unwrap_err();
    let expected = format!("{} answered noAccess for `{timeout}`", agent.address);
    assert_eq!(error.to_string(), expected);
}

#[test]
fn wrong_credentials_are_named() {
    let Some(agent) = Snmpd::start() else { return };
    let refusal = |credentials: Credentials| {
        let mut client = Client::connect(agent.address, credentials, OPTIONS).unwrap();
        match client.get(&[oid(SYS_CONTACT)]).unwrap_err() {
            RequestError::Refused { source: ReceiveError::Refused(kind), .. } => kind,
            other => panic!("{other:?}"),
        }
    };
    let wrong = user("sha256", "another password", Some(PRIV_PASSWORD));
    assert_eq!(refusal(wrong), ReportKind::WrongDigest);
    let nobody = Credentials::from_passwords("nobody", None, None).unwrap();
    assert_eq!(refusal(nobody), ReportKind::UnknownUserName);
    let auth = Some((AuthProtocol::Sha256, AUTH_PASSWORD));
    let plain = Credentials::from_passwords("plain", auth, None).unwrap();
    assert_eq!(refusal(plain), ReportKind::UnsupportedSecurityLevel);

    let wrong = community("2c", "wrong");
    let mut client = Client::connect(agent.address, wrong, HASTY).unwrap();
    let error = client.get(&[oid(SYS_CONTACT)]).unwrap_err();
    assert!(matches!(error, RequestError::Timeout { attempts: 1, last: None, .. }), "{error:?}");
}

#[test]
fn a_port_where_nothing_listens_is_told_at_once() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let mut client = Client::connect(address, community("2c", "public"), OPTIONS).unwrap();
    let error = client.get(&[oid(SYS_CONTACT)]).unwrap_err();
    assert!(matches!(error, RequestError::NothingListens { .. }), "{error:?}");
}
