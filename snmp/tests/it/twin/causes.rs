//! Why an interval failed is told: one device a cause.

use super::*;

fn user(name: &str, auth: &str, privacy: &str) -> Credentials {
    let auth = Some((AuthProtocol::Sha256, auth));
    let privacy = Some((PrivProtocol::Aes128, privacy));
    Credentials::from_passwords(name, auth, privacy).expect("passwords of at least 8 octets")
}

#[test]
fn every_cause_of_a_failure_reaches_polls_and_events_under_its_own_name() {
    let memory = Memory::default();
    let mut setup = Setup::new(FarmOptions::new(8, 0), "\"load\"");
    let (right, auth, privacy) = (farm::USER, farm::AUTH_PASSWORD, farm::PRIVACY_PASSWORD);
    setup.others = [
        ("node001".to_owned(), user(right, auth, privacy)),
        ("node002".to_owned(), user("nobody", auth, privacy)),
        ("node003".to_owned(), user(right, "another password", privacy)),
        ("node004".to_owned(), user(right, auth, "another password")),
        ("node007".to_owned(), Credentials::V2c { community: b"wrong".to_vec() }),
    ]
    .into();
    setup.script = vec![
        "at 0s set truncate=100% node005".into(),
        "at 0s set error=100% node006".into(),
        "at 5.05s set error=0% node006".into(),
    ];
    let mut twin = setup.twin(&memory);
    twin.run_until(START + Nanos::from_secs(10));
    finish(twin);
    let polls = rows(&memory, "polls");
    let all = |ending: &str| BTreeMap::from([(ending.to_owned(), 99)]);
    assert_eq!(endings(&polls, "node001"), all("ok"));
    assert_eq!(endings(&polls, "node002"), all("error unknown_user"));
    assert_eq!(endings(&polls, "node003"), all("error wrong_digest"));
    assert_eq!(endings(&polls, "node004"), all("error decryption_error"));
    assert_eq!(endings(&polls, "node005"), all("error bad_packet"));
    let healed = endings(&polls, "node006");
    assert_eq!(healed["error error_status"], 50, "{healed:?}");
    assert!(healed["ok"] >= 40, "{healed:?}");
    let silent = endings(&polls, "node007");
    assert!(silent.keys().all(|ending| !ending.starts_with("error")), "{silent:?}");
    assert!(silent["missed"] >= 5, "{silent:?}");
    assert_eq!(endings(&polls, "node008"), all("ok"));
    let events = rows(&memory, "events");
    let told = |kind: &str| -> BTreeMap<String, (String, String)> {
        let events = events.iter().filter(|row| row["event"] == kind);
        let told =
            events.map(|row| (row["device"].clone(), (row["text"].clone(), row["count"].clone())));
        let listed: Vec<_> = told.collect();
        let count = listed.len();
        let told: BTreeMap<_, _> = listed.into_iter().collect();
        assert_eq!(told.len(), count, "once a device");
        told
    };
    let failing = told("failing");
    let causes = ["unknown_user", "wrong_digest", "decryption_error", "bad_packet", "error_status"];
    for (name, cause) in ["node002", "node003", "node004", "node005", "node006"].iter().zip(causes)
    {
        assert!(failing[*name].0.ends_with(cause), "{name}: {failing:?}");
    }
    assert!(failing["node007"].0.starts_with("no answer"), "{failing:?}");
    assert_eq!(failing.len(), 6, "{failing:?}");
    let answering = told("answering");
    let healed = ("it answers again".to_owned(), "50".to_owned());
    assert_eq!(answering, [("node006".to_owned(), healed)].into());
}
