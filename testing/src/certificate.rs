//! A certificate that vouches for itself, made by `openssl`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a certificate and its key lie, in PEM.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate, which vouches for itself.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Makes `chain.pem` and `key.pem` in a directory, for a server of these names: `DNS:localhost,IP:127.0.0.1`.
///
/// # Errors
/// If there is no `openssl`, or it refuses; what it said is the error's text.
#[expect(clippy::disallowed_methods, reason = "certificates are made by a program")]
pub fn make(directory: &Path, names: &str) -> io::Result<Certificate> {
    let (chain, key) = (directory.join("chain.pem"), directory.join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=meikyo", "-addext"])
        .arg(format!("subjectAltName={names}"))
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&chain)
        .output()?;
    if made.status.success() {
        return Ok(Certificate { chain, key });
    }
    let said = String::from_utf8_lossy(&made.stderr);
    Err(io::Error::other(format!("`openssl` makes no certificate: {}", said.trim())))
}
