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
use crate::existing::KERNEL;
use crate::symbols::{AddressSpaces, Function, Place, Symbols, Unnamed};
use crate::tables::{cgroups, jit_symbols, losses, mappings, samples, threads};

/// Addresses at which and above the kernel lies.
const KERNEL_BEGIN: u64 = 1 << 63;

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
    Kernel(u64),
    File(Place),
    Made(Name),
    Nowhere,
}

/// Samples counted.
pub(super) struct Counted {
    pub(super) met: BTreeMap<Met, u64>,
    pub(super) span: Option<(WallTime, WallTime)>,
}

/// A recording while it is read.
pub(super) struct Reading<'a> {
    recording: &'a Recording,
    spaces: AddressSpaces,
    symbols: Symbols,
    /// By process, functions made at run time: begin, end, name.
    made: BTreeMap<u64, Vec<(u64, u64, Name)>>,
    /// By thread, what it was called from when on.
    names: BTreeMap<u64, Vec<(i64, Name)>>,
    cgroups: BTreeMap<u64, Name>,
    words: BTreeSet<Name>,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Reading<'a> {
    /// Reads what explains samples.
    pub(super) fn new(
        recording: &'a Recording,
        options: &ReportOptions,
    ) -> Result<Self, ReadError> {
        let mut reading = Self {
            recording,
            spaces: AddressSpaces::default(),
            symbols: Symbols::new(None),
            made: BTreeMap::new(),
            names: BTreeMap::new(),
            cgroups: BTreeMap::new(),
            words: BTreeSet::new(),
            problems: Vec::new(),
        };
        let kernel = reading.read_address_spaces()?;
        reading.symbols = Symbols::new(kernel.as_deref());
        reading.read_made()?;
        if options.by == By::Cgroup {
            reading.read_cgroups()?;
        }
        Ok(reading)
    }

    /// Reads what was mapped and begun, in the order of time; the build ID of the kernel.
    fn read_address_spaces(&mut self) -> Result<Option<Name>, ReadError> {
        enum Event {
            Mapped([u64; 3], Name, Option<Name>),
            Executed,
            Forked(u64),
        }
        let (mut events, mut kernel) = (Vec::new(), None);
        self.each(&Selection::all(mappings::NAME), |reading, rows| {
            let numbers = [mappings::ADDRESS, mappings::SIZE_BYTES, mappings::OFFSET_BYTES];
            let numbers = numbers.map(|column| column.of(rows));
            let (path, build_id) = (mappings::PATH.of(rows), mappings::BUILD_ID.of(rows));
            let (pids, times) = (mappings::PID.of(rows), times(rows));
            for (row, &time) in times.iter().enumerate() {
                let range = numbers.each_ref().map(|numbers| get(numbers, row).unwrap_or(0));
                let path = reading.word(get(&path, row).unwrap_or_default());
                let build_id = get(&build_id, row).map(|id| reading.word(id));
                match get(&pids, row) {
                    Some(pid) => {
                        events.push((time, 1, pid, Event::Mapped(range, path, build_id)));
                    }
                    None if *path == *KERNEL => kernel = build_id,
                    None => {}
                }
            }
        })?;
        self.each(&Selection::all(threads::NAME), |reading, rows| {
            let (event, name) = (threads::EVENT.of(rows), threads::CALLED.of(rows));
            let numbers = [threads::TID, threads::PID, threads::PARENT_PID];
            let numbers = numbers.map(|column| column.of(rows));
            let times = times(rows);
            for (row, &time) in times.iter().enumerate() {
                let [tid, pid, parent] = numbers.each_ref().map(|numbers| get(numbers, row));
                let (Some(tid), Some(pid)) = (tid, pid) else { continue };
                match (get(&event, row), parent) {
                    (Some("exec"), _) => events.push((time, 0, pid, Event::Executed)),
                    (Some("fork"), Some(parent)) => {
                        if parent != pid {
                            events.push((time, 0, pid, Event::Forked(parent)));
                        }
                        reading.inherit_name(time, tid, parent);
                    }
                    _ => {}
                }
                if let Some(name) = get(&name, row) {
                    let name = reading.word(name);
                    reading.names.entry(tid).or_default().push((time, name));
                }
            }
        })?;
        events.sort_by_key(|(time, order, ..)| (*time, *order));
        for (time, _, pid, event) in events {
            match event {
                Event::Mapped(range, path, build_id) => {
                    self.spaces.mapped((time, pid), range, &path, build_id.as_ref());
                }
                Event::Executed => self.spaces.executed(time, pid),
                Event::Forked(parent) => self.spaces.forked(time, pid, parent),
            }
        }
        Ok(kernel)
    }

    /// A thread is called what the process was called that began it, until it is named.
    fn inherit_name(&mut self, time: i64, tid: u64, parent: u64) {
        let name = self.names.get(&parent).and_then(|names| names.last()).map(|it| it.1.clone());
        if let Some(name) = name {
            self.names.entry(tid).or_default().push((time, name));
        }
    }

    fn read_made(&mut self) -> Result<(), ReadError> {
        self.each(&Selection::all(jit_symbols::NAME), |reading, rows| {
            let numbers = [jit_symbols::PID, jit_symbols::ADDRESS, jit_symbols::SIZE_BYTES];
            let numbers = numbers.map(|column| column.of(rows));
            let names = jit_symbols::FUNCTION.of(rows);
            for row in 0..rows.num_rows() {
                let [pid, begin, size] =
                    numbers.each_ref().map(|numbers| get(numbers, row).unwrap_or(0));
                let name = reading.word(get(&names, row).unwrap_or_default());
                let end = begin.saturating_add(size);
                reading.made.entry(pid).or_default().push((begin, end, name));
            }
        })?;
        self.made.values_mut().for_each(|made| made.sort_unstable());
        Ok(())
    }

    fn read_cgroups(&mut self) -> Result<(), ReadError> {
        self.each(&Selection::all(cgroups::NAME), |reading, rows| {
            let (numbers, paths) = (cgroups::CGROUP.of(rows), cgroups::PATH.of(rows));
            for row in 0..rows.num_rows() {
                if let (Some(number), Some(path)) = (get(&numbers, row), get(&paths, row)) {
                    let path = reading.word(path);
                    reading.cgroups.insert(number, path);
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
            let (host, times) = (samples::HOST.of(rows), times(rows));
            for (row, &time) in times.iter().enumerate() {
                let [tid, pid, address, cpu] =
                    numbers.each_ref().map(|numbers| get(numbers, row).unwrap_or(0));
                if options.pid.is_some_and(|wanted| wanted != pid) {
                    continue;
                }
                span = Some(span.map_or((time, time), |(a, b)| (a.min(time), b.max(time))));
                let callers = get(&stack, row).and_then(read_stack).unwrap_or_default();
                // What a caller goes on with lies behind its call, maybe in another function.
                let callers = callers.into_iter().map(|caller| caller.wrapping_sub(1));
                let wants_callers = options.by == By::Function;
                let callers = callers.filter(|_| wants_callers);
                let addresses = std::iter::once(address).chain(callers);
                let places = addresses.map(|at| reading.place(time, pid, at)).collect();
                let other = match options.by {
                    By::Function | By::File => reading.word(""),
                    By::Process => reading.called(time, pid),
                    By::Thread => reading.called(time, tid),
                    By::Cpu => {
                        let host = get(&host, row).unwrap_or_default();
                        reading.word(&format!("{host} CPU {cpu}"))
                    }
                    By::Cgroup => {
                        let known = get(&cgroup, row).and_then(|at| reading.cgroups.get(&at));
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
            Where::Kernel(address) => Some(*address),
            _ => None,
        }));
        let wall = WallTime::from_nanos;
        Ok(Counted { met, span: span.map(|(first, last)| (wall(first), wall(last))) })
    }

    fn place(&self, time: i64, pid: u64, address: u64) -> Where {
        if address >= KERNEL_BEGIN {
            return Where::Kernel(address);
        }
        if let Some(made) = self.made.get(&pid) {
            let at = made.partition_point(|(begin, ..)| *begin <= address);
            if let Some((_, end, name)) = at.checked_sub(1).and_then(|at| made.get(at))
                && address < *end
            {
                return Where::Made(Rc::clone(name));
            }
        }
        self.spaces.place(time, pid, address).map_or(Where::Nowhere, Where::File)
    }

    /// What a thread was called at a time.
    fn called(&mut self, time: i64, tid: u64) -> Name {
        let names = self.names.get(&tid).map(Vec::as_slice).unwrap_or_default();
        let at = names.iter().rev().find(|(from, _)| *from <= time).or_else(|| names.first());
        match at {
            Some((_, name)) => Rc::clone(name),
            None => self.word(&format!("[{tid}]")),
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
            By::Process | By::Thread | By::Cpu | By::Cgroup => vec![(met.other.clone(), "".into())],
        }
    }

    fn frame(&self, place: &Where) -> (Name, Name) {
        let function = match place {
            Where::Made(name) => return (Rc::clone(name), "[made at run time]".into()),
            Where::Nowhere => return ("[unknown]".into(), "[unknown]".into()),
            Where::Kernel(address) => self.symbols.kernel_function(*address),
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
            Where::Kernel(address) => self.symbols.kernel_function(*address),
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
