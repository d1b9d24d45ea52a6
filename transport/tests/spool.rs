//! A spool whose disk fails: what is lost is told, and nothing else is lost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod receivers {
    pub(crate) mod greeting;
}

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;

use meikyo_recording::{Column, ColumnKind, Meaning, PackedRows, Packer, TableSchema};
use meikyo_transport::limits::{ANSWERS_WITHIN, PING_EVERY, SpoolLimits};
use meikyo_transport::shell::{Driver, Target, Uplink};
use meikyo_transport::wire::{
    Declared, Decoder, Gap, Hello, Message, Numbers, Pong, Reason, Welcome,
};
use meikyo_transport::{Directory, Files, Now, Sender, SenderOptions, Skipped};
use meikyo_units::{Bytes, Nanos, WallTime};

/// What the disk of a test holds, and what it refuses.
#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<String, Vec<u8>>,
    /// Octets of each file that a power cut would leave.
    synced: BTreeMap<String, usize>,
    refuses_reads: Option<i32>,
    refuses_syncs: bool,
    /// Whether it is full.
    refuses_appends: bool,
    /// How many octets and calls the sender still comes to before it is killed.
    left: Option<usize>,
}

impl Disk {
    /// How many of so many octets a call writes until the sender is killed; an error from then on.
    fn write(&mut self, octets: usize) -> io::Result<usize> {
        let Some(left) = &mut self.left else { return Ok(octets) };
        let written = octets.min(left.saturating_sub(1));
        if *left == 0 {
            return Err(io::Error::other("the sender was killed"));
        }
        *left = left.saturating_sub(octets + 1);
        Ok(written)
    }
}

#[derive(Debug, Clone, Default)]
struct Shared(Rc<RefCell<Disk>>);

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Disk)) {
        change(&mut self.0.borrow_mut());
    }

    /// The file that holds most.
    fn longest(&self) -> String {
        let disk = self.0.borrow();
        let (name, _) = disk.files.iter().max_by_key(|(_, octets)| octets.len()).unwrap();
        name.clone()
    }

    fn used(&self) -> usize {
        self.0.borrow().files.values().map(Vec::len).sum()
    }
}

impl Files for Shared {
    fn names(&mut self) -> io::Result<Vec<String>> {
        Ok(self.0.borrow().files.keys().cloned().collect())
    }

    fn append(&mut self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let octets = parts.concat();
        let mut disk = self.0.borrow_mut();
        if disk.refuses_appends {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = disk.write(octets.len())?;
        disk.files.entry(name.into()).or_default().extend_from_slice(&octets[..written]);
        Ok(())
    }

    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let disk = self.0.borrow();
        disk.files.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn read_at(&mut self, name: &str, at: u64, len: usize) -> io::Result<Vec<u8>> {
        if let Some(errno) = self.0.borrow().refuses_reads {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let at = usize::try_from(at).unwrap();
        let octets = self.read(name)?;
        octets
            .get(at..at + len)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        if disk.refuses_syncs {
            return Err(io::Error::other("the disk is broken"));
        }
        disk.write(0)?;
        let length = disk.files.get(name).ok_or(io::ErrorKind::NotFound)?.len();
        disk.synced.insert(name.into(), length);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        disk.write(0)?;
        disk.files.remove(name);
        Ok(())
    }
}

fn at(ms: u64) -> Now {
    let wall = WallTime::from_nanos(1_795_294_799_000_000_000);
    Now { monotonic: Nanos::from_secs(60) + Nanos::from_millis(ms), wall }
}

fn table() -> TableSchema {
    TableSchema::new("t", "", vec![Column::new("value", ColumnKind::U64, Meaning::Gauge, "")])
}

fn rows(count: i64) -> PackedRows {
    let mut packer = Packer::new(table());
    let mut noise = 1_u64;
    for row in 0..count {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        packer.batch().begin_row(row);
        packer.batch().put_u64(1, noise);
    }
    packer.pack().unwrap()
}

fn options(boot: u64, streams: &[&str]) -> SenderOptions {
    let declared = |stream: &&str| Declared { stream: (*stream).into(), tables: vec![table()] };
    SenderOptions {
        name: "node001".into(),
        cluster: None,
        identity: None,
        boot,
        machine: "m".into(),
        streams: streams.iter().map(declared).collect(),
        spool: SpoolLimits { bytes: Bytes::new(200_000), blocks: 1_000 },
        catch_up: None,
    }
}

fn open(disk: &Shared, boot: u64, streams: &[&str]) -> Sender<Shared> {
    Sender::open(options(boot, streams), Some(disk.clone())).unwrap()
}

fn heard(octets: &[u8]) -> Message {
    let mut decoder = Decoder::new();
    decoder.push(octets);
    decoder.next_message().unwrap().unwrap()
}

/// Greets a receiver that has nothing; what the sender said of itself.
fn greet<F: Files>(sender: &mut Sender<F>, now: Now, window_bytes: u64) -> Hello {
    sender.connected(now);
    let Message::Hello(hello) = heard(&sender.poll_transmit(now).unwrap()) else { panic!() };
    let welcome = Message::Welcome(Welcome { version: 1, window_bytes, has: Vec::new() });
    sender.handle(now, &welcome.encoded()).unwrap();
    hello
}

/// What a sender sends without an answer: boot, stream and number of blocks, and gaps.
fn sent<F: Files>(sender: &mut Sender<F>, now: Now) -> (Vec<(u64, String, u64)>, Vec<Gap>) {
    let (mut blocks, mut gaps) = (Vec::new(), Vec::new());
    while let Some(octets) = sender.poll_transmit(now) {
        match heard(&octets) {
            Message::Block(rows) => {
                let origin = rows.origin().unwrap();
                blocks.push((origin.source.boot, origin.source.stream.clone(), origin.first));
            }
            Message::Gap(gap) => gaps.push(gap),
            _ => {}
        }
    }
    (blocks, gaps)
}

fn acknowledge<F: Files>(sender: &mut Sender<F>, now: Now, boot: u64, stream: &str) {
    let ranges = vec![(1, u64::MAX)];
    let ack = Message::Ack(vec![Numbers { boot, stream: stream.into(), ranges }]);
    sender.handle(now, &ack.encoded()).unwrap();
}

const EMFILE: i32 = 24;
const EIO: i32 = 5;
const ENOENT: i32 = 2;

#[test]
fn only_what_is_gone_is_given_up_when_a_read_fails() {
    for (errno, lost_after) in [(EMFILE, u64::MAX), (EIO, 59), (ENOENT, 0)] {
        let disk = Shared::default();
        let mut sender = open(&disk, 1, &["s"]);
        for _ in 0..3 {
            sender.offer(at(0), "s", &rows(10)).unwrap();
        }
        greet(&mut sender, at(0), 1 << 20);
        disk.change(|disk| disk.refuses_reads = Some(errno));
        for second in 0..100 {
            let now = at(second * 1_000);
            sender.handle(now, &[]).unwrap();
            sender.tick(now).unwrap();
            let (blocks, gaps) = sent(&mut sender, now);
            assert!(blocks.is_empty());
            let is_lost = sender.status().spool.dropped_blocks > 0;
            assert_eq!(is_lost, second >= lost_after, "errno {errno}, {second} s");
            assert!(gaps.iter().all(|gap| gap.reason == Reason::SpoolDamaged));
        }
        disk.change(|disk| disk.refuses_reads = None);
        sender.tick(at(101_000)).unwrap();
        let (blocks, _) = sent(&mut sender, at(101_000));
        assert_eq!(blocks.len(), if errno == EMFILE { 3 } else { 0 });
    }
}

/// A life that has made one block, and the name of its file.
fn one_block(disk: &Shared) -> (Sender<Shared>, String) {
    let mut sender = open(disk, 1, &["s"]);
    sender.offer(at(0), "s", &rows(10)).unwrap();
    (sender, disk.longest())
}

#[test]
fn what_the_disk_refused_to_sync_is_synced_later_and_nothing_is_put_behind_it() {
    let disk = Shared::default();
    let (mut sender, first) = one_block(&disk);
    let octets = disk.0.borrow().files[&first].len();
    disk.change(|disk| disk.refuses_syncs = true);
    sender.tick(at(1_000)).unwrap();
    assert_eq!(sender.status().spool.refused_calls, 1);
    assert!(disk.0.borrow().synced[&first] < octets);
    disk.change(|disk| disk.refuses_syncs = false);
    sender.offer(at(1_500), "s", &rows(10)).unwrap();
    sender.tick(at(2_000)).unwrap();
    let held = disk.0.borrow();
    assert_eq!((held.synced[&first], held.files[&first].len()), (octets, octets));
    assert_eq!(held.files.keys().filter(|name| name.ends_with(".spool")).count(), 2);
}

/// Ten blocks of a life that was killed, and where each begins in the file.
fn ten_blocks(disk: &Shared) -> (String, Vec<usize>) {
    let mut sender = open(disk, 1, &["s"]);
    let name = disk.longest();
    let mut begins = Vec::new();
    for _ in 0..10 {
        begins.push(disk.0.borrow().files[&name].len());
        sender.offer(at(0), "s", &rows(10)).unwrap();
    }
    (name, begins)
}

#[test]
fn damage_in_a_file_costs_the_blocks_that_it_hits() {
    // In a body, in a header, at the end, and over several blocks.
    for (from, length, lost) in [(3, 1, 4..=4), (3, 0, 4..=4), (9, 1, 10..=10), (2, 300, 3..=5)] {
        let disk = Shared::default();
        let (name, begins) = ten_blocks(&disk);
        let begin = begins[from] + if length == 1 { 40 } else { 4 };
        disk.change(|disk| {
            for octet in &mut disk.files.get_mut(&name).unwrap()[begin..begin + length.max(1)] {
                *octet ^= 0x55;
            }
        });
        let lost = if length == 300 {
            let last = begins.iter().filter(|&&at| at < begin + length).count() as u64;
            *lost.start()..=last
        } else {
            lost
        };
        let mut sender = open(&disk, 2, &["s"]);
        greet(&mut sender, at(0), 1 << 20);
        let (blocks, gaps) = sent(&mut sender, at(0));
        let expected: Vec<_> =
            (1..=10).filter(|at| !lost.contains(at)).map(|at| (1, "s".to_owned(), at)).collect();
        assert_eq!(blocks, expected, "{lost:?}");
        let told = gaps.iter().find(|gap| gap.reason == Reason::SpoolDamaged);
        let numbers = told.map(|gap| (gap.first, gap.last));
        // Behind the last one nobody knows what there was.
        let expected = (*lost.end() < 10).then_some((*lost.start(), *lost.end()));
        assert_eq!(numbers, expected, "{gaps:?}");
        let end = gaps.iter().find(|gap| gap.last == u64::MAX).unwrap();
        let first = if *lost.end() < 10 { 11 } else { *lost.start() };
        assert_eq!((end.first, end.reason), (first, Reason::Restarted));
    }
}

/// A life that comes to so many octets and calls of its spool until it is killed, and makes three blocks at most;
/// how many of them it had accepted.
fn accepted_by(boot: u64, disk: &Shared, octets: usize) -> u64 {
    disk.change(|disk| disk.left = Some(octets));
    let mut accepted = 0;
    if let Ok(mut sender) = Sender::open(options(boot, &["s"]), Some(disk.clone())) {
        for _ in 0..3 {
            sender.offer(at(0), "s", &rows(3)).unwrap();
            accepted += u64::from(disk.0.borrow().left > Some(0));
            sender.tick(at(0)).unwrap();
        }
    }
    disk.change(|disk| disk.left = None);
    accepted
}

#[test]
fn senders_that_are_killed_at_any_octet_lose_nothing() {
    for before in [0, 3] {
        let (mut octets, mut accepted) = (0, [0; 2]);
        while accepted != [3; 2] {
            octets += 1;
            let disk = Shared::default();
            let mut first = open(&disk, 1, &["s"]);
            for _ in 0..before {
                first.offer(at(0), "s", &rows(3)).unwrap();
            }
            drop(first);
            accepted = [2, 3].map(|boot| accepted_by(boot, &disk, octets));
            let mut last = open(&disk, 4, &["s"]);
            greet(&mut last, at(0), 1 << 20);
            let (blocks, gaps) = sent(&mut last, at(0));
            let of = |boot: u64| blocks.iter().filter(|block| block.0 == boot).count() as u64;
            assert_eq!(of(1), before, "killed at {octets}");
            assert!(of(2) >= accepted[0] && of(3) >= accepted[1], "killed at {octets}: {blocks:?}");
            // A life that was killed before it had a file numbered nothing, and nobody knows of it.
            let is_known = |boot: &u64| of(*boot) > 0 || gaps.iter().any(|gap| gap.boot == *boot);
            let lives = [1].into_iter().chain([2, 3].into_iter().filter(is_known));
            let expected = lives.map(|boot| (boot, of(boot) + 1, u64::MAX, Reason::Ended));
            let mut ends: Vec<_> =
                gaps.iter().map(|gap| (gap.boot, gap.first, gap.last, gap.reason)).collect();
            ends.sort_unstable_by_key(|end| end.0);
            assert_eq!(ends, expected.collect::<Vec<_>>(), "killed at {octets}");
        }
        assert!(octets > 500, "{octets}");
    }
}

/// Of the gaps that a life would send, whose numbers they begin with, and why.
fn told_by(sender: &mut Sender<Shared>) -> Vec<(u64, u64, Reason)> {
    greet(sender, at(0), 1 << 20);
    sent(sender, at(0)).1.iter().map(|gap| (gap.boot, gap.first, gap.reason)).collect()
}

#[test]
fn how_a_life_ended_is_known_until_it_is_told_on_the_disk_or_delivered() {
    let ended = (1, 1, Reason::Ended);
    for refused in [
        |disk: &mut Disk, is: bool| disk.refuses_appends = is,
        |disk: &mut Disk, is: bool| disk.refuses_syncs = is,
    ] {
        let disk = Shared::default();
        // No block holds the file of this life.
        drop(open(&disk, 1, &["s"]));
        let first_files = disk.0.borrow().files.clone();
        // The next one finds a disk that takes nothing, and is killed: its successors find the same.
        disk.change(|disk| refused(disk, true));
        assert_eq!(told_by(&mut open(&disk, 2, &["s"])), [ended]);
        disk.change(|disk| {
            refused(disk, false);
            // What was not synced goes with the power.
            disk.files.retain(|name, _| first_files.contains_key(name));
        });
        let mut third = open(&disk, 3, &["s"]);
        assert_eq!(told_by(&mut third), [ended]);
        let is_left = |disk: &Shared| {
            let disk = disk.0.borrow();
            first_files.keys().any(|name| disk.files.contains_key(name))
        };
        assert!(!is_left(&disk), "it is told in the file of the third");
        // One that finds such a disk tells it there as soon as it can.
        disk.change(|disk| disk.files.clone_from(&first_files));
        disk.change(|disk| refused(disk, true));
        let mut last = open(&disk, 4, &["s"]);
        assert_eq!(told_by(&mut last), [ended]);
        assert!(is_left(&disk));
        disk.change(|disk| refused(disk, false));
        last.tick(at(5_000)).unwrap();
        assert!(!is_left(&disk));
        drop(last);
        assert!(told_by(&mut open(&disk, 5, &["s"])).contains(&ended));
    }
}

/// A life that makes a block, drops the next one, and is killed; the name of its file.
fn a_block_and_a_dropped_one(disk: &Shared) -> String {
    let (mut sender, name) = one_block(disk);
    sender.skip("s", Skipped { blocks: 1, rows: 10, from_ns: 5, until_ns: 6 });
    name
}

#[test]
fn a_gap_that_was_being_written_when_the_sender_was_killed_may_have_been_one_of_rows() {
    let disk = Shared::default();
    let name = a_block_and_a_dropped_one(&disk);
    disk.change(|disk| assert!(disk.files.get_mut(&name).unwrap().pop().is_some()));
    assert_eq!(told_by(&mut open(&disk, 2, &["s"])), [(1, 2, Reason::Restarted)]);
}

#[test]
fn numbers_that_a_gap_tells_of_are_no_end_of_a_life() {
    let disk = Shared::default();
    a_block_and_a_dropped_one(&disk);
    // Two more lives are killed before they deliver anything.
    drop(open(&disk, 2, &["s"]));
    let told = told_by(&mut open(&disk, 3, &["s"]));
    let of_first: Vec<_> = told.into_iter().filter(|gap| gap.0 == 1).collect();
    assert_eq!(of_first, [(1, 2, Reason::QueueFull), (1, 3, Reason::Ended)]);
}

#[test]
fn what_had_to_go_is_told_also_after_the_power_went() {
    let disk = Shared::default();
    let mut sender = open(&disk, 1, &["s"]);
    while sender.status().spool.dropped_blocks == 0 {
        sender.offer(at(0), "s", &rows(100)).unwrap();
    }
    drop(sender);
    disk.change(|disk| {
        let synced = &disk.synced;
        disk.files.retain(|name, _| synced.contains_key(name));
        disk.files.iter_mut().for_each(|(name, octets)| octets.truncate(synced[name]));
    });
    assert!(told_by(&mut open(&disk, 2, &["s"])).contains(&(1, 1, Reason::SpoolFull)));
}

#[test]
fn a_life_that_could_not_vouch_for_itself_may_have_lost_something() {
    let disk = Shared::default();
    disk.change(|disk| disk.refuses_syncs = true);
    let mut sender = open(&disk, 1, &["s"]);
    disk.change(|disk| disk.refuses_syncs = false);
    sender.offer(at(0), "s", &rows(10)).unwrap();
    disk.change(|disk| disk.refuses_appends = true);
    // This one is in memory only.
    sender.offer(at(0), "s", &rows(10)).unwrap();
    drop(sender);
    disk.change(|disk| disk.refuses_appends = false);
    assert_eq!(told_by(&mut open(&disk, 2, &["s"])), [(1, 2, Reason::Restarted)]);
}

#[test]
fn a_file_that_the_disk_refused_to_go_on_with_goes_with_its_last_block() {
    let disk = Shared::default();
    let (mut sender, name) = one_block(&disk);
    disk.change(|disk| disk.refuses_appends = true);
    sender.offer(at(0), "s", &rows(10)).unwrap();
    greet(&mut sender, at(0), 1 << 20);
    assert_eq!(sent(&mut sender, at(0)).0.len(), 2);
    assert!(disk.0.borrow().files.contains_key(&name));
    acknowledge(&mut sender, at(0), 1, "s");
    assert!(!disk.0.borrow().files.contains_key(&name));
}

#[test]
fn a_file_whose_head_is_damaged_keeps_its_blocks() {
    let disk = Shared::default();
    let (name, _) = ten_blocks(&disk);
    disk.change(|disk| disk.files.get_mut(&name).unwrap()[20] ^= 1);
    let mut sender = open(&disk, 2, &["s"]);
    greet(&mut sender, at(0), 1 << 20);
    let (blocks, gaps) = sent(&mut sender, at(0));
    assert_eq!(
        blocks.iter().map(|block| block.2).collect::<Vec<_>>(),
        (1..=10).collect::<Vec<_>>()
    );
    let ends: Vec<_> = gaps.iter().map(|gap| (gap.first, gap.reason)).collect();
    assert_eq!(ends, [(11, Reason::Restarted)]);
}

#[test]
fn streams_that_are_not_declared_wait_and_are_the_first_to_go() {
    let disk = Shared::default();
    let mut both = open(&disk, 1, &["a", "b"]);
    for _ in 0..10 {
        both.offer(at(0), "a", &rows(100)).unwrap();
        both.offer(at(0), "b", &rows(100)).unwrap();
    }
    drop(both);
    let mut only_a = open(&disk, 2, &["a"]);
    assert_eq!(only_a.status().spool.undeclared_blocks, 10);
    let hello = greet(&mut only_a, at(0), 1 << 20);
    assert!(hello.holds.iter().all(|held| held.stream == "a"), "{hello:?}");
    let (blocks, gaps) = sent(&mut only_a, at(0));
    assert_eq!(blocks.len(), 10);
    assert!(blocks.iter().all(|block| block.1 == "a") && gaps.iter().all(|gap| gap.stream == "a"));
    acknowledge(&mut only_a, at(0), 1, "a");
    assert!(only_a.is_delivered());
    assert_eq!(only_a.status().spool.undeclared_blocks, 10);
    // Without a receiver the spool fills, and what nobody can send makes room first.
    only_a.disconnected(at(0), 0);
    let mut made = 0;
    while only_a.status().spool.undeclared_blocks > 0 {
        only_a.offer(at(0), "a", &rows(100)).unwrap();
        made += 1;
        assert!(made < 1_000, "what cannot be sent stays for ever");
        assert!(disk.used() <= 200_000 + 20_000, "{}", disk.used());
    }
    assert_eq!(only_a.status().spool.blocks, made);
    drop(only_a);
    let mut again = open(&disk, 3, &["a", "b"]);
    greet(&mut again, at(0), 1 << 20);
    let (_, gaps) = sent(&mut again, at(0));
    let lost = gaps.iter().filter(|gap| gap.stream == "b" && gap.reason == Reason::SpoolFull);
    let lost: Vec<_> = lost.map(|gap| (gap.boot, gap.first, gap.last, gap.rows)).collect();
    assert_eq!(lost, [(1, 1, 10, Some(1_000))]);
}

#[test]
fn gaps_alone_keep_no_file() {
    let disk = Shared::default();
    // The end of each life is told in the next one's file, in front of its blocks.
    for boot in 1..=9 {
        let mut both = open(&disk, boot, &["a", "b"]);
        for _ in 0..16 {
            both.offer(at(0), "a", &rows(100)).unwrap();
        }
    }
    let mut only_a = open(&disk, 10, &["a"]);
    greet(&mut only_a, at(0), 1 << 20);
    assert_eq!(sent(&mut only_a, at(0)).0.len(), 144);
    (1..=9).for_each(|boot| acknowledge(&mut only_a, at(0), boot, "a"));
    assert!(only_a.is_delivered());
    only_a.disconnected(at(0), 0);
    let gaps_and_files = disk.used();
    assert!(gaps_and_files > 100_000, "{gaps_and_files}");
    for _ in 0..125 {
        only_a.offer(at(0), "a", &rows(100)).unwrap();
    }
    assert_eq!(only_a.status().spool.dropped_blocks, 0, "{:?}", only_a.status().spool);
}

#[test]
fn a_full_window_is_waited_for_without_asking_again_and_again() {
    let options = SenderOptions { catch_up: Some(Bytes::new(10_000_000)), ..options(1, &["s"]) };
    let mut sender = Sender::<Directory>::open(options, None).unwrap();
    for _ in 0..20 {
        sender.offer(at(0), "s", &rows(100)).unwrap();
    }
    greet(&mut sender, at(5_000), 4_000);
    // Time to earn enough for all blocks.
    let (blocks, _) = sent(&mut sender, at(5_500));
    assert!((1..20).contains(&blocks.len()), "{blocks:?}");
    sender.tick(at(5_500)).unwrap();
    let now = at(5_600).monotonic;
    let next = sender.next_wakeup(at(5_600));
    assert!(next >= now + Nanos::from_millis(100), "{next:?}, {now:?}");
}

/// The receiver's answer to the last question for its time.
fn pong(sender: &mut Sender<Directory>, now: Now) {
    let [sent_ns, received_ns, answered_ns] = [now.wall.as_nanos(); 3];
    let pong = Message::Pong(Pong { sent_ns, received_ns, answered_ns });
    sender.handle(now, &pong.encoded()).unwrap();
}

/// Kinds of what a sender sends.
fn kinds(sender: &mut Sender<Directory>, now: Now) -> Vec<&'static str> {
    let kind = |octets: Vec<u8>| match heard(&octets) {
        Message::Block(_) => "block",
        Message::Ping(_) => "ping",
        Message::Offset(_) => "offset",
        other => panic!("{other:?}"),
    };
    std::iter::from_fn(|| sender.poll_transmit(now)).map(kind).collect()
}

#[test]
fn an_acknowledgement_is_waited_for_only_where_something_depends_on_it() {
    let mut sender = Sender::<Directory>::open(options(1, &["s"]), None).unwrap();
    assert!(!sender.can_hear_later());
    greet(&mut sender, at(0), 40_000);
    assert_eq!(kinds(&mut sender, at(0)), ["ping"]);
    // Nothing is under way that is acknowledged: what comes is something else.
    pong(&mut sender, at(0));
    assert_eq!(kinds(&mut sender, at(0)), ["offset"]);
    assert!(!sender.can_hear_later());
    sender.offer(at(10), "s", &rows(100)).unwrap();
    assert!(!sender.can_hear_later(), "a block is not sent yet");
    assert_eq!(kinds(&mut sender, at(10)), ["block"]);
    assert!(sender.can_hear_later());
    let latest = at(10).monotonic + ANSWERS_WITHIN;
    assert!(sender.next_wakeup(at(10)) <= latest);
    acknowledge(&mut sender, at(20), 1, "s");
    assert!(!sender.can_hear_later());
    // A quarter of the window is under way.
    for _ in 0..12 {
        sender.offer(at(30), "s", &rows(100)).unwrap();
    }
    kinds(&mut sender, at(30));
    assert!(!sender.can_hear_later());
    acknowledge(&mut sender, at(40), 1, "s");
    sender.offer(at(50), "s", &rows(1)).unwrap();
    assert_eq!(kinds(&mut sender, at(50)), ["block"]);
    assert!(sender.can_hear_later());
    sender.finish(at(50));
    assert!(!sender.can_hear_later(), "the end waits for it");
    // What is acknowledged makes room in a spool that is small.
    let spool = SpoolLimits { bytes: Bytes::new(3_000), blocks: 1_000 };
    let small = SenderOptions { spool, ..options(1, &["s"]) };
    let mut sender = Sender::<Directory>::open(small, None).unwrap();
    greet(&mut sender, at(0), 40_000);
    kinds(&mut sender, at(0));
    pong(&mut sender, at(0));
    sender.offer(at(10), "s", &rows(100)).unwrap();
    assert_eq!(kinds(&mut sender, at(10)), ["offset", "block"]);
    assert!(!sender.can_hear_later());
}

#[test]
fn the_receivers_time_is_asked_for_beside_blocks_and_without_them_a_little_later() {
    let mut sender = Sender::<Directory>::open(options(1, &["s"]), None).unwrap();
    greet(&mut sender, at(0), 1 << 20);
    assert_eq!(kinds(&mut sender, at(0)), ["ping"]);
    sender.offer(at(1_000), "s", &rows(1)).unwrap();
    assert_eq!(kinds(&mut sender, at(1_000)), ["block"]);
    assert!(!sender.can_hear_later(), "the answer to the question comes first");
    pong(&mut sender, at(1_000));
    assert_eq!(kinds(&mut sender, at(1_000)), ["offset"]);
    assert!(sender.can_hear_later());
    sender.offer(at(3_600), "s", &rows(1)).unwrap();
    assert_eq!(kinds(&mut sender, at(3_600)), ["ping", "block"]);
    assert_eq!(kinds(&mut sender, at(7_599)), [""; 0]);
    assert_eq!(kinds(&mut sender, at(7_600)), ["ping"]);
}

#[test]
fn nobody_wakes_up_to_sync_where_nothing_is_to_be_synced() {
    let mut sender = Sender::<Directory>::open(options(1, &["s"]), None).unwrap();
    greet(&mut sender, at(0), 1 << 20);
    assert_eq!(kinds(&mut sender, at(0)), ["ping"]);
    sender.tick(at(0)).unwrap();
    sender.offer(at(10), "s", &rows(1)).unwrap();
    assert_eq!(sender.next_wakeup(at(10)), at(4_000).monotonic, "for the next ping");
    let disk = Shared::default();
    let mut sender = open(&disk, 1, &["s"]);
    greet(&mut sender, at(0), 1 << 20);
    sent(&mut sender, at(0));
    assert_eq!(sender.next_wakeup(at(0)), at(4_000).monotonic, "for the next ping");
    sender.offer(at(10), "s", &rows(1)).unwrap();
    sent(&mut sender, at(10));
    let synced = || disk.0.borrow().synced.values().sum::<usize>();
    let before = synced();
    assert_eq!(sender.next_wakeup(at(10)), at(1_010).monotonic, "a second after it was accepted");
    sender.tick(at(1_009)).unwrap();
    assert_eq!(synced(), before);
    sender.tick(at(1_010)).unwrap();
    assert!(synced() > before);
    assert_eq!(sender.next_wakeup(at(1_010)), at(4_000).monotonic, "all is synced");
    // What the receiver has by then is not needed.
    let before = synced();
    sender.offer(at(2_000), "s", &rows(1)).unwrap();
    sent(&mut sender, at(2_000));
    assert_eq!(sender.next_wakeup(at(2_000)), at(3_000).monotonic);
    acknowledge(&mut sender, at(2_100), 1, "s");
    assert_eq!(sender.next_wakeup(at(2_100)), at(4_000).monotonic, "for the next ping");
    sender.tick(at(3_000)).unwrap();
    assert_eq!(synced(), before);
}

#[test]
fn a_receiver_that_greets_and_stores_nothing_is_not_stormed() {
    let mut sender = Sender::<Directory>::open(options(1, &["s"]), None).unwrap();
    sender.offer(at(0), "s", &rows(1)).unwrap();
    let mut ms = 0;
    let mut wait = |sender: &mut Sender<Directory>, acknowledges: bool| {
        greet(sender, at(ms), 1 << 20);
        if acknowledges {
            acknowledge(sender, at(ms), 1, "s");
        }
        // The least wait: half of it is left to chance.
        sender.disconnected(at(ms), 0);
        let begun = ms;
        while !sender.wants_connection(at(ms)) {
            ms += 1;
        }
        ms - begun
    };
    let waits: Vec<_> = (0..9).map(|_| wait(&mut sender, false)).collect();
    assert_eq!(waits, [125, 250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
    assert_eq!(wait(&mut sender, true), 125);
    assert_eq!(wait(&mut sender, false), 125);
    assert_eq!(wait(&mut sender, false), 250);
}

#[test]
fn what_found_no_room_in_the_queue_is_told_also_by_who_ends() {
    const OFFERED: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    // Nobody listens there.
    let authority = "127.0.0.1:1".to_owned();
    let target = Target { authority, prefix: String::new(), roots: None, token: None };
    let spool = SpoolLimits::STANDARD;
    let wide = SenderOptions { spool, ..options(1, &["s"]) };
    let uplink = Uplink::start(target, wide, Some(dir.path())).unwrap();
    let block = rows(1);
    for _ in 0..OFFERED {
        uplink.offer("s", block.clone()).unwrap();
    }
    assert!(uplink.offer("other", block).is_err());
    drop(uplink);
    let files = Directory::open(dir.path()).unwrap();
    let wide = SenderOptions { spool, ..options(2, &["s"]) };
    let mut next = Sender::open(wide, Some(files)).unwrap();
    greet(&mut next, at(0), 64 << 20);
    let mut told = 0;
    let (blocks, gaps) = loop {
        let (blocks, gaps) = sent(&mut next, at(0));
        told += blocks.len() as u64;
        if blocks.is_empty() {
            break (blocks, gaps);
        }
        let ranges = blocks.iter().map(|block| (block.2, block.2)).collect();
        let gone: u64 = lost(&gaps);
        told += gone;
        let ack = Message::Ack(vec![Numbers { boot: 1, stream: "s".into(), ranges }]);
        next.handle(at(0), &ack.encoded()).unwrap();
    };
    told += blocks.len() as u64 + lost(&gaps);
    assert_eq!(told, OFFERED);
}

#[test]
fn a_line_that_takes_nothing_more_keeps_no_processor_busy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let target = Target { authority, prefix: String::new(), roots: None, token: None };
    let spool = SpoolLimits::STANDARD;
    let wide = SenderOptions { spool, ..options(1, &["s"]) };
    let mut driver = Driver::open(target, wide).unwrap();
    for _ in 0..900 {
        driver.offer("s", &rows(1_000)).unwrap();
    }
    // It greets, and then reads nothing.
    let receiver = std::thread::spawn(move || receivers::greeting::greet(&listener));
    assert!(driver.wait(Nanos::from_secs(10), |status| status.sender.is_welcome).sender.is_welcome);
    let socket = receiver.join().unwrap();
    // The next time that the receiver's time is asked for is within that.
    let mut turns = 0;
    let status = driver.wait(PING_EVERY + Nanos::SECOND, |_| {
        turns += 1;
        false
    });
    assert_eq!((status.trouble, status.sender.acknowledged_blocks), (None, 0));
    assert!(status.written_bytes < 7_000_000, "{} octets were taken", status.written_bytes);
    assert!((3..100).contains(&turns), "{turns} turns");
    drop(socket);
}

/// Blocks that were told to have found no room.
fn lost(gaps: &[Gap]) -> u64 {
    let of_queue = gaps.iter().filter(|gap| gap.reason == Reason::QueueFull);
    of_queue.map(|gap| gap.last - gap.first + 1).sum()
}
