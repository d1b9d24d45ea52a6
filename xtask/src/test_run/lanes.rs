//! Two lanes run at once: the test programs of the lab, which wait for kernels that boot, and all else.
//! Within a lane one follows the other.

use crate::test_run::binaries::TestBinary;
use crate::test_run::tally::Tally;

/// The package whose tests bring labs up.
const LAB: &str = "meikyo-lab";

/// Runs all programs, and `then` behind those that need no lab; adds what they resulted in to `tally`.
///
/// # Errors
/// If one of them cannot be run.
pub(crate) fn run(
    binaries: Vec<TestBinary>,
    filter: Option<&str>,
    variables: &[(String, String)],
    then: impl FnOnce(&mut Tally) -> anyhow::Result<()>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let (lab, others): (Vec<_>, Vec<_>) =
        binaries.into_iter().partition(|binary| binary.package == LAB);
    let lane = |binaries: Vec<TestBinary>| -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        for binary in binaries {
            let of_binary = binary.run(filter, variables)?;
            println!("{}: {}", binary.name(), of_binary.counts());
            tally.add(of_binary);
        }
        Ok(tally)
    };
    let (lab, others) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| lane(lab));
        let others = lane(others).and_then(|mut tally| then(&mut tally).map(|()| tally));
        (beside.join().expect("a lane does not panic"), others)
    });
    tally.add(lab?);
    tally.add(others?);
    Ok(())
}
