//! What a table is for, and the columns that readers may count on because of it.
//!
//! A reader that needs receive times, health or events looks for the table with that role instead
//! of one with a certain name. Each role is a contract: the columns in the module of its name are
//! there and of that kind.

use serde::{Deserialize, Serialize};

use super::{ColumnKind, TableSchema};

/// What the rows of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Values of devices.
    Readings,
    /// One row a (device, interval, answer): how it ended, and when the answer was received. It
    /// says which devices there are, see [`answers`].
    Answers,
    /// One row an interval: in how many devices it ended how, see [`health`].
    Health,
    /// When requests were handed to the kernel, which the answers to them are joined with.
    Requests,
    /// How often values are really updated, see [`findings`].
    Findings,
    /// What happened, see [`crate::tables::events`].
    Events,
    /// Real time against monotonic time, see [`crate::tables::clocks`].
    Clocks,
    /// Samples of processors: one row a sample, which is neither a value nor a series.
    Samples,
    /// What explains the rows of other tables of the stream, such as what addresses mean.
    Context,
}

/// Declares the columns that tables of a role have, each as a [`super::Name`].
macro_rules! contract {
    ($(#[$doc:meta])* $module:ident { $($(#[$of:meta])* $constant:ident: $kind:ty = $name:literal;)+ }) => {
        $(#[$doc])*
        pub mod $module {
            use crate::schema::{Cell as _, ColumnKind, Name};

            $($(#[$of])* pub const $constant: Name<$kind> = Name::new($name);)+

            /// Every one of them with its kind.
            pub(super) const ALL: &[(&str, ColumnKind)] =
                &[$(($name, <$kind>::KIND)),+];
        }
    };
}

contract! {
    /// Columns of tables of role [`Role::Answers`].
    answers {
        /// The device that was asked.
        DEVICE: crate::Symbol = "device";
        /// Ordinal of the answer in the device's interval.
        PDU: u64 = "pdu";
        /// How it ended, in the words of [`State`](crate::schema::State).
        STATE: crate::Symbol = "state";
        /// When it was received, µs after `time`.
        RECEIVED_US: i64 = "received_us";
        /// How long the device had been up, hundredths of a second.
        UPTIME_CS: u64 = "uptime_cs";
    }
}

contract! {
    /// Columns of tables of role [`Role::Health`].
    health {
        /// Span between two intervals, µs.
        INTERVAL_US: u64 = "interval_us";
        /// Devices that ended ok.
        OK: u64 = "ok";
        /// Devices that ended late.
        LATE: u64 = "late";
        /// Devices that ended missed.
        MISSED: u64 = "missed";
        /// Devices that ended in error.
        ERRORS: u64 = "errors";
        /// Devices that ended skipped.
        SKIPPED: u64 = "skipped";
        /// When the last answer was received, µs after `time`.
        COMPLETE_US: i64 = "complete_us";
    }
}

contract! {
    /// Columns of tables of role [`Role::Findings`].
    findings {
        /// The device whose value it is.
        DEVICE: crate::Symbol = "device";
        /// The table of the value.
        TABLE: crate::Symbol = "table";
        /// Interface, path or the like; null where the table has none.
        INSTANCE: crate::Symbol = "instance";
        /// The column of the value.
        COLUMN: crate::Symbol = "column";
        /// `every_poll`, `periodic`, `irregular`, `unchanged` or `frozen`.
        CLASS: crate::Symbol = "class";
        /// Mean span between updates, µs.
        PERIOD_US: u64 = "period_us";
        /// An instant of an update, µs after `time`.
        PHASE_US: i64 = "phase_us";
        /// Greatest span between updates, µs.
        PERIOD_US_MAX: u64 = "period_us_max";
    }
}

impl Role {
    /// The columns that a table of the role has, with their kinds.
    pub fn contract(self) -> &'static [(&'static str, ColumnKind)] {
        match self {
            Self::Answers => answers::ALL,
            Self::Health => health::ALL,
            Self::Findings => findings::ALL,
            Self::Readings
            | Self::Requests
            | Self::Events
            | Self::Clocks
            | Self::Samples
            | Self::Context => &[],
        }
    }

    /// What a table lacks to be of the role; `None` when it has everything.
    pub fn lacks(self, table: &TableSchema) -> Option<&'static str> {
        let has = |(name, kind): &&(&str, ColumnKind)| {
            table.column(name).is_some_and(|column| table.columns[column].kind == *kind)
        };
        self.contract().iter().find(|column| !has(column)).map(|(name, _)| *name)
    }
}
