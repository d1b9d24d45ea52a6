//! What a manager knows of an engine's time (RFC 3414, 2.3 and 3.2.7b).

use meikyo_units::{Nanos, WallTime};

use super::{EngineId, EngineTime};

/// How far an authentic message may lag behind, in seconds (RFC 3414, 2.2.3).
pub const WINDOW_SECONDS: u32 = 150;

/// An engine whose boots have reached this is never in the window (RFC 3414, 2.2.2).
const BOOTS_MAX: u32 = 0x7fff_ffff;

const SECOND: u64 = 1_000_000_000;

/// An engine's boots and time, carried forward with our own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineClock {
    /// What was heard last.
    heard: EngineTime,
    /// Instant of our clock at which that was heard.
    heard_at: WallTime,
    /// The greatest time that was received in this boot, which guards against replay.
    time_latest: u32,
    /// Whether it was heard from an authentic message.
    trusted: bool,
}

impl EngineClock {
    /// From the unauthenticated report that ends a discovery (RFC 3414, section 4).
    ///
    /// Boots and time in it are used at once, which spares a round trip, but whatever the first
    /// authentic message says replaces them.
    pub const fn discovered(now: WallTime, heard: EngineTime) -> Self {
        Self { heard, heard_at: now, time_latest: 0, trusted: false }
    }

    /// The engine whose clock this follows.
    pub const fn engine_id(&self) -> EngineId {
        self.heard.engine_id
    }

    /// The engine's time as it must be by now.
    pub fn at(&self, now: WallTime) -> EngineTime {
        let seconds = now.since(self.heard_at).get() / SECOND;
        // Saturates, as the sum does.
        let passed = u32::try_from(seconds).unwrap_or(u32::MAX);
        EngineTime { time: self.heard.time.saturating_add(passed).min(BOOTS_MAX), ..self.heard }
    }

    /// Takes note of an authentic message; `false` if it lies outside the time window and must not
    /// be believed.
    #[must_use]
    pub fn accept(&mut self, now: WallTime, seen: &EngineTime) -> bool {
        if seen.engine_id != self.heard.engine_id || seen.boots >= BOOTS_MAX {
            return false;
        }
        let newer_boot = seen.boots > self.heard.boots;
        let newer = seen.boots == self.heard.boots && seen.time > self.time_latest;
        if !self.trusted || newer_boot || newer {
            *self = Self { heard: *seen, heard_at: now, time_latest: seen.time, trusted: true };
            return true;
        }
        let here = self.at(now);
        seen.boots == here.boots && seen.time.saturating_add(WINDOW_SECONDS) >= here.time
    }

    /// How long ago the engine was heard.
    pub fn age(&self, now: WallTime) -> Nanos {
        now.since(self.heard_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> WallTime {
        WallTime::from_nanos(1_700_000_000_000_000_000) + Nanos::from_secs(seconds)
    }

    fn engine(boots: u32, time: u32) -> EngineTime {
        EngineTime { engine_id: EngineId::from_slice(b"engine").unwrap(), boots, time }
    }

    #[test]
    fn time_goes_on_between_messages() {
        let mut clock = EngineClock::discovered(at(0), engine(3, 1000));
        assert_eq!(clock.at(at(60)), engine(3, 1060));
        assert!(clock.accept(at(60), &engine(3, 1061)));
        assert_eq!(clock.at(at(70)), engine(3, 1071));
    }

    #[test]
    fn messages_out_of_the_window_are_not_believed() {
        let mut clock = EngineClock::discovered(at(0), engine(3, 1000));
        assert!(clock.accept(at(0), &engine(3, 1000)));
        assert!(clock.accept(at(200), &engine(3, 1050)), "exactly 150 s behind");
        assert!(clock.accept(at(200), &engine(3, 1200)));
        assert!(!clock.accept(at(200), &engine(3, 1049)), "151 s behind");
        assert!(!clock.accept(at(200), &engine(2, 1200)), "an earlier boot");
        assert!(!clock.accept(at(200), &engine(BOOTS_MAX, 1)), "a latched engine");
        let other = EngineTime { engine_id: EngineId::default(), ..engine(3, 1200) };
        assert!(!clock.accept(at(200), &other));
        assert!(clock.accept(at(201), &engine(4, 1)), "a restart");
        assert!(!clock.accept(at(202), &engine(3, 1201)), "before the restart");
    }

    #[test]
    fn an_authentic_message_corrects_what_was_only_discovered() {
        let mut clock = EngineClock::discovered(at(0), engine(900, 5));
        assert!(clock.accept(at(1), &engine(3, 1000)));
        assert_eq!(clock.at(at(1)), engine(3, 1000));
    }
}
