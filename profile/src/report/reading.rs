//! Reading a profile: samples counted by what they have in common, and what explains them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::TimestampNanosecondType;
use meikyo_recording::read::Problem;
use meikyo_recording::schema::{Cell, Values};
use meikyo_recording::{ReadError, Recording, Selection};
use meikyo_units::WallTime;

use super::{By, Loss, ReportOptions};
use crate::block::read_stack;
use crate::kernel::{KERNEL, KERNEL_BEGIN, KernelFacts};
use crate::symbols::{AddressSpaces, Function, MappedFile, Place, Process, Symbols, Unnamed};
use crate::tables::{cgroups, jit_symbols, losses, mappings, samples, threads};

/// A word that many rows share.
type Name = Rc<str>;

/// What samples have in common: where they are, by what they are counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Met {
    /// The innermost address first.
    places: Vec<Where>,
    /// What a report by something else than functions counts.
    other: Name,
}

/// Where an address lies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Where {
    /// Its address in the kernel that runs here, or why that is not known.
    Kernel(Result<u64, Unnamed>),
    File(Place),
    Made(Name),
    Nowhere,
}

/// Samples counted.
pub(super) struct Counted {
    pub(super) met: BTreeMap<Met, u64>,
    pub(super) span: Option<(WallTime, WallTime)>,
}

/// Functions that were made at run time, by begin: begin, when it was read, end, name.
type Made = Vec<(u64, i64, u64, Name)>;

/// A recording while it is read.
pub(super) struct Reading<'a> {
    recording: &'a Recording,
    hosts: BTreeMap<Name, usize>,
    spaces: AddressSpaces,
    symbols: Symbols,
    /// By host, the kernels that ran there, from when on.
    kernels: BTreeMap<usize, BTreeMap<i64, KernelFacts>>,
    /// By process and since when it was what it was, what its compiler had made.
    made: BTreeMap<(Process, Option<i64>), Made>,
    /// By thread, what it was called from when on.
    names: BTreeMap<Process, Vec<(i64, Name)>>,
    cgroups: BTreeMap<(usize, u64), Name>,
    words: BTreeSet<Name>,
    pub(super) problems: Vec<Problem>,
}

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
    /// Reads what explains samples.
    pub(super) fn new(
        recording: &'a Recording,
        options: &ReportOptions,
    ) -> Result<Self, ReadError> {
        let mut reading = Self {
            recording,
            hosts: BTreeMap::new(),
            spaces: AddressSpaces::default(),
            symbols: Symbols::of_this_host(),
            kernels: BTreeMap::new(),
            made: BTreeMap::new(),
            names: BTreeMap::new(),
            cgroups: BTreeMap::new(),
            words: BTreeSet::new(),
            problems: Vec::new(),
        };
        let mut events = Events::new();
        reading.read_mappings(&mut events)?;
        reading.read_threads(&mut events)?;
        reading.tell(events);
        reading.read_made()?;
        if options.by == By::Cgroup {
            reading.read_cgroups()?;
        }
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

    fn read_mappings(&mut self, events: &mut Events) -> Result<(), ReadError> {
        self.each(&Selection::all(mappings::NAME), |reading, rows| {
            let numbers = [mappings::ADDRESS, mappings::SIZE_BYTES, mappings::OFFSET_BYTES];
            let numbers = numbers.map(|column| column.of(rows));
            let (path, build_id) = (mappings::PATH.of(rows), mappings::BUILD_ID.of(rows));
            let (pids, inodes) = (mappings::PID.of(rows), mappings::INODE.of(rows));
            let hosts = mappings::HOST.of(rows);
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

    fn read_threads(&mut self, events: &mut Events) -> Result<(), ReadError> {
        self.each(&Selection::all(threads::NAME), |reading, rows| {
            let (event, name) = (threads::EVENT.of(rows), threads::CALLED.of(rows));
            let numbers = [threads::TID, threads::PID, threads::PARENT_PID, threads::PARENT_TID];
            let numbers = numbers.map(|column| column.of(rows));
            let hosts = threads::HOST.of(rows);
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

    fn read_made(&mut self) -> Result<(), ReadError> {
        self.each(&Selection::all(jit_symbols::NAME), |reading, rows| {
            let numbers = [jit_symbols::PID, jit_symbols::ADDRESS, jit_symbols::SIZE_BYTES];
            let numbers = numbers.map(|column| column.of(rows));
            let (names, hosts) = (jit_symbols::FUNCTION.of(rows), jit_symbols::HOST.of(rows));
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

    fn read_cgroups(&mut self) -> Result<(), ReadError> {
        self.each(&Selection::all(cgroups::NAME), |reading, rows| {
            let (numbers, paths) = (cgroups::CGROUP.of(rows), cgroups::PATH.of(rows));
            let hosts = cgroups::HOST.of(rows);
            for row in 0..rows.num_rows() {
                if let (Some(number), Some(path)) = (get(&numbers, row), get(&paths, row)) {
                    let key = (reading.host(get(&hosts, row)), number);
                    let path = reading.word(path);
                    reading.cgroups.insert(key, path);
                }
            }
        })
    }

    /// Counts the samples that are wanted, and looks their functions up.
    pub(super) fn count(&mut self, options: &ReportOptions) -> Result<Counted, ReadError> {
        let selection =
            Selection { from: options.from, to: options.until, ..Selection::all(samples::NAME) };
        let mut met: BTreeMap<Met, u64> = BTreeMap::new();
        let mut span: Option<(i64, i64)> = None;
        self.each(&selection, |reading, rows| {
            let numbers = [samples::TID, samples::PID, samples::ADDRESS, samples::CPU];
            let numbers = numbers.map(|column| column.of(rows));
            let (cgroup, stack) = (samples::CGROUP.of(rows), samples::STACK.of(rows));
            let hosts = samples::HOST.of(rows);
            for (row, &time) in times(rows).iter().enumerate() {
                let [tid, pid, address, cpu] =
                    numbers.each_ref().map(|numbers| get(numbers, row).unwrap_or(0));
                if options.pid.is_some_and(|wanted| wanted != pid) {
                    continue;
                }
                let name = get(&hosts, row).unwrap_or_default();
                if options.host.as_ref().is_some_and(|wanted| wanted != name) {
                    continue;
                }
                let host = reading.host(Some(name));
                let [process, thread] = [pid, tid].map(|pid| Process { host, pid });
                span = Some(span.map_or((time, time), |(a, b)| (a.min(time), b.max(time))));
                let callers = get(&stack, row).and_then(read_stack).unwrap_or_default();
                // What a caller goes on with lies behind its call, maybe in another function.
                let callers = callers.into_iter().map(|caller| caller.wrapping_sub(1));
                let wants_callers = options.by == By::Function;
                let callers = callers.filter(|_| wants_callers);
                let addresses = std::iter::once(address).chain(callers);
                let places = addresses.map(|at| reading.place(time, process, at)).collect();
                let other = match options.by {
                    By::Function | By::File => reading.word(""),
                    By::Process => reading.called(time, process),
                    By::Thread => reading.called(time, thread),
                    By::Cpu => reading.word(&format!("{name} CPU {cpu}")),
                    By::Host => reading.word(name),
                    By::Cgroup => {
                        let known =
                            get(&cgroup, row).and_then(|at| reading.cgroups.get(&(host, at)));
                        known.cloned().unwrap_or_else(|| reading.word("[unknown]"))
                    }
                };
                *met.entry(Met { places, other }).or_default() += 1;
            }
        })?;
        let all = || met.keys().flat_map(|met| &met.places);
        self.symbols.look_up(all().filter_map(|place| match place {
            Where::File(place) => Some(place.clone()),
            _ => None,
        }));
        self.symbols.look_up_kernel(all().filter_map(|place| match place {
            Where::Kernel(address) => address.ok(),
            _ => None,
        }));
        let wall = WallTime::from_nanos;
        Ok(Counted { met, span: span.map(|(first, last)| (wall(first), wall(last))) })
    }

    fn place(&self, time: i64, process: Process, address: u64) -> Where {
        if address >= KERNEL_BEGIN {
            let kernels = self.kernels.get(&process.host);
            // What came before it was read which kernel it is came from the same one.
            let sampled = kernels.and_then(|kernels| {
                kernels.range(..=time).next_back().or_else(|| kernels.iter().next())
            });
            let in_this = sampled.map(|(_, sampled)| self.symbols.in_this_kernel(sampled, address));
            return Where::Kernel(in_this.unwrap_or(Err(Unnamed::OtherKernel)));
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
    fn called(&mut self, time: i64, thread: Process) -> Name {
        let names = self.names.get(&thread).map(Vec::as_slice).unwrap_or_default();
        let at = names.iter().rev().find(|(from, _)| *from <= time).or_else(|| names.first());
        match at {
            Some((_, name)) => Rc::clone(name),
            None => self.word(&format!("[{}]", thread.pid)),
        }
    }

    /// What the samples count for: the innermost line first.
    pub(super) fn frames(&self, met: &Met, by: By) -> Vec<(Name, Name)> {
        match by {
            By::Function => met.places.iter().map(|place| self.frame(place)).collect(),
            By::File => met
                .places
                .first()
                .map(|place| (self.frame(place).1, "".into()))
                .into_iter()
                .collect(),
            By::Process | By::Thread | By::Cpu | By::Cgroup | By::Host => {
                vec![(met.other.clone(), "".into())]
            }
        }
    }

    fn frame(&self, place: &Where) -> (Name, Name) {
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

    /// Why the innermost address has no name; `None` where it has one.
    pub(super) fn reason(&self, met: &Met) -> Option<Unnamed> {
        let function = match met.places.first()? {
            Where::Made(_) => return None,
            Where::Nowhere => return Some(Unnamed::NotMapped),
            Where::Kernel(Ok(address)) => self.symbols.kernel_function(*address),
            Where::Kernel(Err(why)) => return Some(*why),
            Where::File(place) => self.symbols.function(place),
        };
        function.map_or(Some(Unnamed::NotMapped), |function| function.name.clone().err())
    }

    /// What was lost.
    pub(super) fn losses(&mut self, options: &ReportOptions) -> Result<Vec<Loss>, ReadError> {
        let selection =
            Selection { from: options.from, to: options.until, ..Selection::all(losses::NAME) };
        let mut lost: BTreeMap<String, u64> = BTreeMap::new();
        self.each(&selection, |_, rows| {
            let (what, count) = (losses::LOSS.of(rows), losses::COUNT.of(rows));
            for row in 0..rows.num_rows() {
                let what = get(&what, row).unwrap_or_default().to_owned();
                *lost.entry(what).or_default() += get(&count, row).unwrap_or(0);
            }
        })?;
        Ok(lost.into_iter().map(|(what, count)| Loss { what, count }).collect())
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

    fn word(&mut self, text: &str) -> Name {
        if let Some(word) = self.words.get(text) {
            return Rc::clone(word);
        }
        let word: Name = text.into();
        self.words.insert(Rc::clone(&word));
        word
    }
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
