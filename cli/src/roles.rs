//! Roles that this program starts itself in, such as the first process of a lab or a container. The words that it is
//! started with then are no verb of the command line: nobody types them.

use clap::Parser;

/// What stands behind the two words of a role, if this process was started with them.
pub(crate) fn of_this_process<Role: Parser>(words: [&str; 2]) -> Option<Role> {
    let mut arguments = std::env::args_os().skip(1);
    let is_role = words.iter().all(|word| arguments.next().is_some_and(|own| own == **word));
    is_role.then(|| Role::parse_from(arguments))
}
