//! Two lanes run at once: the test programs of the lab, which wait for kernels that boot, and all else.
//! Within a lane one follows the other.

use crate::test_run::binaries::TestBinary;
use crate::test_run::tally::Tally;

/// The package whose tests bring labs up.
const LAB: &str = "meikyo-lab";

/// Runs all programs by `run`, `behind_lab` behind those of the lab and `behind_others` behind the others;
/// adds what they resulted in to `tally`.
///
/// # Errors
/// If one of them cannot be run.
pub(crate) fn run(
    binaries: Vec<TestBinary>,
    run: impl Fn(&TestBinary) -> anyhow::Result<Tally> + Sync,
    behind_lab: impl FnOnce(&mut Tally) -> anyhow::Result<()> + Send,
    behind_others: impl FnOnce(&mut Tally) -> anyhow::Result<()>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let (lab, others): (Vec<_>, Vec<_>) =
        binaries.into_iter().partition(|binary| binary.package == LAB);
    let lane = |binaries: Vec<TestBinary>| -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        for binary in binaries {
            let of_binary = run(&binary)?;
            println!("{}: {}", binary.name(), of_binary.counts());
            tally.add(of_binary);
        }
        Ok(tally)
    };
    let (lab, others) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut tally = lane(lab)?;
            behind_lab(&mut tally).map(|()| tally)
        });
        let others = lane(others).and_then(|mut tally| behind_others(&mut tally).map(|()| tally));
        (beside.join().expect("a lane does not panic"), others)
    });
    tally.add(lab?);
    tally.add(others?);
    Ok(())
}
