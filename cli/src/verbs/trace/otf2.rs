//! Archives of OTF2, read by a small program that is built with the library of that format.
//!
//! The library is no part of this program: who has no such archives needs none. In a process of its own it can end as it
//! likes where an archive is damaged.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use meikyo_console::failure::Failure;
use meikyo_models::prediction::trace::otf2::{Imported, Notes, Otf2Events};
use meikyo_mpi::compiler;

const READER: [(&str, &str); 1] = [("reader.c", include_str!("otf2/reader.c"))];

/// Says if there is no such archive, before anything is made of it.
pub(super) fn look_for(archive: &Path) -> Result<(), Failure> {
    let found = File::open(archive).and_then(|file| file.metadata());
    let wrong = match found {
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(_) => format!("`{}` is no file", archive.display()),
        Err(error) => format!("cannot read `{}`: {error}", archive.display()),
    };
    Err(Failure::new(wrong).hint("name the file of the archive that ends in `.otf2`"))
}

/// Writes a file for each rank of the archive into a directory; gives these, and what has to be said about them.
pub(super) fn import(
    archive: &Path,
    directory: &Path,
) -> Result<(Vec<PathBuf>, Vec<String>), Failure> {
    let built = tempfile::tempdir_in(directory)?;
    let reader = compiler::program(Path::new("cc"), &READER, built.path(), "reader", &["-lotf2"]);
    let reader = reader.map_err(|error| {
        Failure::new(error).hint(
            "reading OTF2 needs its library and a compiler: apt-get install libotf2-trace-dev gcc",
        )
    })?;
    let read = events(&reader, archive, built.path());
    built.close()?;
    let imported = read?;
    let mut written = Vec::new();
    for (rank, text) in imported.texts().enumerate() {
        let path = directory.join(format!("rank-{rank}.txt"));
        fs::write(&path, text)?;
        written.push(path);
    }
    Ok((written, notes(&imported.notes)))
}

/// What the reader says of an archive.
#[expect(clippy::disallowed_methods, reason = "the reader of the archive")]
fn events(reader: &Path, archive: &Path, beside: &Path) -> Result<Imported, Failure> {
    let said: PathBuf = beside.join("said");
    let mut child = Command::new(reader)
        .arg(archive)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&said)?)
        .spawn()?;
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).split(b'\n');
    let mut events = Otf2Events::default();
    let read = lines.into_iter().try_for_each(|line| {
        events.line(&String::from_utf8_lossy(&line?))?;
        Ok::<(), Failure>(())
    });
    // Where the lines were wrong, nobody reads on, and it ends when it writes.
    let status = child.wait()?;
    read?;
    if !status.success() {
        return Err(refused(archive, status, &said));
    }
    Ok(events.finish()?)
}

fn refused(archive: &Path, status: ExitStatus, said: &Path) -> Failure {
    let messages = fs::read(said).unwrap_or_default();
    let messages = String::from_utf8_lossy(&messages);
    let last = messages.lines().rev().find(|line| !line.trim().is_empty());
    let why = last.map_or_else(|| status.to_string(), str::to_owned);
    Failure::new(format!("cannot read `{}`: {why}", archive.display()))
        .hint("`otf2-print` says more of a damaged archive; record the program anew")
}

fn notes(notes: &Notes) -> Vec<String> {
    let Notes { untold, assumed, unfinished, one_sided, switched_off, between_groups, apportioned } =
        notes;
    let mut notes = Vec::new();
    let untold: Vec<String> =
        untold.iter().map(|(name, count)| format!("{count} of {name}")).collect();
    if !untold.is_empty() {
        notes.push(format!(
            "these calls are left out, of whose data the archive or a trace says nothing: {}",
            untold.join(", ")
        ));
    }
    let counted = [
        (
            assumed,
            "receives of which the archive does not say what they received: in order, what was sent to their rank and \
             received by nobody is assumed, and that each ended with the next call that waits",
        ),
        (unfinished, "requests are left out, of which the archive does not say how they ended"),
        (
            one_sided,
            "messages are left out, of which the archive has only the sender or the receiver",
        ),
        (
            switched_off,
            "times in all ranks recording was switched off: what they did then is left out",
        ),
        (between_groups, "messages or operations between two groups are left out"),
        (
            apportioned,
            "calls of MPI_Alltoallv, MPI_Alltoallw or MPI_Reduce_scatter: the archive has sums only, and what goes \
             between two ranks is taken to be in proportion to them",
        ),
    ];
    let told = counted.into_iter().filter(|(count, _)| **count > 0);
    notes.extend(told.map(|(count, what)| format!("{count} {what}")));
    notes
}
