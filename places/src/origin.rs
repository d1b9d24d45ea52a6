//! Where the value of a setting comes from.

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody wrote it: it is built in.
    Default,
    /// This line of the file, 1 for the first.
    Line(usize),
    /// Somebody set it beside the file, as on a command line.
    Set,
}

impl Origin {
    /// The line of the file, if the value stands in it.
    pub const fn line(self) -> Option<usize> {
        match self {
            Self::Line(line) => Some(line),
            Self::Default | Self::Set => None,
        }
    }
}
