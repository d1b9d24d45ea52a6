//! Two lanes run at once. One begins with the test programs of the lab, which wait for kernels that boot;
//! the other with what cargo does, one call after the other since it locks the target folder. Then both
//! take the other programs from one queue, so that they come to its end together, and each has a last
//! thing to do.

use std::collections::VecDeque;
use std::sync::{Mutex, RwLock};

use crate::test_run::binaries::TestBinary;
use crate::test_run::tally::Tally;

/// The package whose tests bring labs up.
const LAB: &str = "meikyo-lab";
/// The program whose tests have cargo build.
const RANKS: &str = "meikyo-models ranks";
/// Programs that take longest, the longest first: short ones fill what is left at the end.
const LONG: [&str; 4] =
    ["meikyo-cli system", "meikyo-snmp it", "meikyo-fabric it", "meikyo-server it"];

/// What is done beside test programs; each tells what it resulted in.
pub(crate) struct Beside<Cargo, Page, Replacing> {
    /// Has cargo check and build, but nothing that a test program runs.
    pub(crate) by_cargo: Cargo,
    /// Disturbs no program, and is disturbed by none.
    pub(crate) page: Page,
    /// Replaces what test programs run: none may be left then.
    pub(crate) replacing: Replacing,
}

/// Runs all programs by `run`, and what there is beside them; adds what they resulted in to `tally`.
///
/// # Errors
/// If one of them cannot be run.
pub(crate) fn run<Cargo, Page, Replacing>(
    binaries: Vec<TestBinary>,
    run: impl Fn(&TestBinary) -> anyhow::Result<Tally> + Sync,
    beside: Beside<Cargo, Page, Replacing>,
    tally: &mut Tally,
) -> anyhow::Result<()>
where
    Cargo: FnOnce(&mut Tally) -> anyhow::Result<()>,
    Page: FnOnce(&mut Tally) -> anyhow::Result<()> + Send,
    Replacing: FnOnce(&mut Tally) -> anyhow::Result<()>,
{
    let Beside { by_cargo, page, replacing } = beside;
    let (lab, others): (Vec<_>, Vec<_>) =
        binaries.into_iter().partition(|binary| binary.package == LAB);
    let (ranks, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|binary| binary.name() == RANKS);
    let queue = Mutex::new(VecDeque::from(longest_first(others)));
    // Read-locked by who takes a program until it has ended.
    let programs = RwLock::new(());
    let one = |binary: &TestBinary, tally: &mut Tally| -> anyhow::Result<()> {
        let of_binary = run(binary)?;
        println!("{}: {}", binary.name(), of_binary.counts());
        tally.add(of_binary);
        Ok(())
    };
    let rest = |tally: &mut Tally| -> anyhow::Result<()> {
        loop {
            let _running = programs.read().expect("a lane does not panic");
            let next = queue.lock().expect("a lane does not panic").pop_front();
            let Some(binary) = next else { return Ok(()) };
            one(&binary, tally)?;
        }
    };
    let (with_lab, with_cargo) = std::thread::scope(|scope| {
        let with_lab = scope.spawn(|| {
            let mut tally = Tally::default();
            lab.iter().try_for_each(|binary| one(binary, &mut tally))?;
            rest(&mut tally)?;
            page(&mut tally).map(|()| tally)
        });
        let with_cargo = || {
            let mut tally = Tally::default();
            by_cargo(&mut tally)?;
            ranks.iter().try_for_each(|binary| one(binary, &mut tally))?;
            rest(&mut tally)?;
            let _alone = programs.write().expect("a lane does not panic");
            replacing(&mut tally).map(|()| tally)
        };
        let with_cargo: anyhow::Result<Tally> = with_cargo();
        (with_lab.join().expect("a lane does not panic"), with_cargo)
    });
    tally.add(with_lab?);
    tally.add(with_cargo?);
    Ok(())
}

fn longest_first(mut binaries: Vec<TestBinary>) -> Vec<TestBinary> {
    binaries.sort_by_key(|binary| {
        let place = LONG.iter().position(|name| *name == binary.name());
        place.unwrap_or(LONG.len())
    });
    binaries
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Condvar;
    use std::time::Duration;

    use super::*;

    const NAMES: [(&str, &str); 5] = [
        ("meikyo-units", "meikyo_units"),
        ("meikyo-models", "ranks"),
        ("meikyo-snmp", "it"),
        ("meikyo-lab", "it"),
        ("meikyo-cli", "system"),
    ];

    fn binaries() -> Vec<TestBinary> {
        NAMES.map(|(package, target)| TestBinary::named(package, target)).into()
    }

    #[test]
    fn those_that_take_longest_are_begun_first() {
        let names: Vec<_> = longest_first(binaries()).iter().map(TestBinary::name).collect();
        assert_eq!(names[..2], ["meikyo-cli system", "meikyo-snmp it"]);
        assert_eq!(names.len(), NAMES.len());
    }

    fn nothing(_: &mut Tally) -> anyhow::Result<()> {
        Ok(())
    }

    #[test]
    fn every_program_is_run_once_and_what_must_follow_something_does() {
        let (said, more) = (Mutex::new(Vec::new()), Condvar::new());
        let note = |what: &str| {
            said.lock().unwrap().push(what.to_owned());
            more.notify_all();
            Ok(())
        };
        let await_note = |what: &str, patience: Duration| {
            let missing = |said: &mut Vec<String>| !said.iter().any(|own| own == what);
            drop(more.wait_timeout_while(said.lock().unwrap(), patience, missing));
        };
        let mut tally = Tally::default();
        let one = |binary: &TestBinary| {
            note(&binary.name())?;
            match binary.name().as_str() {
                // The other lane takes all there is; this one comes when only the last still runs.
                RANKS => await_note("meikyo-units meikyo_units", Duration::from_secs(20)),
                // Time for what must not be done before this has ended.
                "meikyo-units meikyo_units" => await_note("replacing", Duration::from_millis(100)),
                _ => {}
            }
            let mut tally = Tally::default();
            tally.check(&binary.name(), true);
            note(&format!("end of {}", binary.name())).map(|()| tally)
        };
        let beside = Beside {
            by_cargo: |_: &mut Tally| note("cargo"),
            page: |_: &mut Tally| note("page"),
            replacing: |_: &mut Tally| note("replacing"),
        };
        run(binaries(), one, beside, &mut tally).unwrap();
        let said = said.into_inner().unwrap();
        let places: BTreeMap<_, _> = said.iter().map(String::as_str).zip(0..).collect();
        let all = 2 * NAMES.len() + 3;
        assert_eq!((said.len(), places.len()), (all, all), "{said:?}");
        assert!(places["cargo"] < places["meikyo-models ranks"], "{said:?}");
        for (package, target) in NAMES.iter().filter(|(package, _)| *package != LAB) {
            let end = places[format!("end of {package} {target}").as_str()];
            assert!(end < places["replacing"], "{said:?}");
        }
        assert_eq!(tally.counts(), "5 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn what_cannot_be_run_is_an_error_of_the_whole() {
        for wrong in NAMES {
            let one = |binary: &TestBinary| {
                anyhow::ensure!((binary.package.as_str(), binary.target.as_str()) != wrong, "gone");
                Ok(Tally::default())
            };
            let beside = Beside { by_cargo: nothing, page: nothing, replacing: nothing };
            let mut tally = Tally::default();
            assert!(run(binaries(), one, beside, &mut tally).is_err(), "{wrong:?}");
        }
    }
}
