//! Why rows could not be packed, or octets are no block of packed rows.

use super::VERSION;
use crate::schema::ColumnKind;

/// Why rows could not be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// There are no rows.
    #[error("there are no rows to pack")]
    Empty,
    /// The rows are too many for a block.
    #[error("a block of {found} {what} is larger than {limit}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        found: usize,
        /// How much there may be.
        limit: usize,
    },
    /// The numbers of an origin go back.
    #[error("a block cannot account for the numbers from {first} to {last}")]
    Origin {
        /// The first number.
        first: u64,
        /// The last number, which is below the first.
        last: u64,
    },
    /// A table or column cannot be named in a block.
    #[error("`{name}` is too long a name, or has too many columns")]
    Name {
        /// The name that is too long.
        name: String,
    },
}

/// Why octets are no block of packed rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// The octets are not those that the checksum was made of.
    #[error("the block has the checksum {found:08x}, and {expected:08x} was named: it is damaged")]
    Checksum {
        /// The checksum of the octets.
        found: u32,
        /// The checksum that came with them.
        expected: u32,
    },
    /// The block is of a version that this program does not read.
    #[error("the block has version {found}, this program reads versions 1 to {}", VERSION)]
    Version {
        /// Its version.
        found: u8,
    },
    /// The block claims more than a block can hold.
    #[error("the block claims {found} {what}; at most {limit} are allowed")]
    TooLarge {
        /// What it claims too much of.
        what: &'static str,
        /// How much it claims.
        found: usize,
        /// How much there may be.
        limit: usize,
    },
    /// The block is of another table.
    #[error("the block is of table `{found}`, not of `{expected}`")]
    Table {
        /// Its table.
        found: String,
        /// The table that it is read as.
        expected: String,
    },
    /// The block has a column that the table does not have.
    #[error("the block has a column `{column}` of kind {kind:?}, and table `{table}` has none")]
    Column {
        /// What the block is read as.
        table: String,
        /// The name that the table does not know.
        column: String,
        /// How the block keeps it.
        kind: ColumnKind,
    },
    /// The octets are not a block.
    #[error("the block cannot be read: {what}")]
    Malformed {
        /// The rule of the format that the octets break.
        what: &'static str,
    },
}
