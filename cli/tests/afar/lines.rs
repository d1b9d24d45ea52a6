//! Collectors behind a line that is slow, lossy or cut: two network namespaces with a relay of packets between them. The
//! receiver has every row that a collector's own recording has, but for those of which a gap tells.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use meikyo_spaces::line::{self, Condition, Line, LinePlan};
use meikyo_testing::certificate::{self, Certificate};
use meikyo_units::{BitsPerSecond, Bytes, Nanos, WallTime};
use serde_json::Value;

use super::collectors::{Collector, Farm, TABLES, rows, wait_until};
use crate::{Receiver, new_token, next, scratch};

/// How often the line changes in the short form.
const CHANGES: u64 = 5;

/// Where the receiver listens.
const PORT: u16 = 8_420;

/// A spool that a cut of some seconds fills.
const NARROW: &str = "64KiB";

/// How long the first cut lasts by the collectors' clock: longer than the narrow spool.
const FIRST_CUT: Nanos = Nanos::from_secs(5);

/// A line on a good day.
const PLAN: LinePlan = LinePlan {
    rate: BitsPerSecond::new(4_000_000),
    delay: Nanos::from_millis(50),
    queue: Bytes::new(50_000),
    lost_per_million: 10_000,
};

/// What a gap tells: the span of time of rows that are missing, and how many they are.
struct Gap {
    from: i64,
    until: i64,
    rows: i64,
}

fn gaps(received: &Path) -> Vec<Gap> {
    let told = |((from, text), count): (&(i64, String), &i64)| {
        assert_eq!(*count, 1, "a gap is told twice: {text}");
        let word = |name: &str| text.split(' ').find_map(|word| word.strip_prefix(name)).unwrap();
        let reason = word("reason=");
        assert!(["spool_full", "ended"].contains(&reason), "{text}");
        // Nothing is missing of a life that ended well.
        let rows = if reason == "ended" { 0 } else { word("rows=").parse().unwrap() };
        Gap { from: *from, until: word("until_ns=").parse().unwrap(), rows }
    };
    rows(received, "transport_gaps").iter().map(told).collect()
}

/// Compares a collector's own recording with the receiver's; how many rows it has, and how many of them are missing there,
/// all of which gaps tell of.
fn compare(own: &Path, received: &Path, seed: u64) -> (i64, i64) {
    let gaps = gaps(received);
    let (mut all, mut missing) = (0, 0);
    for table in TABLES {
        let mut left = rows(own, table);
        assert!(!left.is_empty(), "{table} of the collector's own recording is empty");
        all += left.values().sum::<i64>();
        for (row, count) in rows(received, table) {
            *left.entry(row).or_default() -= count;
        }
        for ((time, text), count) in left.into_iter().filter(|(_, count)| *count != 0) {
            assert!(count > 0, "SEED={seed}: {table} has what nobody measured: {time} {text}");
            let is_told = |gap: &Gap| gap.rows > 0 && (gap.from..=gap.until).contains(&time);
            assert!(gaps.iter().any(is_told), "SEED={seed}: {table} lacks {time} {text}");
            missing += count;
        }
    }
    let told: i64 = gaps.iter().map(|gap| gap.rows).sum();
    assert!(missing <= told, "SEED={seed}: {missing} rows are missing, {told} were told");
    (all, missing)
}

/// A collector, its farm, and what their cluster is called.
type Site = (&'static str, Collector, Farm);

/// Two namespaces, the line between them, and what lets collectors in.
struct Scene {
    dir: tempfile::TempDir,
    line: Line,
    certificate: Certificate,
}

impl Scene {
    fn set() -> Self {
        let dir = scratch();
        let line = Line::make().unwrap();
        line.set(Condition::As(PLAN));
        let names = format!("IP:{}", line::ONE);
        let certificate = certificate::make(dir.path(), &names).unwrap();
        let (token, admitted) = new_token("--new-token=ingest:*");
        let (view, viewer) = new_token("--new-token");
        let scene = Self { dir, line, certificate };
        fs::write(scene.path("token"), token).unwrap();
        fs::write(scene.path("view"), view).unwrap();
        fs::write(scene.path("tokens"), admitted + &viewer).unwrap();
        scene
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn received(&self, name: &str) -> PathBuf {
        self.dir.path().join("rec/clusters").join(name)
    }

    fn receive(&self) -> Receiver {
        let [chain, key] = [&self.certificate.chain, &self.certificate.key];
        let [chain, key] = [chain, key].map(|path| path.to_str().unwrap());
        let tokens = self.path("tokens");
        let more = ["--token-file", &tokens, "--tls-cert", chain, "--tls-key", key];
        let (rec, address) = (self.dir.path().join("rec"), format!("{}:{PORT}", line::ONE));
        self.line.one.within(|| Receiver::start_at(&rec, &address, &more)).unwrap()
    }

    fn to(&self) -> String {
        format!("https://{}:{PORT}", line::ONE)
    }

    fn measure(&self) -> [Site; 2] {
        let measure = |(name, hosts, first, spool): (&'static str, u32, &str, &str)| {
            let farm = Farm::start(self.dir.path(), name, hosts, first);
            let (token, chain) = (self.path("token"), self.certificate.chain.to_str().unwrap());
            let more = ["--token-file", &token, "--tls-roots", chain, "--spool-max", spool];
            let collector = Collector::sending(self.dir.path(), &farm, name, &self.to(), &more);
            (name, collector, farm)
        };
        let sites = [("wide", 20, "127.1.0.1", "1GiB"), ("narrow", 10, "127.2.0.1", NARROW)];
        self.line.other.within(|| sites.map(measure)).unwrap()
    }

    /// What `meikyo top` says from the other end of the line.
    fn look_with_top(&self) {
        let look = || {
            let mut top = Command::new(env!("CARGO_BIN_EXE_meikyo"));
            top.args(["top", &self.to(), "--once", "--json", "--token-file", &self.path("view")]);
            top.arg("--tls-roots").arg(&self.certificate.chain).output().unwrap()
        };
        let said = self.line.other.within(look).unwrap();
        let said: Value =
            serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        let trip = said["clusters"][0]["senders"][0]["round_trip_us"].as_u64();
        assert!(trip.is_some_and(|trip| trip >= 100_000), "50 ms in either direction: {said}");
    }

    /// Cuts the line until so much more was measured. What is in the buffers of a connection arrives behind that,
    /// unless its other end is gone.
    fn cut(&self, receiver: Receiver, sites: &[Site], span: Nanos, is_killed: bool) -> Receiver {
        self.line.set(Condition::Cut);
        let until = WallTime::now() + span;
        let measured = || sites.iter().for_each(|(_, of, _)| wait_until(&of.own, until));
        let receiver = if is_killed {
            receiver.kill();
            measured();
            self.receive()
        } else {
            measured();
            receiver
        };
        self.line.set(Condition::As(PLAN));
        receiver
    }
}

#[test]
fn over_lines_that_are_slow_lossy_and_cut_all_rows_arrive_but_those_that_gaps_tell_of() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        return meikyo_testing::skipped("only root makes network namespaces and tun devices");
    }
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("MEIKYO_SOAK_SEED").unwrap_or(20_261_127);
    let (seconds, begin) = (number("MEIKYO_SOAK_SECONDS"), Instant::now());
    let mut random = seed | 1;
    let scene = Scene::set();
    let mut receiver = scene.receive();
    let mut sites = scene.measure();
    for (name, ..) in &sites {
        wait_until(&scene.received(name), WallTime::now());
    }
    scene.look_with_top();
    // A cut that the narrow spool does not last.
    receiver = scene.cut(receiver, &sites, FIRST_CUT, true);
    // Where there is time, a session ends of a long one.
    let longest = if seconds.is_some() { 30_000 } else { 2_000 };
    for change in 0_u64.. {
        let goes_on = seconds.map_or(change < CHANGES, |most| begin.elapsed().as_secs() < most);
        if !goes_on {
            break;
        }
        let (kind, part) = (next(&mut random, 4), next(&mut random, 1_000));
        let rate = BitsPerSecond::new((400 + part) * 1_000);
        let lost_per_million = u32::try_from(part * 100).unwrap();
        match kind {
            0 => {
                let span = Nanos::from_millis(longest * part / 1_000);
                receiver = scene.cut(receiver, &sites, span, next(&mut random, 2) == 0);
            }
            1 => scene.line.set(Condition::As(LinePlan { rate, ..PLAN })),
            // Up to 10 %.
            2 => scene.line.set(Condition::As(LinePlan { lost_per_million, ..PLAN })),
            _ => scene.line.set(Condition::Free),
        }
        // Sometimes the next change comes before anything is well again.
        if next(&mut random, 3) > 0 {
            let (name, ..) = sites[usize::try_from(next(&mut random, 2)).unwrap()];
            wait_until(&scene.received(name), WallTime::now());
        }
    }
    scene.line.set(Condition::Free);
    for (name, collector, _) in &mut sites {
        wait_until(&scene.received(name), WallTime::now());
        let (said, code) = collector.stop();
        assert_eq!(said["sent"]["blocks_waiting"], 0, "SEED={seed}: {name}: {said}");
        // The answer is no where something was dropped.
        assert_eq!(code, Some(i32::from(*name == "narrow")), "SEED={seed}: {name}: {said}");
    }
    receiver.end();
    let carried = scene.line.carried();
    assert!(carried.lost > 0, "SEED={seed}: {carried:?}");
    for (name, collector, _) in &sites {
        let (all, missing) = compare(&collector.own, &scene.received(name), seed);
        let told = format!("SEED={seed}: {name}: {missing} of {all} rows are told to be missing");
        assert_eq!(*name == "narrow", missing > 0, "{told}");
        crate::tell(&told);
    }
}
