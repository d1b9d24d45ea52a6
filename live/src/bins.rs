//! How long a pixel is, and which summaries fill it.

use std::ops::RangeInclusive;

use meikyo_recording::summary::ZOOM_LEVELS;
use meikyo_units::WallTime;

/// ns of the shortest pixel.
const SHORTEST: i64 = 1_000_000;
/// ns of the longest pixel, 36 years: with it and [`TIMES`] nothing below can overflow.
const LONGEST: i64 = i64::MAX / 8;
/// What pixels can cover, ns since the epoch: from 1933 to 2116.
const TIMES: RangeInclusive<i64> = -(i64::MAX / 8)..=i64::MAX / 2;

/// The pixels of a range: they begin at multiples of their length, so that ranges that overlap
/// have the same pixels, and moving a view does not make its values flicker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bins {
    /// Begin of the first, ns since the epoch.
    pub from: i64,
    /// End of the last, exclusive.
    pub to: i64,
    /// The length of one, ns.
    pub length: i64,
    /// The length of the spans that are read, ns; 0 for raw readings.
    pub level: i64,
}

impl Bins {
    /// At most `width` and one pixels for a range; more than half of it. Of a range that goes
    /// beyond what can be recorded (1933 to 2116) the part within.
    pub(crate) fn choose(from: WallTime, to: WallTime, width: u32, summaries: bool) -> Self {
        let (from, to) = (within(from), within(to));
        let span = to.saturating_sub(from).max(1);
        let exact = (span - 1) / i64::from(width.max(1)) + 1;
        let exact = exact.clamp(SHORTEST, LONGEST);
        let levels = ZOOM_LEVELS.map(|level| level.get().cast_signed());
        let level = levels.into_iter().filter(|level| summaries && *level <= exact).max();
        let level = level.unwrap_or(0);
        let grain = level.max(SHORTEST);
        let length = (exact + grain - 1) / grain * grain;
        Self::covering(from, to, length, level)
    }

    /// As [`Bins::choose`], of whole seconds and for counts of seconds.
    pub(crate) fn choose_whole_seconds(from: WallTime, to: WallTime, width: u32) -> Self {
        const SECOND: i64 = 1_000_000_000;
        let exact = Self::choose(from, to, width, false).length;
        let length = (exact + SECOND - 1) / SECOND * SECOND;
        Self::covering(within(from), within(to), length, SECOND)
    }

    fn covering(from: i64, to: i64, length: i64, level: i64) -> Self {
        let end = to + (length - 1);
        let bins = Self {
            from: from - from.rem_euclid(length),
            to: end - end.rem_euclid(length),
            length,
            level,
        };
        assert!(bins.from <= bins.to, "pixels from {from} to {to} end before they begin");
        bins
    }

    /// How many pixels there are.
    ///
    /// # Panics
    /// When they were put together by hand and end before they begin.
    pub fn count(&self) -> usize {
        usize::try_from((self.to - self.from) / self.length).expect("`to` is not before `from`")
    }

    /// The pixel of an instant.
    #[inline]
    pub(crate) fn bin_of(&self, time: i64) -> Option<usize> {
        if time < self.from || time >= self.to {
            return None;
        }
        usize::try_from((time - self.from) / self.length).ok()
    }

    /// The spans that are read as milliseconds; 0 for raw readings.
    pub fn level_ms(&self) -> u64 {
        self.level.unsigned_abs() / 1_000_000
    }
}

/// ns since the epoch, as far as pixels go.
fn within(time: WallTime) -> i64 {
    time.as_nanos().clamp(*TIMES.start(), *TIMES.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn bins(from_s: i64, to_s: i64, width: u32) -> Bins {
        Bins::choose(WallTime::from_nanos(from_s * S), WallTime::from_nanos(to_s * S), width, true)
    }

    #[test]
    fn the_coarsest_level_that_fits_a_pixel_is_read() {
        let day = bins(86_400 * 20_000, 86_400 * 20_001, 600);
        assert_eq!((day.level, day.length), (60 * S, 180 * S));
        assert_eq!(day.count(), 480);
        let hour = bins(0, 3_600, 600);
        assert_eq!((hour.level, hour.length, hour.count()), (S, 6 * S, 600));
        let minute = bins(0, 60, 600);
        assert_eq!((minute.level, minute.length, minute.count()), (0, S / 10, 600));
        let month = bins(0, 86_400 * 30, 600);
        assert_eq!(month.level, 600 * S);
    }

    #[test]
    fn pixels_cover_the_range_and_lie_on_one_grid() {
        for (from, to, width) in [(7, 1_234, 100), (-50, 50, 7), (1, 2, 10_000)] {
            let bins = bins(from, to, width);
            assert!(bins.from <= from * S && bins.to >= to * S);
            assert_eq!(bins.from % bins.length, 0);
            assert!(bins.count() <= usize::try_from(width).unwrap() + 1);
            assert_eq!(bins.bin_of(bins.from), Some(0));
            assert_eq!(bins.bin_of(bins.to - 1), Some(bins.count() - 1));
            assert_eq!(bins.bin_of(bins.to), None);
        }
        // Whatever is asked for: nothing overflows, and what is covered holds together.
        let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        for (from, to) in ends.iter().flat_map(|from| ends.map(|to| (*from, to))) {
            for width in [0, 1, 600, u32::MAX] {
                let [from, to] = [from, to].map(WallTime::from_nanos);
                for bins in [
                    Bins::choose(from, from.max(to), width, true),
                    Bins::choose_whole_seconds(from, from.max(to), width),
                ] {
                    let count = i64::try_from(bins.count()).unwrap();
                    assert_eq!(bins.from + bins.length * count, bins.to);
                }
            }
        }
        let raw = Bins::choose(WallTime::from_nanos(0), WallTime::from_nanos(S), 2, false);
        assert_eq!((raw.level, raw.length), (0, S / 2));
    }
}
