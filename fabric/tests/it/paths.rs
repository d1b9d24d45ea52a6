//! Paths of a plan against its loads, which are counted from the trees without any path.

use meikyo_cluster::Tagging;
use meikyo_fabric::{HostId, Paths, Pattern, PlanOptions, loads, plan};

use crate::plans::wired;

/// Every path begins at the sender's switch, goes from trunk to trunk, ends at the receiver's, and all
/// together load the trunks as [`loads`] counts by walking trees the other way round.
#[test]
fn paths_join_their_hosts_and_add_up_to_the_loads() {
    for (text, tagging) in [
        ("torus 4x2", Tagging::Switch),
        ("complete 8", Tagging::Switch),
        ("tree 8", Tagging::Switch),
        ("mesh 4x2", Tagging::Host),
    ] {
        let (wiring, options) = wired(text, 2);
        let plan = plan(&wiring, &PlanOptions { tagging, ..options }).unwrap();
        let paths = Paths::new(&wiring, &plan);
        let mut counted = vec![[0_u64; 2]; wiring.trunks.len()];
        for from in (0..wiring.hosts.len()).map(HostId::new) {
            for to in (0..wiring.hosts.len()).map(HostId::new).filter(|&to| to != from) {
                let mut at = wiring.hosts[from.place()].switch;
                for hop in paths.between(from, to).unwrap() {
                    let ends = &wiring.trunks[hop.trunk.place()].ends;
                    let direction = usize::from(!hop.forward);
                    assert_eq!(ends[direction].switch, at, "{text}");
                    at = ends[1 - direction].switch;
                    counted[hop.trunk.place()][direction] += 1;
                }
                assert_eq!(at, wiring.hosts[to.place()].switch, "{text}");
            }
        }
        assert_eq!(counted, loads(&wiring, &plan, Pattern::AllToAll).pairs, "{text}");
    }
}
