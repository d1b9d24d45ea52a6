//! The program in its other roles.

use std::path::PathBuf;

/// How this program is started in its other roles: the arguments, to which a directory is added.
#[derive(Debug, Clone)]
pub struct Roles {
    /// The program that is started again in its other roles.
    pub program: PathBuf,
    /// As the process that keeps a lab: calls [`crate::keep`].
    pub keeper: Vec<String>,
    /// As the first process inside: calls [`crate::be_inside`].
    pub inside: Vec<String>,
    /// As who does a task inside: calls [`crate::be_task`]; no directory is added.
    pub task: Vec<String>,
    /// As the one who tries namespaces: calls [`crate::probe_namespaces`]; no directory is added.
    pub probe: Vec<String>,
}
