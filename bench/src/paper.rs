//! What the paper printed: "Cluster-wide Precise Performance Measurement using SNMP" (Kondo,
//! Ishibashi, Tatebe, about 2003), 241 dual Athlon MP 1900+ hosts on 100Base-TX, measured from one
//! Athlon at 1.2 GHz. Only points that its text gives are here.

/// Section of the results: all five values from 241 hosts, least over the intervals, in ms.
pub(crate) const FIVE_VALUES_241: Points =
    Points { hosts: 241, sent_ms: 7.9, received_ms: 15.0, kept_ms: 36.0 };

/// The parts of an interval, from its beginning, in ms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Points {
    /// Hosts that were asked.
    pub(crate) hosts: u32,
    /// All requests were sent.
    pub(crate) sent_ms: f64,
    /// All answers were in: the interval's time when nothing was written.
    pub(crate) received_ms: f64,
    /// All values were written to their files.
    pub(crate) kept_ms: f64,
}

/// The table of the results: 10,000 requests to each of two hosts.
pub(crate) mod requests {
    /// Requests to each host.
    pub(crate) const EACH: u64 = 10_000;
    /// One process, asynchronous, in s.
    pub(crate) const ENGINE_S: f64 = 7.4;
    /// `snmpget` processes in the background from a shell: 16 min 45 s.
    pub(crate) const SHELL_S: f64 = 1005.0;
    /// The ratio as the paper rounds it.
    pub(crate) const RATIO: f64 = 130.0;
}

/// The table of "Efficient collection and transfer of performance data" (about 2021): a second of samples of
/// some CPUs, 1,000 each, through the `DataFrameClient` into `InfluxDB` 1.8.3; a mean of ten transfers.
pub(crate) mod profile {
    /// CPUs, and how long the transfer took in s.
    pub(crate) const TRANSFER_S: [(u32, f64); 4] = [(1, 0.051), (2, 0.085), (10, 0.40), (20, 0.80)];
    /// How often each was repeated.
    pub(crate) const TIMES: u32 = 10;
    /// Samples of a CPU in a second.
    pub(crate) const SAMPLES: usize = 1_000;
}
