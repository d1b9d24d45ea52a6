//! Which samples the verbs of profiles are about.

use clap::Args;
use meikyo_profile::wanted::Wanted;
use meikyo_units::WallTime;

/// What ran.
#[derive(Debug, Args)]
pub(super) struct ChosenArgs {
    /// Only samples of this process
    #[arg(long, value_name = "PID")]
    pid: Option<u64>,
    /// Only samples of these hosts, if the recording has several; a pattern with `*` and `?`. Can
    /// be repeated, as can the following
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Only samples on these CPUs
    #[arg(long = "cpu", value_name = "N")]
    cpus: Vec<u64>,
    /// Only samples of processes of this name
    #[arg(long = "process", value_name = "NAME")]
    processes: Vec<String>,
    /// Only samples of threads of this name
    #[arg(long = "thread", value_name = "NAME")]
    threads: Vec<String>,
    /// Only samples of this job: slurm:123, container:0123456789ab, unit:nginx.service
    #[arg(long = "job", value_name = "JOB")]
    jobs: Vec<String>,
}

impl ChosenArgs {
    /// The samples that are meant.
    pub(super) fn wanted(&self, [from, until]: [Option<WallTime>; 2]) -> Wanted {
        Wanted {
            from,
            until,
            hosts: self.hosts.clone(),
            cpus: self.cpus.iter().copied().collect(),
            pids: self.pid.into_iter().collect(),
            processes: self.processes.clone(),
            threads: self.threads.clone(),
            jobs: self.jobs.clone(),
            visible: Vec::new(),
        }
    }

    /// What was asked for, behind `there are no samples`.
    pub(super) fn words(&self) -> String {
        let mut of = self.pid.map_or_else(String::new, |pid| format!(" of process {pid}"));
        let of_names = [
            ("on host", &self.hosts),
            ("of processes called", &self.processes),
            ("of threads called", &self.threads),
            ("of job", &self.jobs),
        ];
        for (what, names) in of_names.into_iter().filter(|(_, names)| !names.is_empty()) {
            of += &format!(" {what} `{}`", names.join("` or `"));
        }
        if !self.cpus.is_empty() {
            let cpus: Vec<_> = self.cpus.iter().map(ToString::to_string).collect();
            of += &format!(" on CPU {}", cpus.join(" or "));
        }
        of
    }
}
