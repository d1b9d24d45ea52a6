//! A cluster file: any text is read, or told about with lines that are there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use meikyo_cluster::{PROBLEMS_MAX, agent_lines, diff, fold, parse, unfold};

fuzz_target!(|text: &str| {
    match parse(text, "cluster.toml".as_ref()) {
        Ok(cluster) => {
            let names: Vec<String> =
                cluster.devices.iter().map(|device| device.name.clone()).collect();
            if !names.is_empty() {
                assert_eq!(unfold(&fold(&names)), Ok(names));
            }
            assert!(diff(&cluster, &cluster).is_empty());
            for agent in agent_lines(&cluster, |_| None) {
                assert!(agent.lines.iter().all(|line| !line.contains(char::is_control)));
            }
        }
        Err(error) => {
            let problems = error.problems();
            assert!(!problems.is_empty() && problems.len() <= PROBLEMS_MAX);
            let lines = text.lines().count() + 1;
            let is_there = |line| (1..=lines).contains(&line);
            assert!(problems.iter().all(|problem| problem.line.is_some_and(is_there)));
        }
    }
});
