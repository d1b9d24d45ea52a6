//! What feeds the view: a running recording, or a past that is played.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use meikyo_live::{Live, Step, Watch, rules};
use meikyo_recording::{Kind, ReadError};
use meikyo_units::glob::matches;
use meikyo_units::{Nanos, WallTime, in_one_line};

use super::metric::Metric;
use super::model::{Model, WANTED};
use super::reader::{Job, Reader};
use super::screen::{Begin, Fed, Place, Screen, Wish};

/// How much of the past is read before it is needed.
const AHEAD: Nanos = Nanos::from_secs(5);
/// How often it is looked whether the recording still runs, and for new devices.
const LOOK: Nanos = Nanos::from_secs(2);

/// A view that is less behind the end of the log is live.
pub(super) const BEHIND_LEAST: Nanos = Nanos::from_millis(1_500);

/// How often it is read anew how agents update their values, in recorded time.
const HOLD: Nanos = Nanos::from_secs(10);
/// How often the end of the log is looked for while a view may be behind.
const COMPARE: Nanos = Nanos::from_millis(500);

/// What is watched.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) dir: PathBuf,
    /// Names and patterns; all devices when `None`.
    pub(super) devices: Option<Vec<String>>,
}

/// A view and what feeds it.
#[derive(Debug)]
pub(super) struct Session {
    subject: Subject,
    watch: Arc<Watch>,
    pub(super) screen: Screen,
    live: Option<Live>,
    reader: Option<Reader>,
    epoch: u64,
    /// Steps of the past that were read and are not shown yet.
    steps: VecDeque<Step>,
    /// Up to where the past was read; `None` while it is not.
    read_to: Option<WallTime>,
    asked: bool,
    looked: WallTime,
    ticked: WallTime,
    /// When it was last seen how far the view is behind the log.
    compared: WallTime,
    /// The instant of which it is known how agents update their values.
    held_at: WallTime,
}

impl Session {
    /// Opens the recording and reads its end.
    pub(super) fn open(subject: Subject, metric: Metric, every: Nanos) -> Result<Self, ReadError> {
        let (watch, model) = opened(&subject)?;
        let identity = watch.recording().identity();
        let name = subject.dir.canonicalize().unwrap_or_else(|_| subject.dir.clone());
        let name = name.file_name().map(|name| name.to_string_lossy().into_owned());
        let begin = Begin {
            name: name.unwrap_or_default(),
            running: watch.is_running(),
            simulated: identity.kind == Kind::Simulated,
            metric,
            every,
            times: watch.times()?,
        };
        let now = WallTime::now();
        let mut session = Self {
            subject,
            watch,
            screen: Screen::new(begin, model),
            live: None,
            reader: None,
            epoch: 0,
            steps: VecDeque::new(),
            read_to: None,
            asked: false,
            looked: now,
            ticked: now,
            compared: WallTime::default(),
            held_at: WallTime::default(),
        };
        session.read_end()?;
        Ok(session)
    }

    /// What is watched, for looking at it when the view has ended.
    pub(super) fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }

    /// Begins to follow what is new, if the recording runs.
    pub(super) fn follow(&mut self) {
        if self.screen.running && self.live.is_none() {
            self.live = Some(self.watch.live());
        }
    }

    /// Compares what is shown with the end of the log, where the clock says that it may be behind: a view that
    /// has not read everything must not call devices silent of which it has not read the answers.
    fn see_whether_behind(&mut self, clock: WallTime) {
        let newest = self.screen.model.now().filter(|_| self.screen.follows());
        let late = newest.filter(|newest| clock.since(*newest) >= BEHIND_LEAST);
        let Some(newest) = late.filter(|_| !self.screen.simulated) else {
            self.screen.behind = None;
            return;
        };
        if clock.since(self.compared) < COMPARE {
            return;
        }
        self.compared = clock;
        match self.watch.times() {
            Ok(times) => {
                let end = times.map_or(newest, |(_, end)| end);
                self.screen.behind = Some(end.since(newest)).filter(|it| *it >= BEHIND_LEAST);
            }
            Err(error) => self.screen.trouble = Some(in_one_line(&error)),
        }
    }

    /// Reads the end of the recording, so that values and charts are there at once.
    fn read_end(&mut self) -> Result<(), ReadError> {
        let Some((_, end)) = self.watch.times()? else { return Ok(()) };
        let mut past = self.watch.past(end.before(self.warm()))?;
        // What is read at once stands in memory at once; each piece costs a look at all files.
        let piece = match self.screen.model.devices.len() {
            0..=300 => self.warm(),
            301..=2_000 => Nanos::from_secs(2),
            _ => Nanos::SECOND,
        };
        let (mut at, end_of_all) = (end.before(self.warm()), end + Nanos::new(1));
        while at < end_of_all {
            at = (at + piece).min(end_of_all);
            let steps = past.read(at)?;
            self.learn();
            for step in &steps {
                self.screen.model.apply(step);
            }
        }
        self.held_at = end_of_all;
        self.screen.model.hold(self.watch.held(end_of_all)?);
        self.screen.rules_set = rules::are_set(self.watch.recording())?;
        self.screen.times = self.watch.times()?;
        self.screen.arrange(self.screen.instant(WallTime::now()));
        Ok(())
    }

    /// How far back it is read for rates and charts: the more devices, the less.
    fn warm(&self) -> Nanos {
        Nanos::from_secs(match self.screen.model.devices.len() {
            0..=300 => 60,
            301..=2_000 => 10,
            _ => 3,
        })
    }

    fn seek(&mut self, at: WallTime) {
        self.forget_past();
        self.screen.model = self.screen.model.emptied();
        let job = Job { epoch: self.epoch, from: Some(at.before(self.warm())), to: at + AHEAD };
        self.ask(job);
    }

    fn ask(&mut self, job: Job) {
        if self.reader.is_none() {
            match Reader::start(&self.watch) {
                Ok(reader) => self.reader = Some(reader),
                Err(error) => self.screen.trouble = Some(in_one_line(&error)),
            }
        }
        if let Some(reader) = &self.reader {
            self.asked = reader.ask(job);
            self.screen.reading = self.asked && self.read_to.is_none();
        }
    }

    fn forget_past(&mut self) {
        self.epoch += 1;
        self.steps.clear();
        self.read_to = None;
        self.asked = false;
        self.screen.reading = false;
    }

    fn take_pieces(&mut self) {
        while let Some(piece) = self.reader.as_ref().and_then(Reader::try_piece) {
            if piece.epoch != self.epoch {
                continue;
            }
            self.asked = false;
            self.screen.reading = false;
            match piece.steps {
                Ok(steps) => {
                    self.steps.extend(steps);
                    self.read_to = Some(piece.to);
                }
                Err(text) => self.screen.trouble = Some(text),
            }
        }
    }

    /// Shows the steps up to where the past is.
    fn show_past(&mut self) {
        let Place::Past { at, .. } = self.screen.place else { return };
        let due = self.steps.partition_point(|step| step.newest <= at.as_nanos());
        if due > 0 {
            self.learn();
            let steps: Vec<_> = self.steps.drain(..due).collect();
            self.screen.apply(&steps);
        }
    }

    fn read_ahead(&mut self) {
        let Place::Past { at, playing: true } = self.screen.place else { return };
        let Some((_, end)) = self.screen.times else { return };
        match self.read_to {
            _ if self.asked => {}
            // The end was read at the begin, but not piece by piece.
            None => self.ask(Job { epoch: self.epoch, from: Some(at), to: at + AHEAD }),
            Some(read_to) => {
                let speed = self.screen.speed.max(0);
                let ahead = Nanos::new(AHEAD.get() << speed);
                if read_to <= end && read_to.since(at) < ahead {
                    self.ask(Job { epoch: self.epoch, from: None, to: read_to + ahead });
                }
            }
        }
    }

    /// Learns the series that are new.
    fn learn(&mut self) {
        let others = self.watch.others().iter().map(|other| other.table.as_str());
        for table in WANTED.iter().map(|wanted| wanted.table).chain(others) {
            let known = self.screen.model.known(table);
            let labels = self.watch.labels(table, known);
            if !labels.is_empty() {
                self.screen.model.learn(table, &labels);
            }
        }
    }

    /// Looks whether the recording runs, and for devices and tables that are new.
    fn look(&mut self) -> Result<(), ReadError> {
        let running = self.watch.is_running();
        if self.screen.running && !running {
            self.live = None;
            self.screen.times = self.watch.times()?;
            if let (Place::Live { .. }, Some((_, at))) = (self.screen.place, self.screen.times) {
                self.screen.place = Place::Past { at, playing: false };
                self.screen.trouble = Some("the measurement has ended; Space replays it".into());
            }
        }
        self.screen.running = running;
        if running && !self.screen.follows() {
            self.screen.times = self.watch.times()?;
        }
        self.screen.rules_set = rules::are_set(self.watch.recording())?;
        let shown = self.screen.model.now().unwrap_or_default() + Nanos::new(1);
        if shown.since(self.held_at) >= HOLD || shown < self.held_at {
            self.held_at = shown;
            self.screen.model.hold(self.watch.held(shown)?);
        }
        if self.screen.follows() && self.is_outgrown()? {
            let (watch, model) = opened(&self.subject)?;
            (self.watch, self.screen.model) = (watch, model);
            (self.live, self.reader) = (None, None);
            self.forget_past();
            self.read_end()?;
            self.follow();
        }
        Ok(())
    }

    /// Whether there are devices or tables that were not there when the recording was opened.
    fn is_outgrown(&self) -> Result<bool, ReadError> {
        if self.watch.lacks_tables(&WANTED)? {
            return Ok(true);
        }
        let devices = self.watch.devices()?;
        let new = |device: &meikyo_live::Device| {
            is_wanted(&self.subject, &device.name)
                && self.screen.model.device(&device.name).is_none()
        };
        Ok(devices.iter().any(new))
    }
}

impl Fed for Session {
    fn screen(&mut self) -> &mut Screen {
        &mut self.screen
    }

    /// Takes what came, and moves a past that is played.
    fn tick(&mut self, clock: WallTime) {
        let passed = clock.since(self.ticked);
        self.ticked = clock;
        if clock.since(self.looked) >= LOOK {
            self.looked = clock;
            if let Err(error) = self.look() {
                self.screen.trouble = Some(in_one_line(&error));
            }
        }
        if let Some(live) = &self.live {
            let (steps, _) = live.drain();
            if self.screen.follows() {
                self.learn();
                self.screen.apply(steps.iter().map(Arc::as_ref));
            }
        }
        self.see_whether_behind(clock);
        self.take_pieces();
        self.screen.play(passed, self.read_to);
        self.show_past();
        self.read_ahead();
        self.screen.arrange(self.screen.instant(clock));
    }

    fn carry_out(&mut self, wish: Wish) {
        match wish {
            Wish::Seek(at) => self.seek(at),
            Wish::GoLive => {
                self.forget_past();
                self.screen.model = self.screen.model.emptied();
                if let Err(error) = self.read_end() {
                    self.screen.trouble = Some(in_one_line(&error));
                }
                self.follow();
            }
            Wish::Quit | Wish::Suspend | Wish::Back => {}
        }
    }
}

fn is_wanted(subject: &Subject, name: &str) -> bool {
    let patterns = subject.devices.as_ref();
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| matches(pattern, name)))
}

fn opened(subject: &Subject) -> Result<(Arc<Watch>, Model), ReadError> {
    let watch = Watch::open(&subject.dir, &WANTED)?;
    let devices = watch.devices()?;
    let wanted = devices.into_iter().filter(|device| is_wanted(subject, &device.name));
    let model = Model::new(wanted).showing(watch.others());
    Ok((Arc::new(watch), model))
}
