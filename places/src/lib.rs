//! TOML files read with places: which line a value stands on, and what is wrong on which line.
//!
//! A person who writes a file wants to be told everything that is wrong with it at once, each problem
//! with its line, its key and what is allowed. The cluster file and scenarios are read that way; what
//! they have in common is here, and what their keys are is theirs.
//!
//! ```
//! use meikyo_places::{Lines, Origin, Problem, Problems, kind_of, read_table};
//!
//! let text = "servers = 4\nclients = \"many\"\n";
//! let lines = Lines::new(text);
//! let table = read_table(text, &lines).expect("it is TOML");
//! let clients = &table["clients"];
//! let origin = Origin::Line(lines.line(clients.span().start));
//! let wrong = format!("expected a whole number; found {}", kind_of(clients.get_ref()));
//! let problems = Problems::new("load.toml", vec![Problem::new(origin, "clients", wrong)]);
//! assert_eq!(
//!     problems.to_string(),
//!     "load.toml:2: clients: expected a whole number; found a text"
//! );
//! ```
//!
//! This crate opens no file: a face reads the text and says what the file is called.

mod nearest;
mod origin;
mod problem;
mod text;

pub use nearest::{hint, nearest};
pub use origin::Origin;
pub use problem::{Collected, PROBLEMS_MAX, Problem, Problems};
pub use text::{Lines, kind_of, read_table};
