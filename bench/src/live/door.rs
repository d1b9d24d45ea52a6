//! A server that is not on loopback: its certificate, and tokens for those who look and those who send.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use meikyo_console::failure::Failure;
use meikyo_spaces::LineError;
use meikyo_testing::certificate::{self, Certificate};

use crate::collector::product;

/// What a browser is told, as the certificate vouches for itself.
pub(crate) const BROWSER_OPTIONS: [&str; 1] = ["--ignore-certificate-errors"];

/// Certificate and tokens of a server.
pub(crate) struct Door {
    address: Ipv4Addr,
    /// A token for viewing.
    pub(crate) token: String,
    token_file: PathBuf,
    certificate: Certificate,
}

impl Door {
    /// Makes them for a server at an address.
    pub(crate) fn make(directory: &Path, address: Ipv4Addr) -> Result<Self, Failure> {
        let certificate = certificate::make(directory, &format!("IP:{address}"))?;
        let (token, line) = new_token("--new-token")?;
        let token_file = directory.join("tokens");
        std::fs::write(&token_file, line)?;
        Ok(Self { address, token, token_file, certificate })
    }

    /// Admits all senders with a token, of which the file is told.
    pub(crate) fn admit_senders(&self, directory: &Path) -> Result<PathBuf, Failure> {
        let (token, line) = new_token("--new-token=ingest:*")?;
        let mut lines = std::fs::read(&self.token_file)?;
        lines.extend(line);
        std::fs::write(&self.token_file, lines)?;
        let file = directory.join("sender-token");
        std::fs::write(&file, token)?;
        Ok(file)
    }

    /// Has a server listen there.
    pub(crate) fn open(&self, serve: &mut Command) {
        serve.args(["--listen", &format!("{}:0", self.address)]);
        serve.arg("--token-file").arg(&self.token_file);
        serve.arg("--tls-cert").arg(&self.certificate.chain);
        serve.arg("--tls-key").arg(&self.certificate.key);
    }

    /// Who vouches for the server.
    pub(crate) fn roots(&self) -> &Path {
        &self.certificate.chain
    }
}

/// A token, and the line of the server's file that lets it in.
fn new_token(role: &str) -> Result<(String, Vec<u8>), Failure> {
    let printed = product()?.args(["serve", role]).stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&printed.stderr).into_owned();
    let token = said.rsplit(' ').next().map(|token| token.trim().to_owned());
    let token = token
        .filter(|token| token.len() == 64)
        .ok_or_else(|| Failure::new(format!("`meikyo serve {role}` shows no token: {said}")))?;
    Ok((token, printed.stdout))
}

/// What to do where no line can be made.
pub(crate) fn needs_root(error: LineError) -> Failure {
    Failure::new(error).hint("it needs root and /dev/net/tun; leave it out with `--only`")
}
