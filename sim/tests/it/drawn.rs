//! Models drawn at random: groups and links of any shape, ties, zero delays, bursts and stragglers.

use meikyo_sim::{Context, Group, Handle, Lp, LpId, Model, Series, Statistic};
use meikyo_undo::{Cell, Deque, Held, List, Map, State, copied};
use meikyo_units::Nanos;

/// Small numbers that follow from a seed, for drawing models only.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 11) % u64::from(limit)).expect("a remainder is below the limit")
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let count = u32::try_from(of.len()).expect("a few");
        &of[self.below(count) as usize]
    }
}

/// Where an LP may send, and what it likes to do.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Habits {
    /// First LP, number of LPs and least delay of each linked group.
    links: Vec<(u32, u32, u64)>,
    /// Delays are multiples of this: a coarse one makes ties.
    grain: u64,
    /// Events that an event may make beyond its successor, in 1/256.
    burst: u32,
    statistic: Statistic,
    series: Series,
}

/// An LP that uses every kind of field.
#[derive(Clone, Debug, PartialEq, State, serde::Serialize, serde::Deserialize)]
pub(crate) struct Drawn {
    #[state(fixed)]
    habits: Habits,
    seen: Cell<u64>,
    digest: Cell<u64>,
    queue: Deque<u64>,
    list: List<u32>,
    map: Map<u64, u64>,
    word: Held<String>,
    timer: Held<Option<Handle>>,
}

impl Drawn {
    fn change(&mut self, hops: u32, context: &mut impl Context<u32>) {
        let key = context.event();
        self.seen.add(context, 1);
        let digest = self.digest.get().rotate_left(9) ^ key.time.as_nanos() ^ key.sequence;
        self.digest.set(context, digest.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        match context.below(7) {
            0 => self.queue.push_back(context, digest),
            1 => drop(self.queue.pop_front(context)),
            2 => {
                self.map.insert(context, digest % 16, u64::from(hops));
            }
            3 => drop(self.map.remove(context, &(digest % 16))),
            4 => self.list.push(context, hops),
            5 => self.set_timer(hops, context),
            _ => {
                self.list.pop(context);
                self.word.set(context, format!("{hops} hops"));
            }
        }
    }

    /// Takes the last timer back, which may be over, and sets another one in two of three cases.
    fn set_timer(&mut self, hops: u32, context: &mut impl Context<u32>) {
        if let Some(timer) = *self.timer.get() {
            context.cancel(timer);
        }
        if hops > 0 && context.below(3) > 0 {
            let delay = Nanos::new(u64::from(context.below(9)) * self.habits.grain);
            let timer = context.schedule(delay, hops / 2);
            self.timer.set(context, Some(timer));
        }
    }

    fn send(&mut self, hops: u32, context: &mut impl Context<u32>) {
        let Habits { links, grain, .. } = &self.habits;
        let choice = context.below(u32::try_from(links.len() + 1).expect("a few"));
        let (destination, least) = match links.get(choice as usize) {
            Some((first, count, least)) => (LpId::new(first + context.below(*count)), *least),
            None => (context.me(), 0),
        };
        let steps = u64::from(context.below(4));
        // Chains without delay end: every hop counts down, and self-sends move on in time.
        let delay = if destination == context.me() {
            least + (steps + 1) * grain
        } else {
            least + steps * grain
        };
        let priority = context.below(2);
        context.send_with_priority(destination, Nanos::new(delay), priority, hops);
    }
}

impl Lp for Drawn {
    type Message = u32;

    fn start(&mut self, context: &mut impl Context<u32>) {
        let count = context.below(3);
        for _ in 0..count {
            let delay = Nanos::new(u64::from(context.below(8)) * self.habits.grain);
            context.send(context.me(), delay, 60);
        }
    }

    fn handle(&mut self, hops: u32, context: &mut impl Context<u32>) {
        self.change(hops, context);
        let value = context.uniform();
        context.tally(self.habits.statistic, value);
        if hops % 16 == 3 {
            context.record(self.habits.series, value);
            context.print(&format!("{} at {}", context.me(), context.now()));
        }
        if hops > 0 {
            self.send(hops - 1, context);
            if context.below(256) < self.habits.burst {
                self.send(hops / 2, context);
            }
        }
    }
}

/// The same LP, copied before every event instead of keeping a log.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Copied(pub(crate) Drawn);
copied!(Copied);

impl Lp for Copied {
    type Message = u32;

    fn start(&mut self, context: &mut impl Context<u32>) {
        self.0.start(context);
    }

    fn handle(&mut self, hops: u32, context: &mut impl Context<u32>) {
        self.0.handle(hops, context);
    }
}

/// A model that follows from `seed`, of LPs that `wrap` makes of the drawn ones.
pub(crate) fn model<L: Lp>(seed: u64, wrap: impl Fn(Drawn) -> L) -> Model<L> {
    let mut dice = Dice::new(seed);
    let mut model = Model::new(seed);
    let names = ["north", "east", "south", "west"];
    let count = 1 + dice.below(4) as usize;
    let groups: Vec<Group> =
        names[..count].iter().map(|name| model.group(name, 1 + dice.below(24))).collect();
    let grain = *dice.pick(&[1, 10, 100]);
    let burst = dice.below(30);
    // Links without delay join groups to one part: only every third model has them.
    let delays: &[u64] = if seed.is_multiple_of(3) { &[0, 1, 5, 40] } else { &[1, 5, 40] };
    let series = model.series("drawn");
    let mut linked = vec![Vec::new(); count];
    for from in 0..count {
        for to in 0..count {
            if dice.below(3) == 0 {
                continue;
            }
            let delay = dice.pick(delays) * grain;
            // Every other model declares its links LP by LP: the same sends are permitted.
            if seed.is_multiple_of(2) {
                model.link(groups[from], groups[to], Nanos::new(delay));
            } else {
                for (a, b) in groups[from].lps().flat_map(|a| groups[to].lps().map(move |b| (a, b)))
                {
                    model.link_lps(a, b, Nanos::new(delay));
                }
            }
            linked[from].push((groups[to].lp(0).get(), groups[to].len(), delay));
        }
    }
    for (group, links) in groups.iter().zip(linked) {
        let statistic = model.statistic(*group, "drawn");
        model.fill(*group, |_| {
            wrap(Drawn {
                habits: Habits { links: links.clone(), grain, burst, statistic, series },
                seen: Cell::new(0),
                digest: Cell::new(0),
                queue: Deque::default(),
                list: List::default(),
                map: Map::default(),
                word: Held::new(String::new()),
                timer: Held::new(None),
            })
        });
    }
    model
}
