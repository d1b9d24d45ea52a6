//! The sender's process: makes blocks until it is killed, or told to deliver what it has.

use std::io::Write as _;
use std::path::PathBuf;

use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Target, Uplink, UplinkStatus};
use meikyo_transport::wire::Declared;
use meikyo_units::{Nanos, WallTime};

use super::rows;

/// Blocks that are made ahead of those that are in the spool.
const AHEAD: u64 = 200;
/// How long one look at the status waits at most.
const LOOK: Nanos = Nanos::from_millis(5);

fn told(name: &str) -> String {
    std::env::var(format!("MEIKYO_AFAR_{name}")).unwrap()
}

/// Prints `stands ACCEPTED ACKNOWLEDGED` and `trouble: TEXT` as they change.
pub(crate) fn send_until_killed() {
    let (name, run): (_, u64) = (told("NAME"), told("RUN").parse().unwrap());
    let spool = PathBuf::from(told("SPOOL"));
    let token = Some(told("TOKEN")).filter(|token| !token.is_empty());
    let target = Target { authority: told("TARGET"), prefix: String::new(), roots: None, token };
    let machine = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let options = SenderOptions {
        name: name.clone(),
        cluster: None,
        identity: None,
        boot: WallTime::now().as_nanos().cast_unsigned(),
        machine,
        streams: vec![Declared { stream: rows::STREAM.into(), tables: vec![rows::table()] }],
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    };
    let uplink = Uplink::start(target, options, Some(&spool)).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out).unwrap();
    let (mut made, mut said) = (0, String::new());
    while !spool.join("finish").exists() {
        let status = uplink.wait(LOOK, |status| status.accepted_blocks + AHEAD / 2 > made);
        say(&status, &mut said, &mut out);
        // Not further ahead than a connection catches up with in a moment.
        let waiting = status.sender.spool.blocks;
        while waiting < 5_000 && made < status.accepted_blocks + AHEAD {
            uplink.offer(rows::STREAM, rows::block(&name, run, made)).unwrap();
            made += 1;
        }
    }
    uplink.wait(Nanos::from_secs(60), |status| status.accepted_blocks == made);
    say(&uplink.status(), &mut said, &mut out);
    assert!(uplink.finish(Nanos::from_secs(60)).is_delivered(), "not everything was delivered");
}

fn say(status: &UplinkStatus, said: &mut String, out: &mut impl std::io::Write) {
    let (accepted, acknowledged) = (status.accepted_blocks, status.sender.acknowledged_blocks);
    let line = match &status.trouble {
        Some(trouble) => format!("trouble: {trouble}"),
        None => String::new(),
    };
    if line != *said && !line.is_empty() {
        writeln!(out, "{}", line.replace('\n', " ")).unwrap();
    }
    *said = line;
    writeln!(out, "stands {accepted} {acknowledged}").unwrap();
    out.flush().unwrap();
}
