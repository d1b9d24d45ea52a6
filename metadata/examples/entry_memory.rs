//! Memory per entry of one server: makes a million files as 64 clients in turn would, and prints how
//! the resident memory grew. `cargo run --release -p meikyo-metadata --example entry_memory`.

use std::error::Error;
use std::num::NonZeroU16;

use meikyo_metadata::{InodeNumber, Key, Name, Request, Server, ServerId};
use meikyo_undo::Forget;
use meikyo_units::WallTime;

const FILES: u64 = 1_000_000;
const CLIENTS: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::new(ServerId::new(0), NonZeroU16::MIN);
    let before = resident_bytes()?;
    for file in 0..FILES {
        let name = Name::format(format_args!("file.{}.{}", file % CLIENTS, file / CLIENTS))?;
        let request = Request::Create(Key::new(InodeNumber::ROOT, name));
        server.handle(WallTime::from_nanos(0), &request, &mut Forget)?;
    }
    let bytes = resident_bytes()?.saturating_sub(before) / FILES;
    print(bytes, &server);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example's answer")]
fn print(bytes: u64, server: &Server) {
    println!("{bytes} bytes per entry, {} entries", server.entry_count());
}

fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no `VmRSS`")?;
    let kibibytes: u64 =
        line.split_whitespace().nth(1).ok_or("`VmRSS` without a value")?.parse()?;
    Ok(kibibytes * 1024)
}
