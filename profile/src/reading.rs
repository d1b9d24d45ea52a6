//! Reading a profile: its samples, and what explains them.

pub(crate) mod alike;
mod passes;
pub(crate) mod stacks;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher as _;
use std::rc::Rc;
use std::sync::LazyLock;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::TimestampNanosecondType;
use hashbrown::{DefaultHashBuilder, HashSet};
use meikyo_recording::read::Problem;
use meikyo_recording::schema::{Cell, Values};
use meikyo_recording::{ReadError, Recording, Selection};

use crate::jobs::{job_of, user_of};
use crate::kernel::{KERNEL, KERNEL_BEGIN, KernelFacts};
use crate::off_cpu::Reason;
use crate::symbols::{
    AddressSpaces, FileFunction, Function, MappedFile, Place, Process, Symbols, ToldFunctions,
    Unnamed,
};
use crate::tables::{
    cgroups, file_symbols, jit_symbols, losses, mappings, off_cpu, rates, samples, summaries,
    threads,
};
use crate::wanted::{Wanted, fits};

/// Where an address lies in a kernel's own text.
fn in_kernel(kernel: &KernelFacts, address: u64) -> Option<Place> {
    let (begin, size) = kernel.text?;
    let offset = address.checked_sub(begin).filter(|offset| *offset < size)?;
    let build_id = Some(kernel.build_id.as_deref()?.into());
    let file = MappedFile { path: KERNEL.into(), build_id, inode: None, since: 0 };
    Some(Place { file, offset })
}

/// A word that many rows share.
pub(crate) type Name = Rc<str>;

/// What was lost, by its word.
pub(crate) type Lost = BTreeMap<String, u64>;

/// A sample as it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) time: i64,
    pub(crate) host: usize,
    pub(crate) cpu: u64,
    pub(crate) pid: u64,
    pub(crate) tid: u64,
    pub(crate) address: u64,
    pub(crate) cgroup: Option<u64>,
    /// Its callers, as they stand in the recording.
    pub(crate) stack: &'a str,
}

impl Seen<'_> {
    /// Something at the end of a second, of which the process is not known.
    fn in_second(time: i64, host: usize, cpu: u64) -> Self {
        const TO_ITS_END: i64 = 999_999_999;
        let time = time.saturating_add(TO_ITS_END);
        Self { time, host, cpu, pid: 0, tid: 0, address: 0, cgroup: None, stack: "" }
    }

    pub(crate) fn process(&self) -> Process {
        Process { host: self.host, pid: self.pid }
    }

    pub(crate) fn thread(&self) -> Process {
        Process { host: self.host, pid: self.tid }
    }
}

/// Seconds of CPUs that have samples of their own.
#[derive(Debug, Default)]
pub(crate) struct Seconds {
    all: BTreeSet<(usize, u64, i64)>,
    last: Option<(usize, u64, i64)>,
}

impl Seconds {
    fn of(seen: &Seen<'_>) -> (usize, u64, i64) {
        (seen.host, seen.cpu, seen.time.div_euclid(1_000_000_000))
    }

    /// Notes the second of a sample; those of one second come behind each other.
    pub(crate) fn note(&mut self, seen: &Seen<'_>) {
        let second = Some(Self::of(seen));
        if self.last != second {
            self.last = second;
            self.all.extend(second);
        }
    }

    /// Takes over what another pass has noted.
    fn join(&mut self, others: &Self) {
        self.all.extend(&others.all);
    }

    /// Whether a second has samples, of which a sum is the sum.
    pub(crate) fn has(&self, seen: &Seen<'_>) -> bool {
        self.all.contains(&Self::of(seen))
    }
}

/// Samples that differ in nothing but their time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alike<'a> {
    /// One of them. Its time is one at which its address means what it means for all of them.
    pub(crate) seen: Seen<'a>,
    /// How many there are.
    pub(crate) count: u64,
    /// [`stack_hash`] of their stack.
    pub(crate) hash: u64,
}

impl<'a> Alike<'a> {
    /// A sample that is alike with no other.
    pub(crate) fn one(seen: Seen<'a>) -> Self {
        Self { seen, count: 1, hash: stack_hash(seen.stack) }
    }
}

/// A hash of the text of a stack.
pub(crate) fn stack_hash(text: &str) -> u64 {
    static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);
    HASHER.hash_one(text)
}

/// How often each host was sampled from when on: the span between two samples of a CPU that runs, ns.
#[derive(Debug)]
pub(crate) struct Periods(BTreeMap<usize, Vec<(i64, u64)>>);

impl Periods {
    /// What a sample stands for, ns; `None` where that was not written down.
    pub(crate) fn at(&self, seen: &Seen<'_>) -> Option<u64> {
        let of_host = self.0.get(&seen.host)?;
        let before = of_host.partition_point(|(from, _)| *from <= seen.time);
        of_host.get(before.saturating_sub(1)).map(|(_, period)| *period)
    }
}

/// Where an address lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Where {
    /// Its address in the kernel that runs here, or why that is not known.
    Kernel(Result<u64, Unnamed>),
    File(Place),
    Made(Name),
    Nowhere,
}

/// Functions that were made at run time, by begin: begin, when it was read, end, name.
type Made = Vec<(u64, i64, u64, Name)>;

/// A recording while it is read.
pub(crate) struct Reading<'a> {
    recording: &'a Recording,
    hosts: BTreeMap<Name, usize>,
    spaces: AddressSpaces,
    symbols: &'a mut Symbols,
    /// By host, the kernels that ran there, from when on.
    kernels: BTreeMap<usize, BTreeMap<i64, KernelFacts>>,
    /// By process and since when it was what it was, what its compiler had made.
    made: BTreeMap<(Process, Option<i64>), Made>,
    /// By thread, what it was called from when on.
    names: BTreeMap<Process, Vec<(i64, Name)>>,
    /// Control groups by host and number, in the order in which they were met: after a boot a number can
    /// belong to another one.
    cgroups: BTreeMap<(usize, u64), Vec<Group>>,
    words: HashSet<Name>,
    pub(crate) problems: Vec<Problem>,
}

/// A control group.
#[derive(Debug)]
struct Group {
    /// When a sample of it was first met, as far as its CPU had been read.
    from: i64,
    path: Name,
    job: Option<Name>,
    user: Option<Name>,
}

/// How long before a control group was met it can have had samples: other CPUs are read later, at the latest
/// after a turn of the sampler.
const MET_LATE_NS: i64 = 2_000_000_000;

/// What happened to a process.
enum Event {
    There,
    Executed,
    Forked { parent: u64, parent_tid: u64, tid: u64 },
    Named { tid: u64, name: Name },
    Mapped { range: [u64; 3], path: Name, build_id: Option<Name>, inode: Option<u64> },
}

/// What happened to which process, and when. What was mapped comes behind what else there is of the
/// same time: a process is there before its mappings are.
type Events = Vec<(i64, bool, Process, Event)>;

impl<'a> Reading<'a> {
    /// Reads what explains the samples of some hosts, every one when no pattern is given.
    pub(crate) fn new(
        recording: &'a Recording,
        symbols: &'a mut Symbols,
        hosts: &[String],
    ) -> Result<Self, ReadError> {
        let mut reading = Self::of_cgroups(recording, symbols, hosts)?;
        let mut events = Events::new();
        reading.read_mappings(hosts, &mut events)?;
        reading.read_threads(hosts, &mut events)?;
        reading.tell(events);
        reading.read_made(hosts)?;
        Ok(reading)
    }

    /// Reads of what explains samples only which jobs there are: enough to count samples, not to name them.
    pub(crate) fn of_cgroups(
        recording: &'a Recording,
        symbols: &'a mut Symbols,
        hosts: &[String],
    ) -> Result<Self, ReadError> {
        symbols.refresh();
        let mut reading = Self {
            recording,
            hosts: BTreeMap::new(),
            spaces: AddressSpaces::default(),
            symbols,
            kernels: BTreeMap::new(),
            made: BTreeMap::new(),
            names: BTreeMap::new(),
            cgroups: BTreeMap::new(),
            words: HashSet::new(),
            problems: Vec::new(),
        };
        reading.read_cgroups(hosts)?;
        Ok(reading)
    }

    fn host(&mut self, name: Option<&str>) -> usize {
        let name = name.unwrap_or_default();
        if let Some(&host) = self.hosts.get(name) {
            return host;
        }
        let host = self.hosts.len();
        let name = self.word(name);
        self.hosts.insert(name, host);
        host
    }

    fn read_mappings(&mut self, hosts: &[String], events: &mut Events) -> Result<(), ReadError> {
        self.each(&of_hosts(mappings::NAME, hosts), |reading, rows| {
            let numbers = [mappings::ADDRESS, mappings::SIZE_BYTES, mappings::OFFSET_BYTES];
            let numbers = numbers.map(|column| column.values_in(rows));
            let (path, build_id) =
                (mappings::PATH.values_in(rows), mappings::BUILD_ID.values_in(rows));
            let (pids, inodes) = (mappings::PID.values_in(rows), mappings::INODE.values_in(rows));
            let hosts = mappings::HOST.values_in(rows);
            for (row, &time) in times(rows).iter().enumerate() {
                let host = reading.host(get(&hosts, row));
                let range = numbers.each_ref().map(|numbers| get(numbers, row).unwrap_or(0));
                let path = get(&path, row).unwrap_or_default();
                let Some(pid) = get(&pids, row) else {
                    let kernels = reading.kernels.entry(host).or_default();
                    let kernel = kernels.entry(time).or_default();
                    kernel.take(path, [range[0], range[1]], get(&build_id, row));
                    continue;
                };
                let path = reading.word(path);
                let build_id = get(&build_id, row).map(|id| reading.word(id));
                let mapped = Event::Mapped { range, path, build_id, inode: get(&inodes, row) };
                events.push((time, true, Process { host, pid }, mapped));
            }
        })
    }

    fn read_threads(&mut self, hosts: &[String], events: &mut Events) -> Result<(), ReadError> {
        self.each(&of_hosts(threads::NAME, hosts), |reading, rows| {
            let (event, name) = (threads::EVENT.values_in(rows), threads::CALLED.values_in(rows));
            let numbers = [threads::TID, threads::PID, threads::PARENT_PID, threads::PARENT_TID];
            let numbers = numbers.map(|column| column.values_in(rows));
            let hosts = threads::HOST.values_in(rows);
            for (row, &time) in times(rows).iter().enumerate() {
                let [tid, pid, parent, parent_tid] =
                    numbers.each_ref().map(|numbers| get(numbers, row));
                let (Some(tid), Some(pid)) = (tid, pid) else { continue };
                let process = Process { host: reading.host(get(&hosts, row)), pid };
                let mut happened = |event| events.push((time, false, process, event));
                match (get(&event, row), parent) {
                    (Some("there"), _) => happened(Event::There),
                    (Some("exec"), _) => happened(Event::Executed),
                    (Some("fork"), Some(parent)) => {
                        let parent_tid = parent_tid.unwrap_or(parent);
                        happened(Event::Forked { parent, parent_tid, tid });
                    }
                    _ => {}
                }
                if let Some(name) = get(&name, row) {
                    happened(Event::Named { tid, name: reading.word(name) });
                }
            }
        })
    }

    /// Takes what happened in the order of time, in which rows do not stand: rings are read CPU by CPU.
    fn tell(&mut self, mut events: Events) {
        events.sort_by_key(|(time, is_mapping, ..)| (*time, *is_mapping));
        let mut since: BTreeMap<(usize, Name, u64), i64> = BTreeMap::new();
        for (time, _, process, event) in events {
            let host = process.host;
            match event {
                Event::There => self.spaces.there(time, process),
                Event::Executed => self.spaces.executed(time, process),
                Event::Forked { parent, parent_tid, tid } => {
                    if parent != process.pid {
                        self.spaces.forked(time, process, Process { host, pid: parent });
                    }
                    self.inherit_name(time, host, [tid, parent_tid]);
                }
                Event::Named { tid, name } => {
                    self.names.entry(Process { host, pid: tid }).or_default().push((time, name));
                }
                Event::Mapped { range, path, build_id, inode } => {
                    let unverified = inode.filter(|_| build_id.is_none());
                    let since = unverified.map_or(0, |inode| {
                        *since.entry((host, Rc::clone(&path), inode)).or_insert(time)
                    });
                    let file = MappedFile { path, build_id, inode, since };
                    self.spaces.mapped((time, process), range, file);
                }
            }
        }
    }

    /// A thread is called what the thread was called that began it, until it is named.
    fn inherit_name(&mut self, time: i64, host: usize, [tid, parent]: [u64; 2]) {
        let of_parent = self.names.get(&Process { host, pid: parent });
        if let Some(name) = of_parent.and_then(|names| names.last()).map(|it| Rc::clone(&it.1)) {
            self.names.entry(Process { host, pid: tid }).or_default().push((time, name));
        }
    }

    fn read_made(&mut self, hosts: &[String]) -> Result<(), ReadError> {
        self.each(&of_hosts(jit_symbols::NAME, hosts), |reading, rows| {
            let numbers = [jit_symbols::PID, jit_symbols::ADDRESS, jit_symbols::SIZE_BYTES];
            let numbers = numbers.map(|column| column.values_in(rows));
            let (names, hosts) =
                (jit_symbols::FUNCTION.values_in(rows), jit_symbols::HOST.values_in(rows));
            for (row, &time) in times(rows).iter().enumerate() {
                let [pid, begin, size] =
                    numbers.each_ref().map(|numbers| get(numbers, row).unwrap_or(0));
                let name = reading.word(get(&names, row).unwrap_or_default());
                let process = Process { host: reading.host(get(&hosts, row)), pid };
                let since = reading.spaces.since(time, process);
                let made = reading.made.entry((process, since)).or_default();
                made.push((begin, time, begin.saturating_add(size), name));
            }
        })?;
        // Of what was made at the same place the newest counts.
        self.made.values_mut().for_each(|made| made.sort_unstable());
        Ok(())
    }

    fn read_cgroups(&mut self, hosts: &[String]) -> Result<(), ReadError> {
        self.each(&of_hosts(cgroups::NAME, hosts), |reading, rows| {
            let (numbers, paths) = (cgroups::CGROUP.values_in(rows), cgroups::PATH.values_in(rows));
            let hosts = cgroups::HOST.values_in(rows);
            for (row, &from) in times(rows).iter().enumerate() {
                if let (Some(number), Some(path)) = (get(&numbers, row), get(&paths, row)) {
                    let key = (reading.host(get(&hosts, row)), number);
                    let job = job_of(path).map(|job| reading.word(&job));
                    let user = user_of(path).map(|user| reading.word(&user));
                    let group = Group { from, path: reading.word(path), job, user };
                    reading.cgroups.entry(key).or_default().push(group);
                }
            }
        })?;
        self.cgroups.values_mut().for_each(|groups| groups.sort_by_key(|group| group.from));
        Ok(())
    }

    /// Whether process, thread and job of a sample are called as is wanted.
    fn is_named(&mut self, seen: &Seen<'_>, wanted: &Wanted) -> bool {
        let Wanted { processes, threads, jobs, visible, .. } = wanted;
        (processes.is_empty() || fits(processes, &self.called(seen.time, seen.process())))
            && (threads.is_empty() || fits(threads, &self.called(seen.time, seen.thread())))
            && (jobs.is_empty() || self.job(seen).is_some_and(|job| fits(jobs, &job)))
            && (visible.is_empty() || self.is_visible(seen, visible))
    }

    /// Whether the recording can have sums of seconds: those of earlier programs have no such table.
    pub(crate) fn has_summaries(&self) -> bool {
        self.recording.table(summaries::NAME).is_ok()
    }

    /// Goes through what hosts summed up of the wanted seconds: places of code as if they were samples at the
    /// end of their second, with how many there were; those in none of the places stand at address 0 of no
    /// process.
    pub(crate) fn summaries(
        &mut self,
        wanted: &Wanted,
        mut take: impl FnMut(&mut Self, &Seen<'_>, u64),
    ) -> Result<(), ReadError> {
        let selection = Selection {
            from: wanted.from,
            to: wanted.until,
            ..of_hosts(summaries::NAME, &wanted.hosts)
        };
        // By second, host and CPU: all samples, less those in places.
        let mut others: BTreeMap<(i64, usize, u64), u64> = BTreeMap::new();
        self.each(&selection, |reading, rows| {
            let numbers = [summaries::CPU, summaries::SAMPLES].map(|column| column.values_in(rows));
            let place = [summaries::PID, summaries::ADDRESS].map(|column| column.values_in(rows));
            let hosts = summaries::HOST.values_in(rows);
            for (row, &time) in times(rows).iter().enumerate() {
                let [cpu, samples] = numbers.each_ref().map(|of| get(of, row).unwrap_or(0));
                let host = reading.host(get(&hosts, row));
                let other = others.entry((time, host, cpu)).or_default();
                let [Some(pid), Some(address)] = place.each_ref().map(|of| get(of, row)) else {
                    *other = other.wrapping_add(samples);
                    continue;
                };
                *other = other.wrapping_sub(samples);
                let seen = Seen { pid, tid: pid, address, ..Seen::in_second(time, host, cpu) };
                if wanted.has(cpu, pid) && reading.is_named(&seen, wanted) {
                    take(reading, &seen, samples);
                }
            }
        })?;
        let is_of_all = wanted.pids.is_empty()
            && [&wanted.processes, &wanted.threads, &wanted.jobs, &wanted.visible]
                .iter()
                .all(|of| of.is_empty());
        for ((time, host, cpu), samples) in others {
            // With more in places than in all, the number of all is missing, of a second at the edge of the span.
            let samples = samples.cast_signed().max(0).cast_unsigned();
            if is_of_all && samples > 0 && wanted.has(cpu, 0) {
                take(self, &Seen::in_second(time, host, cpu), samples);
            }
        }
        Ok(())
    }

    /// Goes through the time that threads were off the CPU, as if it were samples of where they left outside of
    /// the kernel, with the spans, their ns, and whether others ran in their place.
    pub(crate) fn off_cpu(
        &mut self,
        wanted: &Wanted,
        mut take: impl FnMut(&mut Self, &Seen<'_>, OffSpans),
    ) -> Result<(), ReadError> {
        let selection = Selection {
            from: wanted.from,
            to: wanted.until,
            ..of_hosts(off_cpu::NAME, &wanted.hosts)
        };
        self.each(&selection, |reading, rows| {
            let numbers = [off_cpu::CPU, off_cpu::TID, off_cpu::PID, off_cpu::ADDRESS];
            let numbers = numbers.map(|column| column.values_in(rows));
            let spans = [off_cpu::SPANS, off_cpu::OFF_NS].map(|column| column.values_in(rows));
            let (hosts, reasons) = (off_cpu::HOST.values_in(rows), off_cpu::REASON.values_in(rows));
            let (cgroups, stacks) =
                (off_cpu::CGROUP.values_in(rows), off_cpu::STACK.values_in(rows));
            for (row, &time) in times(rows).iter().enumerate() {
                let [cpu, tid, pid, address] =
                    numbers.each_ref().map(|of| get(of, row).unwrap_or(0));
                let [spans, ns] = spans.each_ref().map(|of| get(of, row).unwrap_or(0));
                if !wanted.has(cpu, pid) {
                    continue;
                }
                let host = reading.host(get(&hosts, row));
                let stack = get(&stacks, row).unwrap_or_default();
                let (address, stack) = outside_of_kernel(address, stack);
                let cgroup = get(&cgroups, row);
                let seen = Seen { time, host, cpu, pid, tid, address, cgroup, stack };
                if reading.is_named(&seen, wanted) {
                    let is_preempted = get(&reasons, row) == Some(Reason::Preempted.word());
                    take(reading, &seen, OffSpans { spans, ns, is_preempted });
                }
            }
        })
    }

    /// Whether a sample is of one of these jobs or users. What is of none that is known is nobody's, and so is
    /// what can be of several.
    fn is_visible(&self, seen: &Seen<'_>, to: &[String]) -> bool {
        let groups = seen.cgroup.and_then(|number| self.cgroups.get(&(seen.host, number)));
        let groups = groups.map(Vec::as_slice).unwrap_or_default();
        let met = groups.partition_point(|group| group.from <= seen.time);
        let latest = seen.time.saturating_add(MET_LATE_NS);
        let until = groups.partition_point(|group| group.from <= latest);
        let possible = &groups[met.saturating_sub(1).min(until)..until];
        let is_theirs = |name: &Option<Name>| name.as_ref().is_some_and(|name| fits(to, name));
        !possible.is_empty()
            && possible.iter().all(|group| is_theirs(&group.job) || is_theirs(&group.user))
    }

    /// The control group of a sample, where it is known.
    fn group(&self, seen: &Seen<'_>) -> Option<&Group> {
        let groups = self.cgroups.get(&(seen.host, seen.cgroup?))?;
        let met = groups.partition_point(|group| group.from <= seen.time);
        groups.get(met.saturating_sub(1))
    }

    /// When the meaning of a process's addresses changed, in the order of time.
    pub(crate) fn changes(&self, process: Process) -> Vec<i64> {
        self.spaces.changes(process)
    }

    /// When it was written down which kernel a host runs.
    pub(crate) fn kernel_changes(&self, host: usize) -> Vec<i64> {
        self.kernels.get(&host).map(|kernels| kernels.keys().copied().collect()).unwrap_or_default()
    }

    /// How much time samples of some hosts stand for.
    pub(crate) fn periods(&mut self, hosts: &[String]) -> Result<Periods, ReadError> {
        let mut periods: BTreeMap<usize, Vec<(i64, u64)>> = BTreeMap::new();
        self.each(&of_hosts(rates::NAME, hosts), |reading, rows| {
            let (hosts, numbers) = (rates::HOST.values_in(rows), rates::PERIOD_NS.values_in(rows));
            for (row, &time) in times(rows).iter().enumerate() {
                if let Some(period) = get(&numbers, row) {
                    let host = reading.host(get(&hosts, row));
                    periods.entry(host).or_default().push((time, period));
                }
            }
        })?;
        periods.values_mut().for_each(|of_host| of_host.sort_unstable());
        Ok(Periods(periods))
    }

    /// The name of a host by its number.
    pub(crate) fn host_name(&self, host: usize) -> Name {
        let found = self.hosts.iter().find(|(_, number)| **number == host);
        found.map(|(name, _)| Rc::clone(name)).expect("numbers are given to names only")
    }

    /// The path of a sample's control group, where it is known.
    pub(crate) fn cgroup(&self, seen: &Seen<'_>) -> Option<Name> {
        self.group(seen).map(|group| Rc::clone(&group.path))
    }

    /// The job that a sample belongs to, where its control group says so.
    pub(crate) fn job(&self, seen: &Seen<'_>) -> Option<Name> {
        self.group(seen).and_then(|group| group.job.clone())
    }

    /// Looks the functions of places up: in files of this host, then in what other hosts told of theirs.
    pub(crate) fn look_up<'b>(
        &mut self,
        places: impl Iterator<Item = &'b Where> + Clone,
    ) -> Result<(), ReadError> {
        let in_files = places.clone().filter_map(|place| match place {
            Where::File(place) => Some(place),
            _ => None,
        });
        self.symbols.look_up(in_files.clone().cloned());
        let nameless: Vec<Place> = self.symbols.nameless(in_files).cloned().collect();
        if !nameless.is_empty() {
            let told = self.told_functions(&nameless)?;
            self.symbols.take_names(&nameless, |build_id, offset| told.name(build_id, offset));
        }
        self.symbols.look_up_kernel(places.filter_map(|place| match place {
            Where::Kernel(address) => address.ok(),
            _ => None,
        }));
        Ok(())
    }

    /// What hosts told of the files of some places.
    fn told_functions(&mut self, places: &[Place]) -> Result<ToldFunctions, ReadError> {
        let mut told = ToldFunctions::default();
        if self.recording.table(file_symbols::NAME).is_err() {
            // It was recorded when hosts told nothing.
            return Ok(told);
        }
        let build_ids: BTreeSet<&Name> =
            places.iter().filter_map(|place| place.file.build_id.as_ref()).collect();
        let build_ids: Vec<String> = build_ids.iter().map(|id| id.to_string()).collect();
        let labels = vec![(file_symbols::BUILD_ID.name().to_owned(), build_ids)];
        self.each(&Selection { labels, ..Selection::all(file_symbols::NAME) }, |reading, rows| {
            let numbers = [file_symbols::OFFSET_BYTES, file_symbols::SIZE_BYTES];
            let numbers = numbers.map(|column| column.values_in(rows));
            let (build_ids, names) =
                (file_symbols::BUILD_ID.values_in(rows), file_symbols::FUNCTION.values_in(rows));
            for row in 0..rows.num_rows() {
                if let (Some(build_id), Some(name)) = (get(&build_ids, row), get(&names, row)) {
                    let [offset, size] =
                        numbers.each_ref().map(|numbers| get(numbers, row).unwrap_or(0));
                    let build_id = reading.word(build_id);
                    told.take(&build_id, FileFunction { offset, size, name: name.into() });
                }
            }
        })?;
        told.finish();
        Ok(told)
    }

    pub(crate) fn place(&self, time: i64, process: Process, address: u64) -> Where {
        if address >= KERNEL_BEGIN {
            let kernels = self.kernels.get(&process.host);
            // What came before it was read which kernel it is came from the same one.
            let sampled = kernels.and_then(|kernels| {
                kernels.range(..=time).next_back().or_else(|| kernels.iter().next())
            });
            let Some((_, sampled)) = sampled else {
                return Where::Kernel(Err(Unnamed::OtherKernel));
            };
            let in_this = self.symbols.in_this_kernel(sampled, address);
            if in_this == Err(Unnamed::OtherKernel)
                && let Some(place) = in_kernel(sampled, address)
            {
                // Its host may have told its functions.
                return Where::File(place);
            }
            return Where::Kernel(in_this);
        }
        if !self.made.is_empty() {
            let made = self.made.get(&(process, self.spaces.since(time, process)));
            let made = made.map(Vec::as_slice).unwrap_or_default();
            let at = made.partition_point(|(begin, ..)| *begin <= address);
            if let Some((_, _, end, name)) = at.checked_sub(1).and_then(|at| made.get(at))
                && address < *end
            {
                return Where::Made(Rc::clone(name));
            }
        }
        self.spaces.place(time, process, address).map_or(Where::Nowhere, Where::File)
    }

    /// What a thread was called at a time.
    pub(crate) fn called(&mut self, time: i64, thread: Process) -> Name {
        let names = self.names.get(&thread).map(Vec::as_slice).unwrap_or_default();
        let at = names.iter().rev().find(|(from, _)| *from <= time).or_else(|| names.first());
        match at {
            Some((_, name)) => Rc::clone(name),
            None => self.word(&format!("[{}]", thread.pid)),
        }
    }

    /// The function that a place lies in and its file, as they are shown.
    pub(crate) fn frame(&self, place: &Where) -> (Name, Name) {
        let function = match place {
            Where::Made(name) => return (Rc::clone(name), "[made at run time]".into()),
            Where::Nowhere => return ("[unknown]".into(), "[unknown]".into()),
            Where::Kernel(Ok(address)) => self.symbols.kernel_function(*address),
            Where::Kernel(Err(_)) => return ("[unknown]".into(), KERNEL.into()),
            Where::File(place) => self.symbols.function(place),
        };
        match function {
            Some(Function { name: Ok(name), file }) => (Rc::clone(name), Rc::clone(file)),
            Some(Function { file, .. }) => ("[unknown]".into(), Rc::clone(file)),
            None => ("[unknown]".into(), "[unknown]".into()),
        }
    }

    /// Why a place has no name; `None` where it has one.
    pub(crate) fn reason(&self, place: &Where) -> Option<Unnamed> {
        let function = match place {
            Where::Made(_) => return None,
            Where::Nowhere => return Some(Unnamed::NotMapped),
            Where::Kernel(Ok(address)) => self.symbols.kernel_function(*address),
            Where::Kernel(Err(why)) => return Some(*why),
            Where::File(place) => self.symbols.function(place),
        };
        function.map_or(Some(Unnamed::NotMapped), |function| function.name.clone().err())
    }

    /// What was lost on the wanted CPUs; what is of no CPU counts for each.
    pub(crate) fn losses(&mut self, wanted: &Wanted) -> Result<Lost, ReadError> {
        let selection = Selection {
            from: wanted.from,
            to: wanted.until,
            ..of_hosts(losses::NAME, &wanted.hosts)
        };
        let mut lost = Lost::new();
        self.each(&selection, |_, rows| {
            let (what, count) = (losses::LOSS.values_in(rows), losses::COUNT.values_in(rows));
            let cpus = losses::CPU.values_in(rows);
            for row in 0..rows.num_rows() {
                let is_other = |cpu| !wanted.cpus.is_empty() && !wanted.cpus.contains(&cpu);
                if get(&cpus, row).is_some_and(is_other) {
                    continue;
                }
                let what = get(&what, row).unwrap_or_default().to_owned();
                *lost.entry(what).or_default() += get(&count, row).unwrap_or(0);
            }
        })?;
        Ok(lost)
    }

    /// Reads rows, and notes what is wrong with the recording.
    fn each(
        &mut self,
        selection: &Selection,
        mut take: impl FnMut(&mut Self, &RecordBatch),
    ) -> Result<(), ReadError> {
        let mut scan = self.recording.scan(selection)?;
        for rows in scan.by_ref() {
            take(self, &rows?);
        }
        self.problems.extend(scan.problems().iter().cloned());
        Ok(())
    }

    pub(crate) fn word(&mut self, text: &str) -> Name {
        if let Some(word) = self.words.get(text) {
            return Rc::clone(word);
        }
        let word: Name = text.into();
        self.words.insert(Rc::clone(&word));
        word
    }
}

/// Spans that a thread was off the CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffSpans {
    pub(crate) spans: u64,
    pub(crate) ns: u64,
    pub(crate) is_preempted: bool,
}

/// Where a thread was outside of the kernel, and its callers there, of a stack that ends in the kernel; as they are
/// for a thread of the kernel.
fn outside_of_kernel(address: u64, stack: &str) -> (u64, &str) {
    let mut outer = stack;
    let mut at = Some(address);
    while at.is_some_and(|at| at >= KERNEL_BEGIN) {
        let (rest, innermost) = outer.rsplit_once(';').unwrap_or(("", outer));
        at = u64::from_str_radix(innermost, 16).ok();
        outer = rest;
    }
    at.map_or((address, stack), |at| (at, outer))
}

/// Whether a pass over samples goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goes {
    On,
    NoFurther,
}

/// The rows of a table that explain samples of some hosts.
fn of_hosts(table: &str, hosts: &[String]) -> Selection {
    let labels = match hosts {
        [] => Vec::new(),
        hosts => vec![(samples::HOST.name().to_owned(), hosts.to_vec())],
    };
    Selection { labels, ..Selection::all(table) }
}

/// The times of some rows, ns since the epoch.
fn times(rows: &RecordBatch) -> &[i64] {
    let times = rows.column_by_name("time");
    let times = times.and_then(|times| times.as_primitive_opt::<TimestampNanosecondType>());
    times.map(|times| &**times.values()).unwrap_or_default()
}

fn get<'a, C: Cell>(values: &Option<Values<'a, C>>, row: usize) -> Option<C::Read<'a>> {
    values.as_ref().and_then(|values| values.get(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_left_from_where_it_was_outside_of_the_kernel() {
        let kernel = "ffffffff81000001";
        let address = KERNEL_BEGIN + 7;
        let stack = format!("10;20;{kernel};{kernel}");
        assert_eq!(outside_of_kernel(address, &stack), (0x20, "10"));
        assert_eq!(outside_of_kernel(address, "30"), (0x30, ""));
        assert_eq!(outside_of_kernel(0x40, "10;20"), (0x40, "10;20"));
        // A thread of the kernel was nowhere else.
        assert_eq!(outside_of_kernel(address, kernel), (address, kernel));
        assert_eq!(outside_of_kernel(address, ""), (address, ""));
    }
}
