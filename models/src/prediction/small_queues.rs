//! How much of a connection waits at the card of its host, and not with the connection: TCP small queues of Linux
//! (`tcp_small_queue_check`, since 3.6).

use super::network::PAYLOAD;

/// Linux's shift by ten for a millisecond, and the data of a full segment as a share of the memory that it takes.
const MILLISECOND_S: f64 = 1.0 / 1024.0;
const IN_MEMORY: f64 = PAYLOAD as f64 / 2304.0;

/// How much faster than its window allows a connection may hand over (`tcp_update_pacing_rate`), in slow start and later.
pub(super) const PACES: [f64; 2] = [2.0, 1.2];

/// At low rates so many segments wait all the same.
pub(super) const LEAST: f64 = 2.0;

/// How many segments wait at most at this pace: what goes within a millisecond, and two at least.
pub(super) fn segments_at_card(segments_per_s: f64) -> f64 {
    (segments_per_s * MILLISECOND_S * IN_MEMORY).max(LEAST)
}

/// The same of a connection that always sends, in octets.
pub(super) fn bytes_at_card(bytes_per_s: f64) -> f64 {
    let segment = f64::from(PAYLOAD);
    segments_at_card(PACES[1] * bytes_per_s / segment) * segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_millisecond_waits_at_fast_cards_and_two_segments_at_slow_ones() {
        // 1.2 times 117.4 MB/s for 1/1,024 s, counted in memory: 1,448 octets of each 2,304.
        let fast = bytes_at_card(117.4e6);
        assert!((fast - 1.2 * 117.4e6 / 1_024.0 * 1_448.0 / 2_304.0).abs() < 1.0, "{fast}");
        assert!((bytes_at_card(0.477e6) - 2_896.0).abs() < 1e-6);
    }
}
