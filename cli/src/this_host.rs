//! What verbs ask of the host that they run on: its name, whom it trusts, and when to stop.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Who vouches for servers where no other file is named: where Debian has its certificates.
pub(crate) const ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The name of this host, for the table `clocks`.
pub(crate) fn host_name() -> String {
    let path = Path::new("/proc/sys/kernel/hostname");
    std::fs::read_to_string(path).map_or_else(|_| "localhost".into(), |name| name.trim().into())
}

/// A flag that SIGINT and SIGTERM set.
pub(crate) fn stop_on_signals() -> Result<Arc<AtomicBool>, std::io::Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The second signal ends the process at once: what is kept is kept.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
