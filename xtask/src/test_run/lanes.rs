//! Two lanes run at once. One has cargo build the test programs, and then check and document, one call after
//! the other since cargo locks the target folder. The other does meanwhile what is quick, and runs those
//! programs that mostly wait, as soon as they are built: the lab's for kernels that boot, others for agents whose caches expire. Then
//! both take the other programs from one queue. The other lane ends with the page, which is begun while some
//! programs are left for the first, so that both lanes end together.

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock, mpsc};

use crate::tally::Tally;
use crate::test_run::binaries::TestBinary;

/// What cargo is asked for first: the programs that the lab's tests run in labs, and those tests.
pub(crate) const RUN_IN_LABS: [&str; 4] = ["--example", "roles", "--example", "escapes"];
pub(crate) const LABS: [&str; 2] = ["--test", "labs"];
/// Programs that mostly wait, and run nothing else that is built.
const WAITING: [&str; 3] = ["meikyo-lab labs", "meikyo-lab meikyo_lab", "meikyo-snmp it"];
/// The program whose tests ask cargo for something.
const RANKS: &str = "meikyo-models ranks";
/// Programs that take longest, the longest first: short ones fill what is left at the end.
const LONG: [&str; 3] = ["meikyo-cli system", "meikyo-fabric it", "meikyo-server it"];

/// Programs that are left to the other lane when the page is begun, all but the longest: together they take as
/// long as the page, once cargo has checked everything.
pub(crate) const LEFT_WITH_PAGE: usize = 50;

/// What is done beside test programs; each tells what it resulted in.
pub(crate) struct Beside<Build, Quick, Cargo, Page> {
    /// Has cargo build the test programs, and hands each over as soon as it is there, perhaps twice; whether
    /// all could be built.
    pub(crate) build: Build,
    /// What needs no program that is built, while none is there yet.
    pub(crate) quick: Quick,
    /// Has cargo check and build, but nothing that a test program runs.
    pub(crate) by_cargo: Cargo,
    /// Disturbs no program, and is disturbed by none.
    pub(crate) page: Page,
    /// How many programs are left when the page is begun.
    pub(crate) left_with_page: usize,
}

/// Has all programs built and runs them by `run`, with what there is beside them; adds what they resulted in
/// to `tally`. Whether they could be built; where not, nothing is done beside them.
///
/// # Errors
/// If one of them cannot be run.
pub(crate) fn run<Build, Quick, Cargo, Page>(
    run: impl Fn(&TestBinary) -> anyhow::Result<Tally> + Sync,
    beside: Beside<Build, Quick, Cargo, Page>,
    tally: &mut Tally,
) -> anyhow::Result<bool>
where
    Build: FnOnce(&mut dyn FnMut(TestBinary)) -> anyhow::Result<bool>,
    Quick: FnOnce(&mut Tally) -> anyhow::Result<()> + Send,
    Cargo: FnOnce(&mut Tally) -> anyhow::Result<()>,
    Page: FnOnce(&mut Tally) -> anyhow::Result<()> + Send,
{
    let Beside { build, quick, by_cargo, page, left_with_page } = beside;
    // What is not run while it is built; nothing if it could not be built.
    let queue: OnceLock<Option<Mutex<VecDeque<TestBinary>>>> = OnceLock::new();
    let one = |binary: &TestBinary, tally: &mut Tally| -> anyhow::Result<()> {
        let of_binary = run(binary)?;
        println!("{}: {}", binary.name(), of_binary.counts());
        tally.add(of_binary);
        Ok(())
    };
    let rest = |queue: &Mutex<VecDeque<TestBinary>>, left: usize, tally: &mut Tally| {
        loop {
            let mut queue = queue.lock().expect("a lane does not panic");
            if queue.len() <= left {
                return anyhow::Ok(());
            }
            let binary = queue.pop_front().expect("more are left");
            drop(queue);
            one(&binary, tally)?;
        }
    };
    let (hand_over, handed_over) = mpsc::channel();
    let (with_page, with_cargo) = std::thread::scope(|scope| {
        let with_page = scope.spawn(|| {
            let mut tally = Tally::default();
            quick(&mut tally)?;
            handed_over.into_iter().try_for_each(|binary| one(&binary, &mut tally))?;
            if let Some(queue) = queue.wait() {
                rest(queue, left_with_page, &mut tally)?;
                page(&mut tally)?;
            }
            Ok(tally)
        });
        let with_cargo = || {
            let mut built = Vec::new();
            let all = build(&mut |binary| {
                if built.contains(&binary) {
                    return;
                }
                if WAITING.contains(&binary.name().as_str()) {
                    // Nobody takes it where running one has failed, which is told in the end.
                    drop(hand_over.send(binary.clone()));
                }
                built.push(binary);
            });
            drop(hand_over);
            built.retain(|binary| !WAITING.contains(&binary.name().as_str()));
            let (ranks, others): (Vec<_>, Vec<_>) =
                built.into_iter().partition(|binary| binary.name() == RANKS);
            let others = matches!(all, Ok(true)).then(|| longest_first(others).into());
            let others = queue.get_or_init(|| others.map(Mutex::new));
            let Some(others) = others else { return all.map(|_| None) };
            let mut tally = Tally::default();
            by_cargo(&mut tally)?;
            ranks.iter().try_for_each(|binary| one(binary, &mut tally))?;
            rest(others, 0, &mut tally).map(|()| Some(tally))
        };
        let with_cargo: anyhow::Result<Option<Tally>> = with_cargo();
        let with_page: anyhow::Result<Tally> = with_page.join().expect("a lane does not panic");
        (with_page, with_cargo)
    });
    tally.add(with_page?);
    let with_cargo = with_cargo?;
    let could_be_built = with_cargo.is_some();
    tally.add(with_cargo.unwrap_or_default());
    Ok(could_be_built)
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
        ("meikyo-fabric", "it"),
        ("meikyo-lab", "labs"),
        ("meikyo-cli", "system"),
    ];
    const OF_LABS: &str = "meikyo-lab labs";

    fn binaries() -> Vec<TestBinary> {
        NAMES.map(|(package, target)| TestBinary::named(package, target)).into()
    }

    #[test]
    fn those_that_take_longest_are_begun_first() {
        let names: Vec<_> = longest_first(binaries()).iter().map(TestBinary::name).collect();
        assert_eq!(names[..2], ["meikyo-cli system", "meikyo-fabric it"]);
        assert_eq!(names.len(), NAMES.len());
    }

    fn nothing(_: &mut Tally) -> anyhow::Result<()> {
        Ok(())
    }

    /// Cargo, which tells of what it made before, too.
    fn build(take: &mut dyn FnMut(TestBinary)) -> anyhow::Result<bool> {
        binaries().into_iter().chain(binaries()).for_each(take);
        Ok(true)
    }

    /// What began and ended, in its order.
    #[derive(Default)]
    struct Notes {
        said: Mutex<Vec<String>>,
        more: Condvar,
    }

    impl Notes {
        fn note(&self, what: &str) -> anyhow::Result<()> {
            self.said.lock().unwrap().push(what.to_owned());
            self.more.notify_all();
            Ok(())
        }

        /// Waits until something is noted, but no longer than this.
        fn wait(&self, what: &str, patience: Duration) {
            let missing = |said: &mut Vec<String>| !said.iter().any(|own| own == what);
            drop(self.more.wait_timeout_while(self.said.lock().unwrap(), patience, missing));
        }

        fn places(&self) -> BTreeMap<String, usize> {
            let said = self.said.lock().unwrap().clone();
            let all = said.len();
            let places: BTreeMap<_, _> = said.into_iter().zip(0..).collect();
            assert_eq!(places.len(), all, "something was done twice");
            places
        }
    }

    const PATIENCE: Duration = Duration::from_secs(20);
    const LAST: &str = "meikyo-units meikyo_units";

    #[test]
    fn every_program_is_run_once_and_what_must_follow_something_does() {
        let notes = Notes::default();
        let one = |binary: &TestBinary| {
            let name = binary.name();
            notes.note(&name)?;
            if name == RANKS {
                // The other lane takes all there is; this one comes when only the last still runs.
                notes.wait(LAST, PATIENCE);
            }
            let mut tally = Tally::default();
            tally.check(&name, true);
            notes.note(&format!("end of {name}")).map(|()| tally)
        };
        let beside = Beside {
            build,
            quick: |_: &mut Tally| notes.note("quick"),
            by_cargo: |_: &mut Tally| notes.note("cargo"),
            page: |_: &mut Tally| notes.note("page"),
            left_with_page: 0,
        };
        let mut tally = Tally::default();
        assert!(run(one, beside, &mut tally).unwrap());
        let places = notes.places();
        assert_eq!(places.len(), 2 * NAMES.len() + 3, "{places:?}");
        assert!(places["cargo"] < places[RANKS], "{places:?}");
        assert_eq!(tally.counts(), "5 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn what_mostly_waits_is_run_while_the_rest_is_built() {
        let notes = Notes::default();
        let one = |binary: &TestBinary| notes.note(&binary.name()).map(|()| Tally::default());
        let build = |take: &mut dyn FnMut(TestBinary)| {
            let (first, later): (Vec<_>, Vec<_>) =
                binaries().into_iter().partition(|binary| binary.name() == OF_LABS);
            first.into_iter().for_each(&mut *take);
            notes.wait(OF_LABS, PATIENCE);
            notes.note("the rest is built")?;
            later.into_iter().for_each(take);
            Ok(true)
        };
        let (by_cargo, page) = (nothing, nothing);
        let beside = Beside { build, quick: nothing, by_cargo, page, left_with_page: 0 };
        assert!(run(one, beside, &mut Tally::default()).unwrap());
        let places = notes.places();
        assert_eq!((places[OF_LABS], places["the rest is built"]), (0, 1), "{places:?}");
    }

    #[test]
    fn where_something_cannot_be_built_the_rest_is_left_out() {
        let notes = Notes::default();
        let one = |binary: &TestBinary| notes.note(&binary.name()).map(|()| Tally::default());
        let build = |take: &mut dyn FnMut(TestBinary)| {
            binaries().into_iter().for_each(take);
            Ok(false)
        };
        let beside = Beside {
            build,
            quick: nothing,
            by_cargo: |_: &mut Tally| notes.note("cargo"),
            page: |_: &mut Tally| notes.note("page"),
            left_with_page: 0,
        };
        assert!(!run(one, beside, &mut Tally::default()).unwrap());
        assert_eq!(notes.places().into_keys().collect::<Vec<_>>(), [OF_LABS]);
    }

    #[test]
    fn programs_that_are_left_with_the_page_are_run_by_the_other_lane() {
        let notes = Notes::default();
        let one = |binary: &TestBinary| {
            let name = binary.name();
            match name.as_str() {
                // The other lane would take all there is meanwhile.
                RANKS => notes.wait("page", PATIENCE),
                LAST => assert!(notes.places().contains_key("page")),
                _ => {}
            }
            notes.note(&name).map(|()| Tally::default())
        };
        let page = |_: &mut Tally| notes.note("page");
        let beside = Beside { build, quick: nothing, by_cargo: nothing, page, left_with_page: 1 };
        run(one, beside, &mut Tally::default()).unwrap();
        assert_eq!(notes.places().len(), NAMES.len() + 1);
    }

    #[test]
    fn what_cannot_be_run_is_an_error_of_the_whole() {
        for wrong in NAMES {
            let one = |binary: &TestBinary| {
                anyhow::ensure!((binary.package.as_str(), binary.target.as_str()) != wrong, "gone");
                Ok(Tally::default())
            };
            let page = nothing;
            let beside =
                Beside { build, quick: nothing, by_cargo: nothing, page, left_with_page: 0 };
            let mut tally = Tally::default();
            assert!(run(one, beside, &mut tally).is_err(), "{wrong:?}");
        }
    }
}
