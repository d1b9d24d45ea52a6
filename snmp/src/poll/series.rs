//! What the poll core remembers of one value between two answers.

use meikyo_recording::counter::Steps;
use meikyo_units::Nanos;

use crate::freshness::Detector;
use crate::poll::request::Reading;

/// One value of one device: a line of memory.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
pub(super) struct Series {
    /// The last value as bits, of a text its hash.
    last: u64,
    /// Whether there was a value yet.
    known: bool,
    /// Whether the agent said last time that it has none.
    missing: bool,
    /// Of a counter: what it grew by that its port cannot carry.
    pub(super) steps: Steps,
    pub(super) freshness: Detector,
}

const _: () = assert!(size_of::<Series>() == 64, "a value is one line of memory");

/// How a value compares with the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// There was none before.
    First,
    Same,
    Changed,
    /// There is none, as before.
    Missing,
    /// There is none any more.
    Vanished,
    /// There is one again, or for the first time after the agent had none.
    Returned,
}

impl Series {
    /// A value that has not been seen, of which the agent declares how often it is refreshed.
    pub(super) fn new(declared: Option<Nanos>) -> Self {
        let freshness = declared.map_or_else(Detector::new, Detector::declared);
        Self { freshness, ..Self::default() }
    }

    /// Reads what a value will be compared with, and makes nothing of it.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.last ^ self.freshness.polled().cast_unsigned()
    }

    /// The last value that was taken in, as bits.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    #[inline]
    pub(super) fn observe(&mut self, reading: Reading, texts: &str) -> Change {
        let bits = match reading {
            Reading::Missing => {
                let vanished = !std::mem::replace(&mut self.missing, true);
                return if vanished { Change::Vanished } else { Change::Missing };
            }
            Reading::Unsigned(bits) | Reading::Counter(bits) => bits,
            Reading::Signed(integer) => integer.cast_unsigned(),
            Reading::Real(real) => real.to_bits(),
            Reading::Text { start, end } => fnv1a(&texts.as_bytes()[start..end]),
        };
        let known = std::mem::replace(&mut self.known, true);
        let returned = std::mem::replace(&mut self.missing, false);
        let last = std::mem::replace(&mut self.last, bits);
        match (known, returned) {
            (_, true) => Change::Returned,
            (false, _) => Change::First,
            (true, _) if last == bits => Change::Same,
            _ => Change::Changed,
        }
    }
}

/// The 64-bit FNV-1a hash: a change that it misses only delays a freshness finding.
fn fnv1a(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
