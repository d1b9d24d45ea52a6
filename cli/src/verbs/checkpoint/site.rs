//! Where a job runs: its hosts, how a command is started on one, and what is written down of it for a restart.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use meikyo_checkpoint::daemon::Status;
use meikyo_checkpoint::layout::Layout;
use meikyo_checkpoint::tls::JobKey;
use meikyo_console::failure::Failure;
use meikyo_spaces::Lan;
use meikyo_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::domains::Domains;
use super::recorded::RecordedArgs;
use super::role_names as roles;
use super::slurm;
use super::trouble::{LOOK_AGAIN, now};

/// What is written down.
const RECORD: &str = "job.json";

/// As the record says what it is.
const SCHEMA: &str = "meikyo.checkpoint.job/1";

/// The job's file, for daemons.
pub(super) const JOB: &str = "job.toml";

/// What daemons know each other by.
const KEY: &str = "job.key";

/// The directory of a host's daemon, of the same name on every host.
const DISK: &str = "disk";

/// What hosts have on a disk, where all of them are containers of this machine.
const DISKS: &str = "disks";

/// Where containers are reached.
const SOCKETS: &str = "sockets";

/// Names and addresses of containers.
const NAMES: &str = "names";

/// What daemons say.
const LOGS: &str = "logs";

/// The program that launchers of MPI start in place of `ssh`.
const AGENT: &str = "agent";

/// The process of the program on the first host.
pub(super) const PROCESS: &str = "process";

/// What a program says that is captured as it is.
pub(super) const OUTPUT: &str = "output";

/// What it says on its standard error.
pub(super) const ERRORS: &str = "errors";

/// How it ended.
pub(super) const ENDED: &str = "ended";

/// The link by which hosts of a program that is captured reach each other.
pub(super) const PROGRAM_LINK: usize = 0;

/// The link of their daemons, which goes on while the other carries nothing.
const DAEMON_LINK: usize = 1;

/// Links of a host where the program is captured as it is.
pub(super) const LINKS: usize = 2;

/// The device of the program's link, in every container.
const PROGRAM_DEVICE: &str = "l0";

/// The number of the process that was started last in this namespace.
pub(super) const LAST_PROCESS: &str = "/proc/sys/kernel/ns_last_pid";

/// Processes of the program have greater numbers: those that are started in a container before it brings one back do not
/// come so far.
const PROCESSES_BELOW: u32 = 10_000;

/// A daemon answers in this time, or not at all.
const ANSWERING: Duration = Duration::from_secs(1);

/// One on a host that is reached by `ssh`.
const ANSWERING_AFAR: Duration = Duration::from_secs(5);

/// A host of the job, at its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) address: IpAddr,
}

/// How hosts are reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    /// They are containers of this machine.
    Local,
    /// By this program and its arguments; addresses are those of this cluster file.
    Ssh { program: Vec<String>, cluster: PathBuf },
    /// By steps of the job of Slurm that this is part of.
    Slurm,
}

/// How a program is captured that knows nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AsIs {
    /// The program that captures.
    pub(super) criu: PathBuf,
    /// The time between two checkpoints, if it is not Daly's.
    pub(super) every: Option<Nanos>,
    /// The mean time between failures of one host.
    pub(super) between_failures: Nanos,
    /// What hosts are called in the program, by place: whoever takes a place is called so.
    pub(super) names: Vec<String>,
    /// How often the program was started or brought back.
    pub(super) starts: u64,
    /// Files that are part of every checkpoint, by absolute patterns.
    #[serde(default)]
    pub(super) save_files: Vec<PathBuf>,
    /// Nothing where hosts are containers of this machine.
    pub(super) afar: Option<Afar>,
}

/// Where containers are on hosts that are reached by `ssh`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Afar {
    /// On a local disk of each: the directory of the daemon, and of what containers are reached by.
    pub(super) disk: PathBuf,
    /// The addresses of the program, by place.
    pub(super) addresses: Vec<Ipv4Addr>,
}

/// A job as it was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Site {
    pub(super) schema: String,
    #[serde(skip)]
    pub(super) directory: PathBuf,
    pub(super) way: Way,
    pub(super) scheme: String,
    pub(super) block: Bytes,
    pub(super) port: u16,
    /// By place.
    pub(super) hosts: Vec<Host>,
    /// Those that stand ready, in the order in which they are used.
    pub(super) spares: Vec<Host>,
    /// What of all of them fails together.
    pub(super) domains: Domains,
    /// A host that the others have not heard of for so long is replaced by a spare.
    pub(super) replace_after: Nanos,
    /// The command that ends a lost host before a spare takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fence: Option<String>,
    /// What daemons are limited to.
    pub(super) limits: Vec<String>,
    /// Where what happens is written to.
    #[serde(default)]
    pub(super) recorded: RecordedArgs,
    /// What the program is told beside.
    pub(super) environment: Vec<(String, String)>,
    /// The directory in which the program is started.
    pub(super) work: PathBuf,
    pub(super) command: Vec<String>,
    /// Nothing for a program with the library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) as_is: Option<AsIs>,
}

impl Site {
    /// What was written down of the job of a directory.
    pub(super) fn read(directory: &Path) -> Result<Self, Failure> {
        let directory = std::path::absolute(directory)?;
        let path = directory.join(RECORD);
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(format!("there is no job in `{}`: {error}", directory.display())).hint(
                "meikyo checkpoint run --directory DIR begins one; `--out FILE` writes the image of a host whose \
                 daemon has the directory",
            )
        };
        let text = fs::read(&path).map_err(|error| failed(&error))?;
        let mut site: Self = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
        if site.schema != SCHEMA {
            return Err(failed(&format!("`{}` is of another version", path.display())));
        }
        site.directory = directory;
        Ok(site)
    }

    pub(super) fn schema() -> String {
        SCHEMA.to_owned()
    }

    /// Whether daemons were given memory for generations.
    pub(super) fn keeps_in_memory(&self) -> bool {
        self.limits.iter().any(|word| word == "--memory")
    }

    pub(super) fn is_local(&self) -> bool {
        self.way == Way::Local
    }

    /// How containers on other hosts are reached, where there are such.
    pub(super) fn afar(&self) -> Option<&Afar> {
        self.as_is.as_ref()?.afar.as_ref()
    }

    /// What captures.
    pub(super) fn criu(&self) -> PathBuf {
        self.as_is.as_ref().map(|as_is| as_is.criu.clone()).unwrap_or_default()
    }

    /// The address of the program at a place, where hosts are containers.
    fn program_address(&self, place: usize) -> Ipv4Addr {
        let afar = self.afar().and_then(|afar| afar.addresses.get(place)).copied();
        afar.unwrap_or_else(|| Lan::address(place, PROGRAM_LINK))
    }

    /// The name of a host that is lost, and what Slurm says of it, if that knows.
    pub(super) fn lost(&self, place: usize) -> String {
        let name = &self.hosts[place].name;
        let told = if self.way == Way::Slurm { slurm::failure_of(name) } else { None };
        told.map_or_else(|| name.clone(), |state| format!("{name} (Slurm says {state})"))
    }

    /// Puts a spare into a place whose host is lost: of those with which the group survives the loss of most racks and switches,
    /// the first. Its name, and nothing if there is no spare.
    pub(super) fn replace(&mut self, place: usize) -> Option<String> {
        if self.way == Way::Slurm {
            self.spares.retain(|spare| slurm::failure_of(&spare.name).is_none());
        }
        let layout = self.scheme.parse().ok();
        let layout = layout.and_then(|scheme| Layout::new(scheme, self.hosts.len()).ok())?;
        let fatal = |spare: &Host| {
            let mut names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
            names[place] = &spare.name;
            self.domains.fatal(&layout, &names).len()
        };
        let best = (0..self.spares.len()).min_by_key(|&spare| fatal(&self.spares[spare]))?;
        let mut spare = self.spares.remove(best);
        if self.is_local() {
            // Containers have the addresses of their places.
            spare.address = self.hosts[place].address;
        }
        let name = spare.name.clone();
        self.hosts[place] = spare;
        Some(name)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The directory of a host's daemon, as the host sees it.
    pub(super) fn disk(&self) -> PathBuf {
        self.afar().map_or_else(|| self.path(DISK), |afar| afar.disk.clone())
    }

    /// The same of a container, as this machine sees it.
    pub(super) fn disk_of(&self, host: &Host) -> PathBuf {
        self.path(DISKS).join(&host.name)
    }

    pub(super) fn log_of(&self, host: &Host) -> PathBuf {
        self.path(LOGS).join(&host.name)
    }

    /// What captures of a host say beside.
    pub(super) fn capture_log_of(&self, host: &Host) -> PathBuf {
        self.path(LOGS).join(format!("{}-captures", host.name))
    }

    /// What containers on other hosts say beside.
    pub(super) fn container_log_of(&self, host: &Host) -> PathBuf {
        self.path(LOGS).join(format!("{}-container", host.name))
    }

    pub(super) fn names(&self) -> PathBuf {
        self.path(NAMES)
    }

    pub(super) fn socket_of(&self, host: &Host) -> PathBuf {
        roles::socket(&self.sockets(), self.called(host))
    }

    /// Where containers are reached, on the machine that has them.
    fn sockets(&self) -> PathBuf {
        self.afar().map_or_else(|| self.path(SOCKETS), |afar| afar.disk.join(SOCKETS))
    }

    /// What a host is called by others of the job.
    pub(super) fn called<'a>(&'a self, host: &'a Host) -> &'a str {
        let place = self.hosts.iter().position(|other| other.name == host.name);
        let names = self.as_is.as_ref().map(|as_is| &as_is.names);
        names.zip(place).and_then(|(names, place)| names.get(place)).unwrap_or(&host.name)
    }

    /// Gives containers the addresses of their places; daemons of a captured program have a link of their own.
    pub(super) fn settle_addresses(&mut self) {
        let link = if self.as_is.is_some() { DAEMON_LINK } else { PROGRAM_LINK };
        for (place, host) in self.hosts.iter_mut().enumerate() {
            host.address = IpAddr::V4(Lan::address(place, link));
        }
    }

    /// Makes what is not there, and writes the job's files, here and on its hosts.
    pub(super) fn prepare(&self) -> Result<(), Failure> {
        let mut maker = fs::DirBuilder::new();
        maker.recursive(true).mode(0o700);
        let make = |path: &Path| {
            maker.create(path).map_err(|error| {
                Failure::new(format!("cannot make `{}`: {error}", path.display()))
                    .hint("name a directory on a local disk that you may write to: --directory DIR")
            })
        };
        make(&self.path(LOGS))?;
        if self.afar().is_none() {
            make(&self.path(SOCKETS))?;
            make(&self.disk())?;
        }
        if !self.path(KEY).exists() {
            let mut file = fs::OpenOptions::new();
            let file = file.write(true).create_new(true).mode(0o600).open(self.path(KEY));
            file?.write_all(&JobKey::generate()?)?;
        }
        let job = self.job();
        fs::write(self.path(JOB), &job)?;
        fs::write(
            self.path("hostfile"),
            lines(self.hosts.iter().map(|host| self.called(host).to_owned())),
        )?;
        if self.is_local() || self.afar().is_some() {
            let line = |(place, host): (usize, &Host)| {
                format!("{} {}", self.program_address(place), self.called(host))
            };
            let lines = lines(self.hosts.iter().enumerate().map(line));
            fs::write(self.names(), format!("127.0.0.1 localhost\n{lines}"))?;
            for host in self.hosts.iter().filter(|_| self.is_local()) {
                make(&self.disk_of(host))?;
            }
            self.write_agent()?;
        } else {
            let key = fs::read(self.path(KEY))?;
            let hostfile = fs::read(self.path("hostfile"))?;
            for host in &self.hosts {
                for (name, octets) in
                    [(KEY, &key[..]), (JOB, job.as_bytes()), ("hostfile", &hostfile)]
                {
                    self.send(host, name, octets)?;
                }
            }
        }
        self.record()
    }

    /// The job's file: docs/checkpoint-format.md.
    fn job(&self) -> String {
        let mut job =
            format!("scheme = \"{}\"\nblock = \"{}\"\nkey = \"{KEY}\"\n", self.scheme, self.block);
        for host in &self.hosts {
            let address = SocketAddr::new(host.address, self.port);
            let name = &host.name;
            write!(job, "\n[[hosts]]\nname = \"{name}\"\naddresses = [\"{address}\"]\n")
                .expect("strings take everything");
        }
        job
    }

    /// What launchers of MPI on a container start in place of `ssh`.
    fn write_agent(&self) -> Result<(), Failure> {
        let mut words = self.role(roles::REACH)?;
        if self.as_is.is_some() {
            words.push(format!("--kept={}", self.path(ERRORS).display()));
        }
        if self.afar().is_some() {
            words.push(format!("--job={}", self.directory.display()));
        }
        words.push(self.sockets().to_string_lossy().into_owned());
        let script = format!("#!/bin/sh\nexec {} \"$@\"\n", quoted(&words));
        let path = self.path(AGENT);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = fs::OpenOptions::new();
        let mut file = file.write(true).create_new(true).mode(0o700).open(path)?;
        Ok(file.write_all(script.as_bytes())?)
    }

    fn role(&self, name: &str) -> Result<Vec<String>, Failure> {
        let mut words = vec![program()?];
        words.extend(Self::role_words(name));
        Ok(words)
    }

    /// The words that this program is started with in a role.
    pub(super) fn role_words(name: &str) -> Vec<String> {
        [roles::WORDS[0], roles::WORDS[1], name].map(str::to_owned).to_vec()
    }

    /// A text for a shell that starts a command as the first of a tree that is captured, in a session of its own and with
    /// nothing open of whoever starts it.
    pub(super) fn kept(how: &[String], command: &[String]) -> Result<String, Failure> {
        let mut words = vec!["setsid".to_owned(), program()?];
        words.extend(Self::role_words(roles::KEEP));
        words.extend(how.iter().cloned());
        words.push("--".to_owned());
        words.extend(command.iter().cloned());
        Ok(format!("{} </dev/null >/dev/null 2>&1 &", quoted(&words)))
    }

    /// Writes a file of the job on a host that is reached by `ssh`.
    fn send(&self, host: &Host, name: &str, octets: &[u8]) -> Result<(), Failure> {
        let path = self.path(name).to_string_lossy().into_owned();
        let disk = self.disk().to_string_lossy().into_owned();
        let script = format!(
            "umask 077 && mkdir -p {} && cat > {}",
            quoted(&[disk]),
            quoted(std::slice::from_ref(&path)),
        );
        let mut sending = self.script(host, &script)?;
        let mut child =
            sending.stdin(Stdio::piped()).spawn().map_err(|error| self.unreached(host, &error))?;
        let mut input = child.stdin.take().expect("it is piped");
        // That it has ended already is said by its code.
        drop(input.write_all(octets));
        drop(input);
        let ended = child.wait()?;
        if ended.success() {
            return Ok(());
        }
        Err(self.unreached(host, &format!("cannot write `{path}`: {ended}")))
    }

    fn unreached(&self, host: &Host, why: &dyn std::fmt::Display) -> Failure {
        let Way::Ssh { program, .. } = &self.way else {
            return Failure::new(format!("`{}` cannot be reached: {why}", host.name))
                .hint("`scontrol show node` says how it stands");
        };
        Failure::new(format!("`{}` cannot be reached: {why}", host.name)).hint(format!(
            "try `{} {} true`; it must ask nothing. --ssh names another program, --on other hosts",
            program.join(" "),
            host.name,
        ))
    }

    /// A text for the shell of a host.
    #[expect(clippy::disallowed_methods, reason = "starts commands on hosts")]
    pub(super) fn script(&self, host: &Host, script: &str) -> Result<Command, Failure> {
        let words = match &self.way {
            Way::Local => {
                let mut words = self.reaching()?;
                words.push(self.called(host).to_owned());
                words
            }
            Way::Ssh { program, .. } => [&program[..], std::slice::from_ref(&host.name)].concat(),
            Way::Slurm => slurm::step(&host.name),
        };
        let (program, arguments) =
            words.split_first().ok_or_else(|| Failure::new("--ssh names no program"))?;
        let mut command = Command::new(program);
        command.args(arguments).arg(script).stdin(Stdio::null());
        Ok(command)
    }

    /// Whoever reaches containers of this machine, which the name of one and a text for its shell are to follow.
    fn reaching(&self) -> Result<Vec<String>, Failure> {
        let mut words = self.role(roles::REACH)?;
        words.push(self.sockets().to_string_lossy().into_owned());
        Ok(words)
    }

    /// A text for the shell of the container of a host, as its machine is told it where that is another one.
    fn within(&self, host: &Host, script: &str) -> Result<String, Failure> {
        if self.afar().is_none() {
            return Ok(script.to_owned());
        }
        let mut words = self.reaching()?;
        words.extend([self.called(host).to_owned(), script.to_owned()]);
        Ok(format!("exec {}", quoted(&words)))
    }

    /// A text for the shell of a host, in its container where the program is captured.
    fn inside(&self, host: &Host, script: &str) -> Result<Command, Failure> {
        self.script(host, &self.within(host, script)?)
    }

    /// The words that machines are given so that the container of another host, which is called so, gets a text for its shell.
    pub(super) fn words_for(&self, called: &str, script: &str) -> Result<Vec<String>, Failure> {
        let host = self.hosts.iter().find(|host| self.called(host) == called).ok_or_else(|| {
            Failure::new(format!("`{called}` is no host of the program"))
                .hint(format!("`{}` names them", self.path("hostfile").display()))
        })?;
        let command = self.inside(host, script)?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        Ok(words.map(|word| word.to_string_lossy().into_owned()).collect())
    }

    /// A verb of this program in the container of a host.
    pub(super) fn part(&self, host: &Host, words: &[String]) -> Result<Command, Failure> {
        let mut all = vec![program()?];
        all.extend(words.iter().cloned());
        self.inside(host, &format!("exec {}", quoted(&all)))
    }

    /// Whoever has the container of a place on its host, which is another machine.
    pub(super) fn machine(&self, place: usize) -> Result<Command, Failure> {
        let host = &self.hosts[place];
        let mut words = Self::role_words(roles::HOST);
        for (option, value) in [
            ("--criu", self.criu().to_string_lossy().into_owned()),
            ("--disk", self.disk().to_string_lossy().into_owned()),
            ("--sockets", self.sockets().to_string_lossy().into_owned()),
            ("--name", self.called(host).to_owned()),
            ("--names", self.names().to_string_lossy().into_owned()),
            ("--beside", host.address.to_string()),
            ("--address", self.program_address(place).to_string()),
            ("--lease", self.replace_after.to_string()),
        ] {
            words.extend([option.to_owned(), value]);
        }
        self.meikyo(host, &words)
    }

    /// A verb of this program on a host, where it lies at the same place.
    pub(super) fn meikyo(&self, host: &Host, words: &[String]) -> Result<Command, Failure> {
        let mut all = vec![program()?];
        all.extend(words.iter().cloned());
        self.script(host, &format!("exec {}", quoted(&all)))
    }

    /// The program on the first host, with what it and launchers of MPI have to know.
    pub(super) fn program(&self) -> Result<Command, Failure> {
        let work = quoted(&[self.work.to_string_lossy().into_owned()]);
        let words = self.program_words();
        if self.as_is.is_some() {
            let job = ["--job".to_owned(), self.directory.to_string_lossy().into_owned()];
            let kept = Self::kept(&job, &words)?;
            return self.inside(&self.hosts[0], &format!("cd {work} || exit 1; {kept}"));
        }
        let process = quoted(&[self.path(PROCESS).to_string_lossy().into_owned()]);
        self.script(
            &self.hosts[0],
            &format!("echo $$ > {process}; cd {work} && exec {}", quoted(&words)),
        )
    }

    fn program_words(&self) -> Vec<String> {
        let path = |name| self.path(name).to_string_lossy().into_owned();
        let mut variables = vec![
            ("MEIKYO_CHECKPOINT_DIRECTORY".to_owned(), self.disk().to_string_lossy().into_owned()),
            ("HYDRA_HOST_FILE".to_owned(), path("hostfile")),
            ("OMPI_MCA_orte_default_hostfile".to_owned(), path("hostfile")),
            // Every host needs ranks.
            ("OMPI_MCA_rmaps_base_mapping_policy".to_owned(), "node".to_owned()),
        ];
        // Hosts on this machine have the same names and numbers of processes in every job, and these are all that Open MPI
        // tells its temporary files of different jobs apart by.
        const OPEN_MPI_FILES: &str = "OMPI_MCA_orte_tmpdir_base";
        if self.way == Way::Local && std::env::var_os(OPEN_MPI_FILES).is_none() {
            variables.push((OPEN_MPI_FILES.to_owned(), path("open-mpi")));
        }
        let agent = match &self.way {
            way if *way == Way::Local || self.afar().is_some() => {
                // Whoever has made the containers is root in them.
                for name in [
                    "OMPI_ALLOW_RUN_AS_ROOT",
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                    "OMPI_MCA_rmaps_base_oversubscribe",
                ] {
                    variables.push((name.to_owned(), "1".to_owned()));
                }
                Some((path(AGENT), path(AGENT)))
            }
            Way::Ssh { program, .. } if program.len() == 1 && program[0] != "ssh" => {
                Some((program[0].clone(), program[0].clone()))
            }
            _ => None,
        };
        if let Some((hydra, open_mpi)) = agent {
            variables.push(("HYDRA_LAUNCHER".to_owned(), "ssh".to_owned()));
            variables.push(("HYDRA_LAUNCHER_EXEC".to_owned(), hydra));
            variables.push(("OMPI_MCA_plm_rsh_agent".to_owned(), open_mpi));
        }
        variables.extend(self.environment.iter().cloned());
        // Open MPI passes on only what it is told to.
        let passed = variables.iter().map(|(name, _)| name.as_str());
        let passed: Vec<&str> = passed.filter(|name| name.starts_with("MEIKYO_")).collect();
        variables.push(("OMPI_MCA_mca_base_env_list".to_owned(), passed.join(";")));
        let mut words = vec!["env".to_owned()];
        words.extend(variables.into_iter().map(|(name, value)| format!("{name}={value}")));
        words.extend(self.command.iter().cloned());
        words
    }

    /// What MPI libraries are told where the program is captured as it is, and the person has not said otherwise: to use
    /// what CRIU can capture, and the one link that carries nothing meanwhile.
    pub(super) fn capturable() -> Vec<(String, String)> {
        let all = [
            // Debian's MPICH moves data by UCX.
            ("UCX_TLS", "posix,self,tcp"),
            ("UCX_NET_DEVICES", PROGRAM_DEVICE),
            ("HYDRA_IFACE", PROGRAM_DEVICE),
            ("OMPI_MCA_pml", "ob1"),
            ("OMPI_MCA_btl", "self,vader,tcp"),
            ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
            ("OMPI_MCA_btl_tcp_if_include", PROGRAM_DEVICE),
            ("OMPI_MCA_oob_tcp_if_include", PROGRAM_DEVICE),
            // Its files are part of what is captured there.
            ("OMPI_MCA_orte_tmpdir_base", "/dev/shm"),
        ];
        let is_free = |(name, _): &(&str, &str)| std::env::var_os(name).is_none();
        all.into_iter()
            .filter(is_free)
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// Has the processes of the program on a host get numbers that are free on every other.
    pub(super) fn number_processes(&self, host: &Host) -> Result<Command, Failure> {
        self.inside(host, &format!("echo {PROCESSES_BELOW} > {LAST_PROCESS}"))
    }

    /// How a program that is captured has ended, if it has.
    pub(super) fn ended(&self) -> Option<u8> {
        fs::read_to_string(self.path(ENDED)).ok()?.trim().parse().ok()
    }

    /// Writes down what is to be known for a restart.
    pub(super) fn record(&self) -> Result<(), Failure> {
        let record = serde_json::to_vec_pretty(self)?;
        Ok(fs::write(self.path(RECORD), record)?)
    }

    /// Tells the program on the first host to end: it ends what it has started on others. Or kills it with all that it
    /// has started there.
    pub(super) fn end_program(&self, is_killed: bool) -> Result<(), Failure> {
        let process = quoted(&[self.path(PROCESS).to_string_lossy().into_owned()]);
        let script = if is_killed {
            format!("kill -KILL -$(cat {process}) || kill -KILL $(cat {process})")
        } else if self.as_is.is_some() {
            // Whoever keeps it together stays.
            format!("kill -TERM -$(cat {process})")
        } else {
            format!("kill $(cat {process})")
        };
        let mut command = self.inside(&self.hosts[0], &script)?;
        // Its host may be gone, and it may have ended.
        drop(command.stdout(Stdio::null()).stderr(Stdio::null()).status());
        Ok(())
    }

    /// How the daemon of a host stands; nothing while it does not answer.
    pub(super) fn status(&self, host: &Host) -> Option<Status> {
        use meikyo_checkpoint::daemon::{Answer, Request, ask_within};
        if self.is_local() {
            return match ask_within(&self.disk_of(host), &Request::Status, ANSWERING) {
                Ok(Answer::Status(status)) => Some(*status),
                _ => None,
            };
        }
        let disk = self.disk().to_string_lossy().into_owned();
        let words = ["checkpoint", "status", "--json", "--directory", &disk].map(str::to_owned);
        let mut command = self.meikyo(host, &words).ok()?;
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        // One document, which a pipe has room for; whoever waits for a host that is gone is not waited for.
        let deadline = now() + ANSWERING_AFAR;
        while matches!(child.try_wait(), Ok(None)) && now() < deadline {
            thread::park_timeout(LOOK_AGAIN / 4);
        }
        // It may have ended.
        drop(child.kill());
        let output = child.wait_with_output().ok()?;
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        serde_json::from_value(told.get("status")?.clone()).ok()
    }
}

/// This program, as hosts have it.
fn program() -> Result<String, Failure> {
    Ok(std::env::current_exe()?.to_string_lossy().into_owned())
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

/// Words as a shell takes them for what they are.
fn quoted(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a shell says what it takes words for")]
    fn a_shell_takes_words_for_what_they_are() {
        let words = ["a b", "it's", "$HOME `x` \"\\", "*", ""].map(str::to_owned);
        let script = format!("printf '<%s>' {}", quoted(&words));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let expected: String = words.iter().map(|word| format!("<{word}>")).collect();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}
