//! What a table must be like, whoever declares it.
//!
//! Tables come from engines, from other hosts and from files. Whoever begins to write one asks
//! [`TableSchema::check`]; whoever reads one that a stranger may have written asks for its form only,
//! so that recordings of earlier versions stay readable.

use super::{ColumnKind, TableSchema};
use crate::layout;
use crate::summary::SUFFIX;

/// Columns of a table at most.
pub const COLUMNS_MAX: usize = 1_024;

/// Why a table cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The name cannot be that of a directory of rows.
    #[error(
        "`{table}` cannot name a table: letters, digits, `_`, `-` and `.` are allowed, a letter or \
         digit first, at most 100 of them; `log` and names that end with `{SUFFIX}` are taken"
    )]
    Name {
        /// The name as it was given.
        table: String,
    },
    /// The first column is not the one that every table begins with.
    #[error("the first column of table `{table}` is not `time`, of kind `time`")]
    NoTime {
        /// The table whose rows they are.
        table: String,
    },
    /// A row has one time.
    #[error("column `{column}` of table `{table}` is another one of kind `time`")]
    SecondTime {
        /// The table whose rows they are.
        table: String,
        /// The column behind the first.
        column: String,
    },
    /// The name cannot be that of a column.
    #[error(
        "`{column}` cannot name a column of table `{table}`: letters, digits, `_`, `-` and `.` are \
         allowed, a letter or digit first, at most 100 of them"
    )]
    ColumnName {
        /// The table whose rows they are.
        table: String,
        /// The name as it was given.
        column: String,
    },
    /// Two columns have one name; upper and lower case are the same for databases.
    #[error("table `{table}` has two columns called `{column}`")]
    Twice {
        /// The table whose rows they are.
        table: String,
        /// The name of both.
        column: String,
    },
    /// There are more columns than anybody can look at.
    #[error("table `{table}` has {found} columns; at most {COLUMNS_MAX} are allowed")]
    TooMany {
        /// The table whose rows they are.
        table: String,
        /// How many it has.
        found: usize,
    },
}

impl TableSchema {
    /// Whether rows of the table can be written: its names, the order of its columns, and how many
    /// they are.
    ///
    /// # Errors
    /// What is wrong with it, the first that is found.
    pub fn check(&self) -> Result<(), SchemaError> {
        let table = || self.name.clone();
        if !layout::is_name(&self.name) || self.name == layout::LOG || self.name.ends_with(SUFFIX) {
            return Err(SchemaError::Name { table: table() });
        }
        self.check_form()?;
        if self.columns[0].name != "time" {
            return Err(SchemaError::NoTime { table: table() });
        }
        if self.columns.len() > COLUMNS_MAX {
            return Err(SchemaError::TooMany { table: table(), found: self.columns.len() });
        }
        let mut names = std::collections::BTreeSet::new();
        for column in &self.columns {
            let name = column.name.clone();
            if !layout::is_name(&name) {
                return Err(SchemaError::ColumnName { table: table(), column: name });
            }
            if !names.insert(name.to_ascii_lowercase()) {
                return Err(SchemaError::Twice { table: table(), column: name });
            }
        }
        Ok(())
    }

    /// Whether rows can be read as those of the table, which an earlier version may have declared.
    ///
    /// # Errors
    /// When not exactly one column is of times, or it is not the first.
    pub(crate) fn check_form(&self) -> Result<(), SchemaError> {
        let table = || self.name.clone();
        let is_time = |kind: ColumnKind| kind == ColumnKind::Time;
        if self.columns.first().is_none_or(|column| !is_time(column.kind)) {
            return Err(SchemaError::NoTime { table: table() });
        }
        if let Some(second) = self.columns[1..].iter().find(|column| is_time(column.kind)) {
            return Err(SchemaError::SecondTime { table: table(), column: second.name.clone() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Column, Meaning};

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column::new(name, kind, Meaning::Gauge, "")
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let with = |columns| TableSchema::new("t", "", columns);
        let named = |name: &str| TableSchema::new(name, "", Vec::new());
        let mut without = named("t");
        without.columns.clear();
        let mut late = with(vec![column("a", ColumnKind::U64)]);
        late.columns.swap(0, 1);
        let many =
            |count| (1..count).map(|at| column(&format!("c{at}"), ColumnKind::U64)).collect();
        let two = || vec![column("a", ColumnKind::U64), column("A", ColumnKind::F64)];
        for (table, text) in [
            (named("log"), "`log` cannot name a table"),
            (named("../t"), "`../t` cannot name a table"),
            (named("cpu.summary"), "`cpu.summary` cannot name a table"),
            (without, "the first column of table `t` is not `time`"),
            (late, "the first column of table `t` is not `time`"),
            (with(vec![column("b", ColumnKind::Time)]), "column `b` of table `t` is another one"),
            (with(vec![column("", ColumnKind::U64)]), "`` cannot name a column"),
            (with(vec![column("a\nb", ColumnKind::U64)]), "cannot name a column"),
            (with(vec![column(&"a".repeat(101), ColumnKind::U64)]), "cannot name a column"),
            (with(two()), "two columns called `A`"),
            (with(vec![column("time", ColumnKind::U64)]), "two columns called `time`"),
            (with(many(COLUMNS_MAX + 1)), "has 1025 columns; at most 1024 are allowed"),
        ] {
            let error = table.check().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        with(many(COLUMNS_MAX)).check().unwrap();
        with(vec![column("a_b-c.d", ColumnKind::Text)]).check().unwrap();
    }
}
