//! `meikyo config`: the cluster file checked, shown, and turned into what agents and editors need.

mod check;
mod init;
mod problems;
mod show;
mod snmpd;

use clap::{Args, Subcommand};
use meikyo_cluster::{Cluster, LoadError, Problems, Resolved, load_resolved};
use meikyo_console::failure::{Answer, Failure};
use meikyo_console::output;

use crate::row_arguments::ClusterArgument;

/// Write, check and show the cluster file, and print what agents and editors need.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Report every mistake in a cluster file; exit 1 if there is any
    Check(FileArgs),
    /// Show every setting with the line that it comes from; secrets stay references
    Show(FileArgs),
    /// Print the snmpd.conf lines with which hosts expose exactly what is measured, read-only
    Snmpd(FileArgs),
    /// Write a cluster file of the devices that answer at the given addresses; exit 1 if none does
    Init(Box<init::InitArgs>),
    /// Print the JSON schema of the cluster file, for editors
    Schema,
}

/// The file, and how to print.
#[derive(Debug, Args)]
struct FileArgs {
    #[command(flatten)]
    cluster: ClusterArgument,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
///
/// # Errors
/// If the file cannot be read, is wrong (except for `check`, whose answer that is), or the output
/// cannot be written.
pub(crate) fn run(args: ConfigArgs) -> Result<Answer, Failure> {
    match args.what {
        What::Check(args) => check::run(&args),
        What::Show(args) => show::run(&args),
        What::Snmpd(args) => snmpd::run(&args),
        What::Init(args) => init::run(&args),
        What::Schema => {
            output::print_document(&meikyo_cluster::schema())?;
            Ok(Answer::Yes)
        }
    }
}

/// What is measured or kept in a file whose form is right, and is no object or table that is known.
pub(super) fn unknown_objects(cluster: &Cluster) -> Option<Problems> {
    problems::of_objects(cluster)
}

/// What is kept in a file whose form is right, and is no table that is known.
pub(super) fn unknown_tables(cluster: &Cluster) -> Option<Problems> {
    problems::of_tables(cluster)
}

/// The file, which must be right.
fn load(args: &FileArgs) -> Result<Resolved, Failure> {
    load_resolved(&args.cluster.file).map_err(unreadable)
}

fn unreadable(error: LoadError) -> Failure {
    let hint = "the keys and what they allow are in docs/cluster-file.md";
    explained(error, hint.to_owned())
}

/// A file that cannot be used: what to do where it is wrong, or how to come by one.
pub(super) fn explained(error: LoadError, where_wrong: String) -> Failure {
    let hint = match error {
        LoadError::Invalid(_) => where_wrong,
        LoadError::Read { .. } | LoadError::TooLarge { .. } => {
            "name the cluster file with `--cluster`, or have one written for the devices that answer: \
             `meikyo config init '10.0.0.[1-9]' --community env:COMMUNITY`"
                .to_owned()
        }
    };
    Failure::new(error).hint(hint)
}

#[cfg(test)]
mod tests {
    use meikyo_cluster::What;
    use meikyo_recording::Meaning;
    use meikyo_snmp::Oid;
    use meikyo_snmp::resolve::walks_for;
    use meikyo_snmp::tables::{Table, schema};

    /// What a person may choose in parentheses is what the tables hold: the cluster file knows no
    /// engine, so the two lists are compared here.
    #[test]
    fn columns_of_the_file_are_columns_of_the_tables() {
        // Time and labels, the number of the PDU, and what says how to read the other columns.
        let always =
            ["time", "device", "interface", "path", "pdu", "counter_bits", "discontinuity_cs"];
        for (what, table) in [
            (What::Interfaces, Table::Interfaces),
            (What::Disk("/".into()), Table::Storage),
            (What::Load, Table::Load),
            (What::Cpu, Table::Cpu),
            (What::Memory, Table::Memory),
        ] {
            let names: Vec<_> = schema(table).columns.iter().map(|c| c.name.clone()).collect();
            let chosen: Vec<_> =
                names.iter().map(|name| &**name).filter(|name| !always.contains(name)).collect();
            assert_eq!(what.columns(), chosen, "{table:?}");
        }
        for kind in meikyo_cluster::PartKind::ALL {
            let table = schema(Table::named(kind.table).unwrap());
            let names = table.columns.iter().filter(|column| column.meaning == Meaning::Gauge);
            let names: Vec<_> = names.map(|column| column.name.as_str()).collect();
            assert_eq!(kind.columns, names, "{}", kind.all);
        }
    }

    /// What the engine walks to find names lies in the view that the printed lines give, apart from
    /// `hrStorageTable`, which is looked at only where there are no `disk` lines.
    #[test]
    fn the_printed_view_holds_what_the_engine_asks_for() {
        let text = r#"
            name = "x"
            measure = ["interfaces", "disk:/", "load", "cpu", "memory", "1.3.6.1.2.1.1.5.0"]
            snmp = { version = "2c", community = "env:C" }
            hosts = [{ name = "a", address = "10.0.0.1" }]
        "#;
        let cluster = meikyo_cluster::parse(text, "cluster.toml".as_ref()).unwrap();
        let device = &cluster.devices[0];
        let lines = meikyo_cluster::device_agent_lines(device, |_| None);
        let view: Vec<Oid> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("view meikyo included ."))
            .map(|oid| oid.parse().unwrap())
            .collect();
        let hr_storage: Oid = "1.3.6.1.2.1.25.2".parse().unwrap();
        let walks = walks_for(device);
        assert!(walks.len() > 8, "{walks:?}");
        for walk in walks.iter().filter(|walk| !walk.starts_with(&hr_storage)) {
            // An object is found by a walk of what is around it: the view holds the object alone.
            let shown = view.iter().any(|oid| walk.starts_with(oid) || oid.starts_with(walk));
            assert!(shown, "{walk} is not in {lines:#?}");
        }
    }
}
