//! Which walk sends what and when: input with `now`, output by polling. Opens no socket.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use meikyo_units::{Nanos, WallTime};

use super::{Finished, Job, SurveyError, SurveyOptions};
use crate::client::{
    AGAIN_MAX, Received, Session, Unusable, Walk, first_request_id, next_request_id,
};
use crate::template::peek_request_id;

/// Longest pause before a silent agent is tried again, as a multiple of the timeout.
const PAUSE_MAX: u64 = 8;

/// The walks of many devices.
#[derive(Debug)]
pub struct SurveyCore {
    options: SurveyOptions,
    /// Not sent yet.
    ready: VecDeque<Task>,
    /// Silent once or more; by the instant at which they are tried again.
    paused: BTreeMap<(WallTime, u64), Task>,
    /// Sent, by request id.
    waiting: BTreeMap<i32, (WallTime, Task)>,
    /// When the waiting ones end, by request id; those that were answered are left in.
    deadlines: VecDeque<(WallTime, i32)>,
    finished: VecDeque<Finished>,
    request_id: i32,
    pauses: u64,
    strays: u64,
}

#[derive(Debug)]
struct Task {
    device: usize,
    address: SocketAddr,
    session: Session,
    walk: Walk,
    attempts: u32,
    again: u32,
    requests: u32,
    unusable: Unusable,
}

impl SurveyCore {
    /// No walks yet.
    pub fn new(now: WallTime, options: SurveyOptions) -> Self {
        Self {
            options,
            ready: VecDeque::new(),
            paused: BTreeMap::new(),
            waiting: BTreeMap::new(),
            deadlines: VecDeque::new(),
            finished: VecDeque::new(),
            request_id: first_request_id(now),
            pauses: 0,
            strays: 0,
        }
    }

    /// Adds a device; at any time.
    pub fn add(&mut self, now: WallTime, job: Job) {
        let session = Session::new(now, job.credentials);
        let walk = Walk::new(session.version(), job.subtrees);
        let (device, address) = (job.device, job.address);
        let unusable = Unusable::default();
        let task =
            Task { device, address, session, walk, attempts: 0, again: 0, requests: 0, unusable };
        self.ready.push_back(task);
    }

    /// Devices that are not finished.
    pub fn open(&self) -> usize {
        self.ready.len() + self.paused.len() + self.waiting.len()
    }

    /// Datagrams that belonged to no open request.
    pub const fn strays(&self) -> u64 {
        self.strays
    }

    /// A device that is finished, in the order in which they were.
    pub fn poll_finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }

    /// The next datagram to send, appended to `out`, and where to; `None` when there is none now.
    pub fn poll_transmit(&mut self, now: WallTime, out: &mut Vec<u8>) -> Option<SocketAddr> {
        while self.waiting.len() < self.options.in_flight_max {
            let mut task = self.next_ready(now)?;
            let id = next_request_id(self.request_id);
            let Some(request) = task.walk.request(id) else {
                self.finish(task, Ok(()));
                continue;
            };
            self.request_id = id;
            task.requests = task.requests.saturating_add(1);
            task.session.encode(now, &request, out);
            let address = task.address;
            let deadline = now + self.options.timeout;
            self.deadlines.push_back((deadline, id));
            self.waiting.insert(id, (deadline, task));
            return Some(address);
        }
        None
    }

    fn next_ready(&mut self, now: WallTime) -> Option<Task> {
        match self.paused.first_entry() {
            Some(entry) if entry.key().0 <= now => Some(entry.remove()),
            _ => self.ready.pop_front(),
        }
    }

    /// When [`Self::handle_timeout`] and [`Self::poll_transmit`] are due.
    pub fn poll_timeout(&self) -> Option<WallTime> {
        let waiting = self.deadlines.front().map(|(deadline, _)| *deadline);
        // Without a free place the end of a pause changes nothing.
        let room = self.waiting.len() < self.options.in_flight_max;
        let paused = self.paused.keys().next().map(|(until, _)| *until).filter(|_| room);
        match (waiting, paused) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Gives up on what was not answered in time.
    pub fn handle_timeout(&mut self, now: WallTime) {
        while let Some(&(deadline, id)) = self.deadlines.front() {
            let live = self.waiting.get(&id).is_some_and(|(current, _)| *current == deadline);
            if live && deadline > now {
                break;
            }
            self.deadlines.pop_front();
            if live && let Some((_, task)) = self.waiting.remove(&id) {
                self.silent(now, task);
            }
        }
    }

    /// Takes a note that a datagram could not be sent; counts as silence.
    pub fn handle_send_failure(&mut self, now: WallTime) {
        let id = self.request_id;
        if let Some((_, task)) = self.waiting.remove(&id) {
            self.silent(now, task);
        }
    }

    fn silent(&mut self, now: WallTime, mut task: Task) {
        task.attempts += 1;
        // It may be another agent by now, with another engine id or fewer boots.
        task.session.forget_engine();
        if task.attempts > self.options.retries {
            let Unusable { unreadable, last } = std::mem::take(&mut task.unusable);
            let attempts = task.attempts;
            self.finish(task, Err(SurveyError::Silent { attempts, unreadable, last }));
            return;
        }
        let pause = 1_u64.checked_shl(task.attempts - 1).unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
        let pause = Nanos::new(self.options.timeout.get().saturating_mul(pause));
        self.pauses += 1;
        self.paused.insert((now + pause, self.pauses), task);
    }

    fn finish(&mut self, mut task: Task, result: Result<(), SurveyError>) {
        let result = result.map(|()| task.walk.take_found());
        let engine = task.session.clock();
        let (device, requests) = (task.device, task.requests);
        self.finished.push_back(Finished { device, result, engine, requests });
    }

    /// Takes a datagram.
    pub fn handle_datagram(&mut self, now: WallTime, from: SocketAddr, bytes: &mut [u8]) {
        let from_there = |(_, task): &(WallTime, Task)| task.address == from;
        let known = match peek_request_id(bytes) {
            Some(id) => Some(id).filter(|id| self.waiting.get(id).is_some_and(from_there)),
            // A damaged answer; rare, so a search is right.
            None => self.waiting.iter().find(|(_, entry)| from_there(entry)).map(|(&id, _)| id),
        };
        let Some((id, (deadline, mut task))) =
            known.and_then(|id| Some((id, self.waiting.remove(&id)?)))
        else {
            self.strays += 1;
            return;
        };
        match task.session.receive(now, id, bytes) {
            Ok(Received::Answer(answer)) => {
                task.attempts = 0;
                task.again = 0;
                task.unusable = Unusable::default();
                match task.walk.accept(answer) {
                    // To the front: what is begun is finished first.
                    Ok(()) => self.ready.push_front(task),
                    Err(error) => self.finish(task, Err(SurveyError::Walk(error))),
                }
            }
            Ok(Received::Again) if task.again < AGAIN_MAX => {
                task.again += 1;
                self.ready.push_front(task);
            }
            Ok(Received::Again) => {
                task.again = 0;
                self.silent(now, task);
            }
            Err(refusal) if refusal.is_final() => {
                self.finish(task, Err(SurveyError::Refused(refusal)));
            }
            Err(unusable) => {
                task.unusable.count(unusable);
                self.waiting.insert(id, (deadline, task));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ReceiveError, WalkError};
    use crate::message::{self, Version};
    use crate::pdu::{Pdu, PduType};
    use crate::value::Value;
    use crate::{Credentials, DecodeError, Oid};

    const OPTIONS: SurveyOptions =
        SurveyOptions { in_flight_max: 3, timeout: Nanos::from_millis(100), retries: 2 };

    fn at(millis: u64) -> WallTime {
        WallTime::from_nanos(1_700_000_000_000_000_000) + Nanos::from_millis(millis)
    }

    fn address(device: usize) -> SocketAddr {
        ([127, 0, 0, u8::try_from(device).unwrap()], 161).into()
    }

    fn oid(text: &str) -> Oid {
        text.parse().unwrap()
    }

    fn core(devices: usize) -> SurveyCore {
        let mut core = SurveyCore::new(at(0), OPTIONS);
        for device in 0..devices {
            let credentials = Credentials::V2c { community: b"public".to_vec() };
            let subtrees = vec![oid("1.3.6.1"), oid("1.3.6.2")];
            core.add(at(0), Job { device, address: address(device), credentials, subtrees });
        }
        core
    }

    /// The answer of an agent that has one object in each subtree, named after the device.
    fn answer(device: usize, request: &[u8]) -> Vec<u8> {
        let (_, _, request) = message::decode_community(request).unwrap();
        let (asked, _) = &request.varbinds[0];
        let arc = u32::try_from(device).unwrap();
        let next = [oid("1.3.6.1").child(&[arc]), oid("1.3.6.2").child(&[arc])]
            .into_iter()
            .find(|name| name > asked);
        let mut pdu = Pdu::request(PduType::Response, request.request_id, &[]);
        pdu.varbinds.push(match next {
            Some(name) => (name, Value::Integer(i64::from(arc))),
            None => (asked.clone(), Value::EndOfMibView),
        });
        let mut out = Vec::new();
        message::encode_community(Version::V2c, b"public", &pdu, &mut out);
        out
    }

    fn device_of(address: SocketAddr) -> usize {
        (0..255).find(|&device| self::address(device) == address).unwrap()
    }

    #[test]
    fn every_device_gets_its_own_values_and_silent_ones_cost_only_themselves() {
        let mut core = core(40);
        let mut finished = BTreeMap::new();
        let mut sent = BTreeMap::new();
        let mut now = at(0);
        for step in 0.. {
            assert!(step < 1000, "the survey ends");
            if core.open() == 0 {
                break;
            }
            let mut out = Vec::new();
            while let Some(to) = core.poll_transmit(now, &mut out) {
                let request = std::mem::take(&mut out);
                let device = device_of(to);
                *sent.entry(device).or_insert(0) += 1;
                assert!(core.waiting.len() <= 3);
                if !device.is_multiple_of(4) {
                    core.handle_datagram(now, to, &mut answer(device, &request));
                }
            }
            if let Some(next) = core.poll_timeout() {
                now = next.max(now);
                core.handle_timeout(now);
            }
            while let Some(done) = core.poll_finished() {
                finished.insert(done.device, done.result);
            }
        }
        assert_eq!(finished.len(), 40);
        for (device, result) in finished {
            let arc = u32::try_from(device).unwrap();
            if device.is_multiple_of(4) {
                assert!(matches!(
                    result,
                    Err(SurveyError::Silent { attempts: 3, unreadable: 0, last: None })
                ));
                assert_eq!(sent[&device], 3);
            } else {
                let value = Value::Integer(i64::from(arc));
                let expected = [
                    (oid("1.3.6.1").child(&[arc]), value.clone()),
                    (oid("1.3.6.2").child(&[arc]), value),
                ];
                assert_eq!(result.unwrap(), expected);
            }
        }
        // 10 silent devices, 3 places, 3 attempts of 100 ms and pauses of 100 and 200 ms.
        assert!(now <= at(2000), "{now:?}");
    }

    #[test]
    fn answers_from_elsewhere_are_strays_and_unreadable_ones_are_counted() {
        let mut core = core(1);
        let mut request = Vec::new();
        let to = core.poll_transmit(at(0), &mut request).unwrap();
        core.handle_datagram(at(1), address(9), &mut answer(0, &request));
        core.handle_datagram(at(1), to, &mut [1, 2, 3]);
        assert_eq!((core.strays(), core.open()), (1, 1));
        let mut forged = answer(0, &request);
        let at_name = forged.windows(6).position(|window| window == b"public").unwrap();
        forged[at_name] = b'P';
        core.handle_datagram(at(1), to, &mut forged);
        assert_eq!(core.open(), 1);
        for attempt in 1..=3 {
            core.handle_timeout(at(attempt * 1000));
            core.poll_transmit(at(attempt * 1000 + 500), &mut Vec::new());
        }
        let error = core.poll_finished().unwrap().result.unwrap_err();
        let last = Some(ReceiveError::Unusable(DecodeError::WrongCommunity));
        // The one that is not SNMP, and the forged one.
        assert_eq!(error, SurveyError::Silent { attempts: 3, unreadable: 2, last });
    }

    #[test]
    fn a_device_that_goes_round_ends_with_its_error() {
        let mut core = core(1);
        let mut asked = Vec::new();
        // Both subtrees at once, then the first alone.
        while let Some(to) = core.poll_transmit(at(0), &mut asked) {
            let (_, _, request) = message::decode_community(&std::mem::take(&mut asked)).unwrap();
            let names = [oid("1.3.6.1.2"), oid("1.3.6.3"), oid("1.3.6.1.1")];
            let mut pdu = Pdu::request(PduType::Response, request.request_id, &names);
            pdu.varbinds.iter_mut().for_each(|(_, value)| *value = Value::Integer(1));
            let mut bytes = Vec::new();
            message::encode_community(Version::V2c, b"public", &pdu, &mut bytes);
            core.handle_datagram(at(1), to, &mut bytes);
        }
        let error = core.poll_finished().unwrap().result.unwrap_err();
        assert!(matches!(error, SurveyError::Walk(WalkError::NotIncreasing { .. })), "{error}");
        assert_eq!(core.open(), 0);
    }
}
