//! Which of the receiver's recordings a stream is in.

use crate::wire::Hello;

/// A stream of one of the receiver's recordings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The cluster whose recording it is; `None` for the one that all other senders share.
    pub cluster: Option<String>,
    /// The stream's name, which is that of its directory in the log.
    pub stream: String,
}

impl Place {
    /// The place of a stream whose sender says which cluster it measures, if any.
    pub fn new(cluster: Option<&str>, stream: &str) -> Self {
        Self { cluster: cluster.map(str::to_owned), stream: stream.to_owned() }
    }

    /// The places of everything that a sender declares.
    pub(super) fn all_of(hello: &Hello) -> impl Iterator<Item = Self> + '_ {
        let cluster = hello.cluster.as_deref();
        hello.streams.iter().map(move |of| Self::new(cluster, &of.stream))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cluster {
            Some(cluster) => write!(f, "`{}` of cluster `{cluster}`", self.stream),
            None => write!(f, "`{}`", self.stream),
        }
    }
}
