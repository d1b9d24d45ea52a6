//! Stacks of samples by number: each that is met is resolved once, however many samples have it.
//!
//! What an address means depends on its process and the time, but between two changes of what a process
//! has mapped it stays what it is. So samples are told apart by process, the number of changes before
//! them, address and callers, and only what is new of that is looked at closer.

use std::hash::Hash;

use hashbrown::{HashMap, HashTable};

use super::{Alike, Reading, Seen, Where, stack_hash};
use crate::block::read_stack;
use crate::kernel::KERNEL_BEGIN;

/// Things that are numbered as they are met.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    numbers: HashMap<T, u32>,
    things: Vec<T>,
}

impl<T: Hash + Eq + Clone> Numbered<T> {
    pub(crate) fn new() -> Self {
        Self { numbers: HashMap::new(), things: Vec::new() }
    }

    /// The number of a thing, which is given to it when it is new.
    pub(crate) fn number(&mut self, thing: &T) -> u32 {
        if let Some(&number) = self.numbers.get(thing) {
            return number;
        }
        let number = u32::try_from(self.things.len()).expect("fewer things than samples are met");
        self.things.push(thing.clone());
        self.numbers.insert(thing.clone(), number);
        number
    }

    /// All things in the order of their numbers.
    pub(crate) fn all(&self) -> &[T] {
        &self.things
    }
}

/// Whether callers are a part of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callers {
    Kept,
    LeftOut,
}

/// What makes two samples have the same stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    space: u32,
    /// Changes before the sample, of the process and of the kernel.
    changes: [u32; 2],
    address: u64,
    callers: u32,
}

/// Texts of callers by number.
#[derive(Debug, Default)]
pub(super) struct Texts {
    numbers: HashTable<u32>,
    texts: Vec<(u64, Box<str>)>,
}

impl Texts {
    /// The number of a text whose [`stack_hash`] is given.
    pub(super) fn number(&mut self, text: &str, hash: u64) -> u32 {
        let Self { numbers, texts } = self;
        let is_it = |number: &u32| *texts[index(*number)].1 == *text;
        if let Some(&number) = numbers.find(hash, is_it) {
            return number;
        }
        let number = u32::try_from(texts.len()).expect("fewer stacks than samples");
        texts.push((hash, text.into()));
        numbers.insert_unique(hash, number, |number| texts[index(*number)].0);
        number
    }

    /// A text by its number, and its hash.
    pub(super) fn get(&self, number: u32) -> (&str, u64) {
        let (hash, text) = &self.texts[index(number)];
        (text, *hash)
    }
}

/// The stacks that were met.
#[derive(Debug)]
pub(crate) struct Stacks {
    callers: Callers,
    places: Numbered<Where>,
    /// The place of each address that a stack has had, by process and changes.
    placed: HashMap<(u32, [u32; 2], u64), u32>,
    /// Numbers of places, the innermost first.
    stacks: Numbered<Box<[u32]>>,
    texts: Texts,
    known: HashMap<Key, u32>,
    /// Each process by its host, with when what it had mapped changed.
    spaces: HashMap<(usize, u64), (u32, Vec<i64>)>,
    /// Each host with when it was told which kernel runs.
    kernels: HashMap<usize, Vec<i64>>,
}

impl Stacks {
    pub(crate) fn new(callers: Callers) -> Self {
        Self {
            callers,
            places: Numbered::new(),
            placed: HashMap::new(),
            stacks: Numbered::new(),
            texts: Texts::default(),
            known: HashMap::new(),
            spaces: HashMap::new(),
            kernels: HashMap::new(),
        }
    }

    /// The number of a sample's stack.
    pub(crate) fn number_of(&mut self, reading: &Reading<'_>, seen: &Seen<'_>) -> u32 {
        let text = if self.callers == Callers::Kept { seen.stack } else { "" };
        self.number(reading, seen, (text, stack_hash(text)))
    }

    /// The number of the stack of some samples.
    pub(crate) fn number_of_alike(&mut self, reading: &Reading<'_>, alike: &Alike<'_>) -> u32 {
        match self.callers {
            Callers::Kept => self.number(reading, &alike.seen, (alike.seen.stack, alike.hash)),
            Callers::LeftOut => self.number_of(reading, &alike.seen),
        }
    }

    fn number(&mut self, reading: &Reading<'_>, seen: &Seen<'_>, (text, hash): (&str, u64)) -> u32 {
        let callers = self.texts.number(text, hash);
        let next = u32::try_from(self.spaces.len()).expect("fewer processes than samples");
        let changes_of = || reading.changes(seen.process());
        let space = self.spaces.entry((seen.host, seen.pid));
        let &mut (space, ref changes) = space.or_insert_with(|| (next, changes_of()));
        let kernels = self.kernels.entry(seen.host);
        let kernels = kernels.or_insert_with(|| reading.kernel_changes(seen.host));
        let before = |changes: &[i64]| {
            let count = changes.partition_point(|&at| at <= seen.time);
            u32::try_from(count).expect("changes are rows in memory")
        };
        // Code of a process means the same whatever kernel runs, and the other way round.
        let is_kernel = seen.address >= KERNEL_BEGIN && text.is_empty();
        let changes = [if is_kernel { 0 } else { before(changes) }, before(kernels)];
        let key = Key { space, changes, address: seen.address, callers };
        if let Some(&number) = self.known.get(&key) {
            return number;
        }
        // What a caller goes on with lies behind its call, maybe in another function.
        let callers = read_stack(text).unwrap_or_default();
        let callers = callers.into_iter().map(|caller| caller.wrapping_sub(1));
        let addresses = std::iter::once(seen.address).chain(callers);
        let places = &mut self.places;
        let mut place = |at| places.number(&reading.place(seen.time, seen.process(), at));
        let number = |at| *self.placed.entry((space, changes, at)).or_insert_with(|| place(at));
        let number = self.stacks.number(&addresses.map(number).collect());
        self.known.insert(key, number);
        number
    }

    /// All places by their numbers.
    pub(crate) fn places(&self) -> &[Where] {
        self.places.all()
    }

    /// The places of a stack if all of them are among the first so many.
    pub(crate) fn known(&self, number: u32, places: usize) -> Option<&[u32]> {
        let stack = self.stack(number);
        stack.iter().all(|&place| index(place) < places).then_some(stack)
    }

    /// The places of a stack, the innermost first.
    pub(crate) fn stack(&self, number: u32) -> &[u32] {
        &self.stacks.all()[index(number)]
    }
}

/// A number as the index of what it was given to.
pub(crate) fn index(number: u32) -> usize {
    usize::try_from(number).expect("numbers are given to what is in memory")
}
