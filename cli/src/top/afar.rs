//! One cluster of a receiver, live: its newest values as its server sends them.
//!
//! Each table is watched over a web socket of its own, and what comes is handed over as the steps that a recording of
//! this machine would give. What sockets do not tell (devices, how agents update their values) is asked for every 10 s.
//! The past is not read over the line: the server's page has it.

mod facts;
mod socket;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use meikyo_live::Step;
use meikyo_snmp::tables::{batches, polls};
use meikyo_transport::shell::Target;
use meikyo_units::{Nanos, WallTime, in_one_line};

use super::metric::Metric;
use super::model::{Model, WANTED};
use super::screen::{Begin, Fed, Place, Screen, Wish};
use super::session::BEHIND_LEAST;
use facts::Facts;
use socket::Watched;

/// How often values come, but for how the intervals of devices ended, of which each counts.
const VALUES_EVERY: Nanos = Nanos::from_secs(1);

/// How the names of threads begin that turn a panic of what they call into an error.
pub(super) const CATCHES: &str = "watch ";

/// What waits to be shown; where it is full, the threads wait, and the server leaves out steps.
const NEWS_MAX: usize = 1_024;

/// What comes of a cluster.
#[derive(Debug)]
enum News {
    /// All series of a table by now, by number.
    Series(&'static str, Vec<Vec<String>>),
    /// What a table's socket brought.
    Step(Step),
    /// What the server's clock said.
    Clock(WallTime),
    /// What was asked for beside the sockets.
    Facts(Facts),
    /// Why nothing comes of a table, or that it comes again.
    Trouble(&'static str, Option<String>),
}

/// A cluster at a server, and what feeds its view.
#[derive(Debug)]
pub(super) struct Afar {
    screen: Screen,
    news: Receiver<News>,
    /// Tells the threads that nobody looks any more.
    is_over: Arc<AtomicBool>,
    /// All series that are known, by table.
    series: BTreeMap<&'static str, Vec<Vec<String>>>,
    /// What is added to this machine's clock to have the server's, ns.
    ahead: Option<i64>,
    /// The span between two polls, if it is known.
    interval: Option<Nanos>,
    /// Tables of which nothing comes, and why.
    lost: BTreeMap<&'static str, String>,
}

impl Afar {
    /// Begins to watch a recording of a server; an error is for people.
    pub(super) fn open(
        target: &Target,
        recording: &str,
        metric: Metric,
        every: Nanos,
    ) -> Result<Self, String> {
        let facts = Facts::ask(target, recording)?;
        let no_thread = |error: io::Error| in_one_line(&error);
        let begin = Begin {
            name: facts.name.clone(),
            running: facts.is_running,
            simulated: facts.is_simulated,
            metric,
            every,
            times: facts.times,
        };
        let (tell, news) = sync_channel(NEWS_MAX);
        let is_over = Arc::new(AtomicBool::new(false));
        let mut afar = Self {
            screen: Screen::new(begin, Model::new(facts.devices())),
            news,
            is_over,
            series: BTreeMap::new(),
            ahead: None,
            interval: None,
            lost: BTreeMap::new(),
        };
        for watched in watched(target, recording, &facts) {
            watched.start(tell.clone(), Arc::clone(&afar.is_over)).map_err(no_thread)?;
        }
        afar.start_asking(target, recording, tell).map_err(no_thread)?;
        afar.take_facts(facts);
        Ok(afar)
    }

    fn start_asking(
        &self,
        target: &Target,
        recording: &str,
        tell: SyncSender<News>,
    ) -> io::Result<()> {
        let (target, recording) = (target.clone(), recording.to_owned());
        let is_over = Arc::clone(&self.is_over);
        std::thread::Builder::new().name("facts".to_owned()).spawn(move || {
            meikyo_recording::lower_priority();
            facts::keep_asking(&target, &recording, &tell, &is_over);
        })?;
        Ok(())
    }

    fn take(&mut self, news: News, clock: WallTime) {
        match news {
            News::Series(table, labels) => {
                self.screen.model.relearn(table, &labels);
                self.series.insert(table, labels);
            }
            // As with a recording of this machine, what is paused stands still.
            News::Step(step) if self.screen.follows() => self.screen.apply([&step]),
            News::Step(_) => {}
            News::Clock(there) => {
                // What was longer on its way says that the server's clock is more behind.
                let ahead = there.as_nanos().saturating_sub(clock.as_nanos());
                self.ahead = Some(self.ahead.map_or(ahead, |known| known.max(ahead)));
            }
            News::Facts(facts) => self.take_facts(facts),
            News::Trouble(table, Some(text)) => drop(self.lost.insert(table, text)),
            News::Trouble(table, None) => {
                if self.lost.remove(table).is_some() && self.lost.is_empty() {
                    self.screen.trouble = None;
                }
            }
        }
    }

    fn take_facts(&mut self, facts: Facts) {
        let known: Vec<&str> =
            self.screen.model.devices.iter().map(|device| device.name.as_str()).collect();
        if !facts.devices().map(|device| device.name).eq(known) {
            self.screen.model = Model::new(facts.devices());
            for (table, labels) in &self.series {
                self.screen.model.relearn(table, labels);
            }
        }
        self.screen.running = facts.is_running;
        self.screen.rules_set = facts.rules_set;
        self.interval = facts.interval;
        self.screen.model.hold(facts.held);
    }

    /// Notes how old the newest answer is, where it should be newer: devices of which nothing comes over the line must
    /// not be called silent.
    fn see_whether_behind(&mut self, there: WallTime) {
        let newest = self.screen.model.now().filter(|_| !self.screen.simulated);
        let behind = newest.map(|newest| there.since(newest));
        let usual = self.interval.map_or(Nanos::ZERO, |interval| interval + interval);
        self.screen.behind = behind.filter(|behind| *behind >= BEHIND_LEAST.max(usual));
    }
}

impl Fed for Afar {
    fn screen(&mut self) -> &mut Screen {
        &mut self.screen
    }

    fn clock(&self, here: WallTime) -> WallTime {
        let there = here.as_nanos().saturating_add(self.ahead.unwrap_or(0));
        WallTime::from_nanos(there)
    }

    fn tick(&mut self, clock: WallTime) {
        while let Ok(news) = self.news.try_recv() {
            self.take(news, clock);
        }
        if let Some(text) = self.lost.values().next() {
            self.screen.trouble = Some(text.clone());
        }
        let there = self.clock(clock);
        self.see_whether_behind(there);
        self.screen.arrange(self.screen.instant(there));
    }

    fn carry_out(&mut self, wish: Wish) {
        if let Wish::Seek(_) = wish {
            self.screen.place = Place::Live { paused_at: None };
            self.screen.trouble = Some("the past of a cluster at a server is on its page".into());
        }
    }
}

impl Drop for Afar {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// What is watched: of the tables that are shown those that the recording has, and of their columns those that a server
/// gives live. Which batch a request was in is not among them, so that nothing is known of round trips.
fn watched(target: &Target, recording: &str, facts: &Facts) -> Vec<Watched> {
    let tables = WANTED.iter().filter(|wanted| wanted.table != batches::NAME);
    let wanted = tables.filter_map(|wanted| {
        let table = facts.tables.iter().find(|table| table.name == wanted.table)?;
        let has = |name: &&str| {
            table.columns.iter().any(|column| column.name == **name && column.is_drawable())
        };
        let columns = wanted.columns.iter().copied().filter(|name| has(name));
        let is_counted = wanted.table == polls::NAME;
        Some(Watched {
            target: target.clone(),
            recording: recording.to_owned(),
            table: wanted.table,
            columns: columns.map(str::to_owned).collect(),
            labels: table.labels.clone(),
            every: (!is_counted).then_some(VALUES_EVERY),
            tells_of_intervals: is_counted,
        })
    });
    wanted.filter(|watched| !watched.columns.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use meikyo_live::{Frame, Interval};
    use meikyo_snmp::tables::interfaces;

    use super::*;

    const NOW: WallTime = WallTime::from_nanos(1_700_000_000_000_000_000);

    fn afar() -> (Afar, SyncSender<News>) {
        let (tell, news) = sync_channel(NEWS_MAX);
        let begin = Begin {
            name: "west".into(),
            running: true,
            simulated: false,
            metric: Metric::Sent,
            every: Nanos::SECOND,
            times: Some((NOW, NOW)),
        };
        let device = |name: &str| meikyo_live::Device {
            name: name.into(),
            role: "host",
            group: None,
            agent: None,
        };
        let afar = Afar {
            screen: Screen::new(begin, Model::new(["node001", "node002"].map(device))),
            news,
            is_over: Arc::default(),
            series: BTreeMap::new(),
            ahead: None,
            interval: None,
            lost: BTreeMap::new(),
        };
        (afar, tell)
    }

    /// A row of each of the series of a table, in its first column.
    fn frame(table: &str, column: &str, values: &[f32]) -> Frame {
        Frame {
            table: table.into(),
            columns: [column.to_owned()].into(),
            times: vec![NOW.as_nanos(); values.len()],
            series: (0..).take(values.len()).collect(),
            values: vec![values.to_vec()],
            states: vec![0; values.len()],
            ages_ms: vec![0.0; values.len()],
        }
    }

    fn step(frames: Vec<Frame>) -> News {
        let intervals = vec![Interval { time: NOW.as_nanos(), ok: 2, ..Interval::default() }];
        News::Step(Step { newest: NOW.as_nanos(), frames, intervals, events: Vec::new() })
    }

    #[test]
    fn what_sockets_bring_is_known_of_the_devices_and_their_parts() {
        let (mut afar, tell) = afar();
        let labels = |of: &[&[&str]]| -> Vec<Vec<String>> {
            of.iter().map(|of| of.iter().map(|text| (*text).to_owned()).collect()).collect()
        };
        let parts = labels(&[&["node002", "eth0"], &[], &["node001", "eth0"]]);
        tell.send(News::Series(interfaces::NAME, parts)).unwrap();
        tell.send(News::Series(polls::NAME, labels(&[&["node001"], &["node002"]]))).unwrap();
        let sent = frame(interfaces::NAME, interfaces::OUT_OCTETS.name(), &[7.0, 8.0, 9.0]);
        let answers = frame(polls::NAME, polls::RECEIVED_US.name(), &[500.0, 700.0]);
        tell.send(step(vec![sent, answers])).unwrap();
        afar.tick(NOW);
        let sums: Vec<_> =
            afar.screen.model.devices.iter().map(|device| device.sum(|part| part.sent)).collect();
        assert_eq!(sums, [Some(9.0), Some(7.0)]);
        assert_eq!(afar.screen.model.devices[1].answered, Some(NOW.as_nanos() + 700_000));
        assert_eq!(afar.screen.model.health(NOW.as_nanos()).all, 2);
        // Other numbers after the server was started again: nothing is mixed up.
        let parts = labels(&[&["node001", "eth0"], &["node002", "eth0"]]);
        tell.send(News::Series(interfaces::NAME, parts)).unwrap();
        let sent = frame(interfaces::NAME, interfaces::OUT_OCTETS.name(), &[1.0, 2.0]);
        tell.send(step(vec![sent])).unwrap();
        afar.tick(NOW);
        let sums: Vec<_> =
            afar.screen.model.devices.iter().map(|device| device.sum(|part| part.sent)).collect();
        assert_eq!(sums, [Some(1.0), Some(2.0)]);
    }

    #[test]
    fn ages_are_by_the_servers_clock_and_a_line_that_brings_nothing_makes_nobody_silent() {
        let (mut afar, tell) = afar();
        // This machine's clock is an hour behind; the second message was longer on its way.
        let here = NOW.before(Nanos::from_secs(3_600));
        for late in [Nanos::ZERO, Nanos::from_millis(80)] {
            tell.send(News::Clock(NOW)).unwrap();
            afar.tick(here + late);
        }
        assert_eq!(afar.clock(here), NOW);
        tell.send(News::Series(polls::NAME, vec![vec!["node001".into()]])).unwrap();
        tell.send(step(vec![frame(polls::NAME, polls::RECEIVED_US.name(), &[0.0])])).unwrap();
        afar.tick(here);
        assert_eq!(afar.screen.behind, None);
        let later = here + Nanos::from_secs(20);
        afar.tick(later);
        assert_eq!(afar.screen.behind, Some(Nanos::from_secs(20)));
        let shown = afar.screen.instant(afar.clock(later));
        assert_eq!(afar.screen.model.health(shown.as_nanos()).silent, Vec::<usize>::new());
    }

    #[test]
    fn trouble_is_told_until_values_come_again_and_the_past_is_elsewhere() {
        let (mut afar, tell) = afar();
        tell.send(News::Trouble(polls::NAME, Some("cut".into()))).unwrap();
        afar.tick(NOW);
        assert_eq!(afar.screen.trouble.as_deref(), Some("cut"));
        tell.send(News::Trouble(polls::NAME, None)).unwrap();
        afar.tick(NOW);
        assert_eq!(afar.screen.trouble, None);
        afar.screen.place = Place::Past { at: NOW, playing: false };
        afar.carry_out(Wish::Seek(NOW));
        assert!(afar.screen.follows());
        assert_eq!(
            afar.screen.trouble.as_deref(),
            Some("the past of a cluster at a server is on its page")
        );
    }
}
