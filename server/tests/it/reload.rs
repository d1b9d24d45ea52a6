//! Certificates and tokens that are replaced while the server runs.

use std::fs;
use std::io::Write as _;

use meikyo_server::{Reloaded, Running, hash_token, make_token};
use meikyo_units::Nanos;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;
use tungstenite::Message;
use tungstenite::protocol::frame::coding::CloseCode;

use crate::client::{KeptAlive, serve, serve_with};
use crate::live::Viewer;
use crate::recorded::recording;
use crate::tls::{Protected, certificate, protected_with};

const RECORDINGS: &str = "/api/v1/recordings";

fn reloads(running: &Running, certificate: bool, tokens: bool) {
    assert_eq!(running.reload().unwrap(), Reloaded { certificate, tokens });
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn roots(protected: &Protected) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&protected.certificate).unwrap()).unwrap();
    roots
}

#[test]
fn a_new_certificate_is_used_from_then_on_and_a_bad_one_never() {
    let protected = protected_with(|options| options.limits.head = Nanos::from_secs(36_000));
    let (running, dir) = (&protected.served.running, protected.certificate.parent().unwrap());
    let (old, bearer) = (roots(&protected), bearer(&protected.token));
    let connect = |roots| KeptAlive::new(protected.client(roots));
    let mut before = connect(old.clone());
    assert_eq!(before.status(RECORDINGS, &bearer), 200);
    certificate(dir);
    assert!(protected.client(roots(&protected)).write_all(b"x").is_err(), "not yet in use");
    reloads(running, true, true);
    assert_eq!(connect(roots(&protected)).status(RECORDINGS, &bearer), 200);
    assert!(protected.client(old).write_all(b"x").is_err(), "the old one is gone");
    assert_eq!(before.status(RECORDINGS, &bearer), 200, "what was open stays");
    let used = roots(&protected);
    for (file, text) in [("chain.pem", "no certificate"), ("key.pem", ""), ("tokens", "secret")] {
        let kept = fs::read(dir.join(file)).unwrap();
        fs::write(dir.join(file), text).unwrap();
        let error = running.reload().unwrap_err();
        assert!(error.to_string().contains(file), "{error}");
        fs::write(dir.join(file), kept).unwrap();
        assert_eq!(connect(used.clone()).status(RECORDINGS, &bearer), 200, "{file}");
    }
    // Not even the half that could be used: the new tokens are good, the certificate is not.
    fs::write(dir.join("tokens"), hash_token(&make_token()).unwrap()).unwrap();
    fs::write(dir.join("chain.pem"), "no certificate").unwrap();
    running.reload().unwrap_err();
    assert_eq!(connect(used).status(RECORDINGS, &bearer), 200);
}

#[test]
fn a_token_that_is_gone_ends_with_its_sessions_and_sockets() {
    let dir = tempfile::tempdir().unwrap();
    let (file, [gone, kept]) = (dir.path().join("tokens"), [make_token(), make_token()]);
    let hashes = [&gone, &kept].map(|token| hash_token(token).unwrap());
    fs::write(&file, hashes.join("\n")).unwrap();
    let served = serve_with(recording(), |options| options.token_file = Some(file.clone()));
    let status = |headers: &str| served.ask("GET", RECORDINGS, headers, "").status;
    let session = |token: &str| {
        let welcome = served.get(&format!("/?token={token}"));
        format!("Cookie: {}\r\n", welcome.header("set-cookie").split(';').next().unwrap())
    };
    let sessions = [session(&gone), session(&kept)];
    let id = {
        let answer = served.ask("GET", RECORDINGS, &bearer(&kept), "");
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        body[0]["id"].as_str().unwrap().to_owned()
    };
    let mut viewers = [&gone, &kept].map(|token| {
        let mut viewer = Viewer::with_token(&served, &id, token);
        viewer.subscribe(&json!({ "table": "load", "columns": ["load_1min"] }));
        viewer.text(&mut Vec::new());
        viewer
    });
    assert_eq!(sessions.each_ref().map(|session| status(session)), [200, 200]);
    fs::write(&file, &hashes[1]).unwrap();
    assert_eq!(status(&bearer(&gone)), 200, "the file counts when it is read anew");
    reloads(&served.running, false, true);
    assert_eq!(status(&bearer(&gone)), 401);
    assert_eq!(sessions.each_ref().map(|session| status(session)), [401, 200]);
    let farewell = loop {
        if let Message::Close(frame) = viewers[0].socket.read().unwrap() {
            break frame.unwrap().code;
        }
    };
    assert_eq!(farewell, CloseCode::Policy);
    viewers[1].subscribe(&json!({ "table": "load", "columns": ["load_1min"] }));
    assert!(viewers[1].text(&mut Vec::new()).get("subscribed").is_some());
    assert_eq!(served.closed("revoked", &bearer(&kept)), 1);
}

#[test]
fn where_there_is_nothing_to_read_anew_that_is_said() {
    reloads(&serve(recording()).running, false, false);
}
