//! One host's part in the agreement of its group: a core without IO.
//!
//! Messages of others and the time go in; what is to be sent, kept and done comes out by
//! [`Member::poll`], and is carried out in that order: what is kept is on the disk before what is sent
//! after it leaves. The same code runs in the daemon and in the tests' virtual worlds.
//!
//! # A generation
//!
//! 1. A host where the program wants to save coordinates: it has the group agree to begin
//!    ([`Change::Begin`]), and tells every host to take its [`Task::Snapshot`].
//! 2. Every host says how long its image is, and whether it has the newest committed generation. When all have said
//!    so, every host is told to [`Task::Write`] its image, and parity of others: made of the newest generation and
//!    of what changed since, where all have it and no image has another length.
//! 3. Every host whose image, parity and manifest are on its disk says so. When all have, the group
//!    agrees to commit ([`Change::Commit`]), and what is one too many of its level is [freed](Task::Free).
//!
//! If a host dies, fails or takes too long the group agrees to abort. If the coordinator dies, another
//! host asks all what they have: what all have is committed, and what all have but those lost hosts
//! that parity makes up for; everything else is aborted. Nothing can be both, since the same register
//! says either. Without a majority nothing is agreed on, so no generation begins, ends or is freed.
//!
//! A host in whose place another incarnation stands, or that knows only an older membership, is
//! refused: what it writes reaches nobody.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use meikyo_units::{Nanos, SimTime};
use meikyo_worlds::Random;

use crate::charter::{Change, Charter, Commit, Generation, Incarnation, Origin, Reached};
use crate::detection::{Detection, Patience, Probe};
use crate::layout::Layout;
use crate::level::{Keep, Level};
use crate::recovery::{Prepared, Restart};
use crate::register::{Ask, Ballot, Proposal, Vote, majority};

mod founding;
mod inquiry;
mod messages;
mod rebuilding;
mod saving;
mod starting;
mod voting;

use founding::Founding;
use inquiry::Inquiry;
pub use messages::{Body, MESSAGE_BYTES_MAX, Message, MessageError, REASON_BYTES_MAX};
use rebuilding::Rebuilding;
use saving::{Saving, Takeover};
pub use starting::Beginning;
use starting::Starting;

/// What is not answered is asked again after so long.
const RESEND: Nanos = Nanos::from_millis(200);

/// A proposal that was overtaken is tried again after at most so long for each host of the group, so that
/// those who propose do not overtake each other for ever.
const BACKOFF: Nanos = Nanos::from_millis(120);

/// Who a member is, and how patient.
#[derive(Debug, Clone, Copy)]
pub struct MemberOptions {
    /// Its place in the group.
    pub place: usize,
    /// The group's geometry.
    pub layout: Layout,
    /// The life of its storage.
    pub incarnation: Incarnation,
    /// The life of its daemon: any number that no other start has.
    pub life: u64,
    /// How patient it is with silent hosts.
    pub patience: Patience,
    /// How long a generation may take from its begin to its commit.
    pub save_timeout: Nanos,
    /// How many committed generations are kept.
    pub keep: Keep,
    /// Whether it founds the group together with the others, when it has no vote.
    pub is_founding: bool,
}

/// What the shell does for a member, in the order in which it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Write this to the disk before anything that comes after is done.
    Keep(Vote),
    /// Send a message; it may be lost.
    Send(usize, Message),
    /// Take the snapshot, and call [`Member::snapped`].
    Snapshot {
        /// The generation that the snapshot is for.
        generation: Generation,
        /// How far the program has come.
        reached: Reached,
    },
    /// Write image and parity, and call [`Member::prepared`] when both and the manifest are where they are kept.
    Write {
        /// The generation that both are of.
        generation: Generation,
        /// The membership version that it is written under.
        version: u64,
        /// Where it is kept.
        level: Level,
        /// Octets of the image of each host.
        lens: Vec<u64>,
        /// The generation that all hosts have, and that it is made of by what changed since.
        base: Option<Generation>,
    },
    /// Rebuild image and parity of this host from the others, and call [`Member::rebuilt`]. What there is of
    /// it must stay until then: another host may need it.
    Rebuild {
        /// The generation that is rebuilt.
        commit: Commit,
        /// The places that do not have it, this host's among them.
        lost: BTreeSet<usize>,
    },
    /// What [`Member::inquire`] has found.
    Restart {
        /// What to go on from.
        restart: Restart,
        /// The newest generation that is known to be committed.
        newest: Option<Generation>,
        /// The places that have not answered.
        silent: Vec<usize>,
        /// Whether a majority says so.
        is_confirmed: bool,
    },
    /// The program of [`Member::begin`] has begun on all hosts, each of which is told the same. Told again, it has
    /// another run.
    Started {
        /// The program on this host.
        program: u64,
        /// The number of its start, by which what it saves is told from what others have saved.
        run: u64,
        /// What its ranks go on from.
        origin: Origin,
    },
    /// This program has no part in what was started on other hosts.
    Over(u64),
    /// Stop what is being done for a generation, and delete what there is of it.
    Free(Generation),
    /// Tell the program, or a person.
    Tell(Event),
}

/// What a program or a person may want to know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Event {
    /// A generation is whole.
    #[error("generation {} is committed", .0.0)]
    Committed(Generation),
    /// A generation that this host coordinated is not, and why.
    #[error("generation {} was given up: {reason}", .0.0, reason = .1)]
    Aborted(Generation, AbortReason),
    /// Another generation was begun before the one that was wanted here.
    #[error("another host has begun a generation")]
    Busy,
    /// Another incarnation stands at this place: nothing that this host writes counts.
    #[error("another host has taken this one's place: the group ignores what it writes")]
    Fenced,
    /// The program was told what to go on from, and others have gone on to more without it.
    #[error(
        "the program was started anew on other hosts: the one that runs here is not protected any more"
    )]
    StartedAnew,
    /// What was to be saved is of an earlier start of the program.
    #[error("run {0} of the program is over: what it has handed over is not saved")]
    Over(u64),
    /// This host was told to found a group that lives already.
    #[error("the group was founded before and still exists")]
    FoundedBefore,
    /// The generation that the program was to go on from is not there, and which are.
    #[error("generation {} is not committed; {}", .0.0, kept_text(.1))]
    NotCommitted(Generation, Vec<Generation>),
    /// A host is held dead.
    #[error("the host at place {0} is dead")]
    Died(usize),
    /// What is on the disk is not what was committed.
    #[error("generation {} is damaged on this host, and is rebuilt", .0.0)]
    Damaged(Generation),
    /// More hosts lack a generation than parity makes up for.
    #[error("generation {} cannot be rebuilt as long as places {places:?} do not have it", .0.0, places = .1)]
    Lost(Generation, Vec<usize>),
}

fn kept_text(kept: &[Generation]) -> String {
    let numbers: Vec<String> = kept.iter().map(|generation| generation.0.to_string()).collect();
    if numbers.is_empty() {
        "none is".to_owned()
    } else {
        format!("{} can be had", numbers.join(" and "))
    }
}

/// Why a generation was given up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AbortReason {
    /// A host is held dead.
    #[error("the host at place {0} is dead")]
    Dead(usize),
    /// A host could not write.
    #[error("the host at place {0} could not write: {1}")]
    Failed(usize, String),
    /// The daemon of a host was started anew, and has forgotten what the program handed over.
    #[error("the daemon of the host at place {0} was restarted")]
    Restarted(usize),
    /// It took too long.
    #[error("it was not complete in time")]
    Timeout,
    /// Another host has decided so.
    #[error("another host took over and found it incomplete")]
    Elsewhere,
}

/// Why a save cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// Too few hosts answer.
    #[error("{alive} of {hosts} hosts answer, and a new generation needs {needed}")]
    NoMajority {
        /// How many answer, this one included.
        alive: usize,
        /// Of so many.
        hosts: usize,
        /// How many are needed.
        needed: usize,
    },
    /// A generation is being written.
    #[error("another generation is being written")]
    Busy,
    /// Another incarnation stands at this place, or this one is not admitted yet.
    #[error("this host is no member of the group")]
    NoMember,
}

/// What a host has of a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    Snapping,
    Snapped(u64),
    Writing { lens: Vec<u64> },
    Prepared(Prepared),
    Failed(String),
    Rebuilding,
}

/// One host of a group.
#[derive(Debug)]
pub struct Member {
    options: MemberOptions,
    random: Random,
    detection: Detection,
    /// What it must not forget; nothing as long as it is not admitted.
    vote: Option<Vote>,
    /// The newest charter that is known to hold.
    known: Option<(Ballot, Charter)>,
    held: BTreeMap<Generation, Held>,
    founding: Option<Founding>,
    inquiry: Option<Inquiry>,
    starting: Option<Starting>,
    /// What the next program that begins goes on from, whatever is newer.
    insisted: Option<Generation>,
    /// Whether the next generation that this host begins is copied to the file system that all share.
    drains_next: bool,
    /// Where the next generation that this host begins is kept.
    level_next: Level,
    /// A committed generation that this host wants to be freed.
    to_free: Option<Generation>,
    inquiries: u64,
    /// The newest generation that an earlier life of this daemon can have had a part in.
    known_before: Generation,
    proposal: Option<Proposal>,
    /// How many were begun.
    proposals: u64,
    resend_at: SimTime,
    retry_at: SimTime,
    /// The greatest round that was seen.
    round: u64,
    /// Find out what holds, once more.
    is_to_read: bool,
    saving: Option<Saving>,
    takeover: Option<Takeover>,
    rebuilding: Option<Rebuilding>,
    rebuild_at: SimTime,
    /// What cannot be rebuilt with the hosts that are there, and how often it was tried.
    lost: BTreeMap<Generation, u64>,
    lives: Vec<Option<u64>>,
    dead: Vec<bool>,
    is_fenced: bool,
    tasks: VecDeque<Task>,
    /// What this host says to itself.
    loopback: VecDeque<Message>,
}

impl Member {
    /// A member as its daemon starts: with what it must not forget, and what is whole on its disk. A host
    /// that was there when the group was founded begins with [`Vote::first`]; one that came later with
    /// nothing, and asks to be admitted.
    pub fn new(
        now: SimTime,
        options: MemberOptions,
        vote: Option<Vote>,
        prepared: BTreeMap<Generation, Prepared>,
    ) -> Self {
        let hosts = options.layout.hosts();
        let held = prepared.into_iter();
        let is_founding = options.is_founding && vote.is_none();
        Self {
            founding: is_founding.then(|| Founding::new(now, hosts)),
            inquiry: None,
            starting: None,
            insisted: None,
            drains_next: false,
            level_next: Level::Disk,
            to_free: None,
            inquiries: 0,
            known_before: vote.as_ref().map_or(Generation(0), |vote| vote.charter.last),
            proposals: 0,
            rebuilding: None,
            lost: BTreeMap::new(),
            random: Random::of_stream(options.incarnation.0, options.life),
            detection: Detection::new(now, options.place, hosts, options.patience),
            round: vote.as_ref().map_or(0, |vote| vote.promised.round),
            vote,
            known: None,
            held: held.map(|(generation, whole)| (generation, Held::Prepared(whole))).collect(),
            proposal: None,
            resend_at: now,
            retry_at: now,
            is_to_read: true,
            saving: None,
            takeover: None,
            rebuild_at: now,
            lives: vec![None; hosts],
            dead: vec![false; hosts],
            is_fenced: false,
            tasks: VecDeque::new(),
            loopback: VecDeque::new(),
            options,
        }
    }

    /// What the group is known to have agreed on.
    pub fn charter(&self) -> Option<&Charter> {
        self.known.as_ref().map(|(_, charter)| charter)
    }

    /// The ballot by which that was agreed on.
    pub fn decided(&self) -> Ballot {
        self.known.as_ref().map_or_else(Ballot::default, |(ballot, _)| *ballot)
    }

    /// What the host must not forget.
    pub const fn vote(&self) -> Option<&Vote> {
        self.vote.as_ref()
    }

    /// What is whole on this host's disk.
    pub fn prepared_generations(&self) -> impl Iterator<Item = (Generation, &Prepared)> {
        self.held.iter().filter_map(|(generation, held)| match held {
            Held::Prepared(prepared) => Some((*generation, prepared)),
            _ => None,
        })
    }

    /// What is known of the other hosts.
    pub const fn detection(&self) -> &Detection {
        &self.detection
    }

    /// Whether this host stands in the group as it is known.
    pub fn is_member(&self) -> bool {
        let me = self.options.place;
        let stands = |charter: &Charter| charter.members[me] == self.options.incarnation;
        !self.is_fenced && self.vote.is_some() && self.charter().is_some_and(stands)
    }

    /// What this host coordinates the saving of, or is about to.
    pub fn is_saving(&self) -> Option<Reached> {
        self.saving.as_ref().map(Saving::reached)
    }

    /// The program wants a generation, of which this host will be the coordinator.
    ///
    /// # Errors
    /// When no generation can begin.
    pub fn save(&mut self, now: SimTime, reached: Reached) -> Result<(), SaveError> {
        if !self.is_member() {
            return Err(SaveError::NoMember);
        }
        let hosts = self.hosts();
        let alive = (0..hosts).filter(|&place| !self.detection.is_dead(place)).count();
        if alive < majority(hosts) {
            return Err(SaveError::NoMajority { alive, hosts, needed: majority(hosts) });
        }
        let is_open = self.charter().is_some_and(|charter| charter.open.is_some());
        if self.saving.is_some() || is_open {
            return Err(SaveError::Busy);
        }
        let drains = std::mem::take(&mut self.drains_next);
        let kind = (drains, self.level_next);
        self.saving = Some(Saving::new(reached, kind, hosts, now + self.options.save_timeout));
        Ok(())
    }

    /// The next generation that this host begins is copied to the file system that all hosts share.
    pub const fn drain_next(&mut self) {
        self.drains_next = true;
    }

    /// The generations that this host begins from now on are kept there.
    pub const fn level_next(&mut self, level: Level) {
        self.level_next = level;
    }

    /// A committed generation is to be kept no longer, on any host. What is still [needed](Charter::needs) stays.
    pub fn free(&mut self, generation: Generation) {
        let may = |charter: &Charter| {
            charter.commit_of(generation).is_some() && !charter.needs(generation)
        };
        if self.is_member() && self.charter().is_some_and(may) {
            self.to_free = Some(generation);
        }
    }

    /// A message has come. What is not of this group is ignored.
    pub fn handle(&mut self, now: SimTime, message: Message) {
        let from = message.from;
        if from >= self.hosts() || self.is_fenced {
            return;
        }
        let group = self.group();
        if group != 0 && message.group != 0 && group != message.group {
            return;
        }
        if from != self.options.place {
            self.detection.heard(now, from);
            self.dead[from] = false;
            self.lives[from] = Some(message.life);
            self.gossip(&message);
        }
        let is_current = self.known.as_ref().is_some_and(|(_, charter)| {
            charter.members[from] == message.incarnation && charter.version == message.version
        });
        match message.body {
            Body::Ping { by_way } => self.send(from, Body::Pong { by_way }),
            Body::Pong { by_way: Some(asker) } if asker < self.hosts() => {
                self.send(asker, Body::Vouch { target: from });
            }
            Body::Pong { .. } => {}
            Body::PingFor { target } if target < self.hosts() => {
                self.send(target, Body::Ping { by_way: Some(from) });
            }
            Body::PingFor { .. } => {}
            Body::Vouch { target } if target < self.hosts() => self.detection.heard(now, target),
            Body::Vouch { .. } => {}
            Body::Promise(ballot) => self.asked_to_promise(from, ballot),
            Body::Promised { ballot, accepted, charter } => {
                self.was_promised(now, from, message.incarnation, ballot, accepted, charter);
            }
            Body::Accept(ballot, charter) => {
                self.asked_to_accept(from, message.incarnation, ballot, &charter);
            }
            Body::Accepted(ballot) => self.was_accepted(now, from, message.incarnation, ballot),
            Body::Refused { ballot, promised } => self.was_refused(now, ballot, promised),
            Body::Decided(ballot, charter) if self.fits(&charter) => self.learn(ballot, charter),
            Body::Decided(..) => {}
            Body::Found => self.found_by(from, message.incarnation),
            Body::Founded(charter) => self.was_founded(charter),
            Body::Survey(number) => {
                let body = self.survey(number);
                self.send(from, body);
            }
            Body::Surveyed { number, charter, prepared } => {
                self.surveyed(from, number, charter, prepared);
            }
            // Whoever knows another membership has no part in generations until both know the same.
            body if is_current => self.handle_saving(from, body),
            _ => {}
        }
    }

    /// What is to be done next; nothing until something comes or [`Member::next_poll`].
    pub fn poll(&mut self, now: SimTime) -> Option<Task> {
        loop {
            if let Some(task) = self.tasks.pop_front() {
                return Some(task);
            }
            if let Some(message) = self.loopback.pop_front() {
                self.handle(now, message);
                continue;
            }
            if self.is_fenced {
                return None;
            }
            self.advance(now);
            if self.tasks.is_empty() && self.loopback.is_empty() {
                return None;
            }
        }
    }

    /// When [`Member::poll`] is to be called though nothing has come.
    pub fn next_poll(&self) -> SimTime {
        self.detection.next_poll()
    }

    fn advance(&mut self, now: SimTime) {
        if now >= self.detection.next_poll() {
            for probe in self.detection.poll(now) {
                match probe {
                    Probe::Direct(target) => self.send(target, Body::Ping { by_way: None }),
                    Probe::By { relay, target } => self.send(relay, Body::PingFor { target }),
                }
            }
            for place in 0..self.hosts() {
                if self.detection.is_dead(place) && !self.dead[place] {
                    self.dead[place] = true;
                    self.tell(Event::Died(place));
                }
            }
        }
        self.advance_founding(now);
        self.advance_saving(now);
        self.advance_takeover(now);
        self.advance_rebuild(now);
        self.advance_proposal(now);
        self.advance_inquiry(now);
        self.advance_starting(now);
    }

    /// Begins the proposal that is needed most, and asks again what was not answered.
    fn advance_proposal(&mut self, now: SimTime) {
        if self.proposal.is_none()
            && now >= self.retry_at
            && let Some(change) = self.wanted()
        {
            self.round += 1;
            self.proposals += 1;
            let Self { round, options: MemberOptions { place, life, .. }, .. } = *self;
            let ballot = Ballot { round, place, life };
            self.proposal = Some(Proposal::new(ballot, change, self.hosts()));
            self.resend_at = now;
        }
        if now >= self.resend_at
            && let Some(proposal) = &self.proposal
        {
            self.resend_at = now + RESEND;
            let body = match proposal.ask() {
                Ask::Promise(ballot) => Body::Promise(ballot),
                Ask::Accept(ballot, charter) => Body::Accept(ballot, charter),
            };
            self.send_all(&body);
        }
    }

    fn wanted(&self) -> Option<Change> {
        let MemberOptions { place, incarnation, .. } = self.options;
        if self.vote.is_none() {
            let admit = Change::Admit { place, incarnation };
            return self.founding.is_none().then_some(admit);
        }
        if let Some(change) = self.takeover.as_ref().and_then(Takeover::wanted) {
            return Some(change);
        }
        if let Some(saving) = &self.saving
            && self.known.is_some()
            && let Some(change) = saving.wanted(&self.options)
        {
            return Some(change);
        }
        if let Some(change) = self.wanted_start() {
            return Some(change);
        }
        if let Some(generation) = self.to_free {
            return Some(Change::Free(generation));
        }
        let is_asked = self.inquiry.as_ref().is_some_and(Inquiry::has_to_read);
        (self.is_to_read || is_asked).then_some(Change::Nothing)
    }

    fn group(&self) -> u64 {
        self.vote.as_ref().map_or(0, |vote| vote.charter.group)
    }

    const fn hosts(&self) -> usize {
        self.options.layout.hosts()
    }

    fn version(&self) -> u64 {
        self.charter().map_or(0, |charter| charter.version)
    }

    fn fits(&self, charter: &Charter) -> bool {
        let group = self.group();
        charter.fits(self.hosts()) && (group == 0 || charter.group == group)
    }

    /// Who knows less than this host is told.
    fn gossip(&mut self, message: &Message) {
        let is_probe = matches!(message.body, Body::Ping { .. } | Body::Pong { .. });
        if let Some((ballot, charter)) = &self.known
            && *ballot > message.decided
            && (is_probe || charter.version != message.version)
        {
            let body = Body::Decided(*ballot, charter.clone());
            self.send(message.from, body);
        }
    }

    fn send(&mut self, to: usize, body: Body) {
        let message = Message {
            from: self.options.place,
            incarnation: self.options.incarnation,
            life: self.options.life,
            group: self.group(),
            version: self.version(),
            decided: self.decided(),
            body,
        };
        if to == self.options.place {
            self.loopback.push_back(message);
        } else {
            self.tasks.push_back(Task::Send(to, message));
        }
    }

    fn send_all(&mut self, body: &Body) {
        for place in 0..self.hosts() {
            self.send(place, body.clone());
        }
    }

    fn tell(&mut self, event: Event) {
        self.tasks.push_back(Task::Tell(event));
    }
}
