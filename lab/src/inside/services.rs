//! Programs that run as long as the lab, and the wait until all of them listen.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use meikyo_units::{Nanos, WallTime};

use super::{Service, session};
use crate::protocol::Start;

/// How long no further one may begin to listen. All start at once, on cores that they share.
const PATIENCE: Nanos = Nanos::from_secs(20);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Why programs do not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServiceError {
    #[error("cannot start `{program}` on `{space}`")]
    Start { program: String, space: String, source: io::Error },
    #[error("`{program}` on `{space}` ended before it listened on UDP port {port}: {status}")]
    Ended { program: String, space: String, port: u16, status: ExitStatus },
    #[error(
        "`{program}` on `{space}` does not listen on UDP port {port}, and no other has begun to for \
         {PATIENCE}; {listening} of {all} listen"
    )]
    Silent { program: String, space: String, port: u16, listening: usize, all: usize },
    #[error("cannot determine whether `{program}` on `{space}` listens")]
    Look { program: String, space: String, source: io::Error },
}

/// Starts all of them and returns when all listen.
pub(super) fn start(lab: &session::Lab, services: &[Service]) -> Result<(), ServiceError> {
    let mut started = Vec::with_capacity(services.len());
    for service in services {
        let start = Start {
            space: Some(service.space.clone()),
            command: service.command.clone(),
            environment: Vec::new(),
        };
        let child = lab.start_service(&start).map_err(|source| {
            let (program, space) = named(service);
            ServiceError::Start { program, space, source }
        })?;
        started.push((service, child));
    }
    let mut last = WallTime::now();
    for (nth, (service, child)) in started.iter_mut().enumerate() {
        while !listens(service, child)? {
            if WallTime::now().since(last) > PATIENCE {
                let (program, space) = named(service);
                let (port, all) = (service.udp_port, services.len());
                return Err(ServiceError::Silent { program, space, port, listening: nth, all });
            }
            std::thread::park_timeout(PAUSE);
        }
        last = WallTime::now();
    }
    Ok(())
}

fn listens(service: &Service, child: &mut Child) -> Result<bool, ServiceError> {
    let seen = child.try_wait().and_then(|ended| match ended {
        Some(status) => Ok(Err(status)),
        None => std::fs::read_to_string(format!("/proc/{}/net/udp", child.id())).map(Ok),
    });
    match seen {
        Ok(Ok(sockets)) => Ok(is_bound(&sockets, service.udp_port)),
        Ok(Err(status)) => {
            let (program, space) = named(service);
            Err(ServiceError::Ended { program, space, port: service.udp_port, status })
        }
        Err(source) => {
            let (program, space) = named(service);
            Err(ServiceError::Look { program, space, source })
        }
    }
}

/// Whether a socket of `/proc/net/udp` has this port: `  85: 0100800A:00A1 00000000:0000 07 ..`.
fn is_bound(sockets: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    sockets
        .lines()
        .skip(1)
        .any(|line| line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&end)))
}

fn named(service: &Service) -> (String, String) {
    (service.command.last().cloned().unwrap_or_default(), service.space.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_bound_if_a_socket_has_it_as_its_own() {
        let sockets = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
            \x20 85: 0100800A:00A1 00000000:0000 07 00000000:00000000 00:00000000 00000000 0\n\
            \x20 99: 0100007F:C350 0100800A:00A2 01 00000000:00000000 00:00000000 00000000 0\n";
        let bound = |port| is_bound(sockets, port);
        assert!(bound(161) && bound(50_000));
        assert!(!bound(162), "that is the other end's");
        assert!(!bound(0) && !is_bound("", 161));
    }
}
