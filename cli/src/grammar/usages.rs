//! Examples and exit codes of every verb.

use super::Usage;

/// A verb that is carried out or not, and answers no question.
const fn done(verb: &'static str, examples: &'static [&'static str]) -> Usage {
    Usage { verb, no: None, examples }
}

/// A verb whose answer may be no.
const fn asks(verb: &'static str, no: &'static str, examples: &'static [&'static str]) -> Usage {
    Usage { verb, no: Some(no), examples }
}

/// What it means when rows of damaged files are not among the answer.
const ROWS_MISSING: &str = "rows are missing, since files are damaged or gone";
/// What it means when a bench did not reach what is promised.
const NOT_REACHED: &str = "a number is not reached, or the output is not right";

/// All of them, in the order of the help.
pub(crate) const USAGES: &[Usage] = &[
    asks(
        "measure",
        "rows were lost; what waits in the spool is not",
        &[
            "meikyo measure --cluster cluster.toml --out recording --serve",
            "meikyo measure --for 30s --quiet --json",
            "meikyo measure --to https://mon.example:8420 --token-file token --spool spool",
        ],
    ),
    asks(
        "profile record",
        "nothing was sampled, or samples were lost; otherwise as the program ended that was started",
        &[
            "meikyo profile record --all --for 10s",
            "meikyo profile record --out profile -- make -j8",
            "meikyo profile record --stacks=eh-frame -- ./solver input.dat",
        ],
    ),
    asks(
        "profile agent",
        "not everything was delivered",
        &["meikyo profile agent --server https://mon.example:8420 --token-file token"],
    ),
    done("profile grab", &["meikyo profile grab --last 30s"]),
    asks(
        "profile import",
        "it has no samples, or records in it could not be read",
        &["meikyo profile import perf.data --out prof"],
    ),
    asks(
        "profile report",
        "there are no samples in that span, or files are damaged",
        &[
            "meikyo profile report profile --by process --from -10s",
            "meikyo profile report profile --off-cpu",
        ],
    ),
    asks(
        "profile top",
        "there are no samples, or files are damaged",
        &["meikyo profile top profile --last 5s"],
    ),
    asks(
        "profile diff",
        "one of the two has no samples, or files are damaged",
        &["meikyo profile diff before after --by file"],
    ),
    asks(
        "profile export",
        "there are no samples, or files are damaged",
        &["meikyo profile export profile --format speedscope --out profile.json"],
    ),
    done(
        "serve",
        &[
            "meikyo serve recording --cluster cluster.toml",
            "meikyo serve --ingest collected --listen 127.0.0.1:8420",
        ],
    ),
    asks(
        "top",
        "with --once: there is no reading yet, or files are damaged",
        &["meikyo top", "meikyo top /data/run7 --device 'node[001-064]' --once --json"],
    ),
    done("fabric plan", &["meikyo fabric plan --cluster cluster.toml --json"]),
    done(
        "fabric predict",
        &[
            "meikyo fabric predict --program hpl --n 20000 --grid 4x8",
            "meikyo fabric predict --program hpl --n 20000 --grid 4x8 --compare tree,torus --cables 1..3",
            "meikyo fabric predict --program trace:trace --set library=openmpi-1.3",
            "meikyo fabric predict --program cg --hostfile hosts --seeds 10 --background node01:node09:300Mbit/s",
        ],
    ),
    asks(
        "fabric check",
        "the settings do not do what they must",
        &[
            "meikyo fabric check --each-failure",
            "meikyo fabric check --config texts --path node001 node017",
        ],
    ),
    done("fabric configure", &["meikyo fabric configure --out texts"]),
    done("fabric templates", &["meikyo fabric templates --out templates"]),
    asks(
        "fabric diff",
        "a switch has other settings than planned",
        &["meikyo fabric diff --config texts"],
    ),
    asks(
        "fabric deploy",
        "what has to be done by hand comes next (`--snmp`)",
        &[
            "meikyo fabric deploy --current factory --dry-run",
            "meikyo fabric deploy --current texts --out steps",
            "meikyo fabric deploy --snmp --dry-run",
        ],
    ),
    asks(
        "fabric failover",
        "pairs would be lost that are still connected",
        &["meikyo fabric failover --link sw1:sw2"],
    ),
    asks(
        "fabric verify",
        "switches or cables differ from the plan",
        &["meikyo fabric verify --switch sw1"],
    ),
    done("fabric prime", &["meikyo fabric prime --host node001 --timer"]),
    done("fabric cables", &["meikyo fabric cables --switch sw1"]),
    done("fabric worksheet", &["meikyo fabric worksheet --out sheets --format html"]),
    done("fabric draw", &["meikyo fabric draw --out fabric.svg"]),
    done("lab up", &["meikyo lab up --cluster cluster.toml --rate 20Mbit/s --snmp"]),
    Usage {
        verb: "lab exec",
        no: Some("the command ended so; its other codes are passed on, too"),
        examples: &["meikyo lab exec node001 -- ping -c 3 node002"],
    },
    asks("lab status", "no lab runs", &["meikyo lab status --ports --json"]),
    done("lab prime", &["meikyo lab prime"]),
    asks(
        "lab verify",
        "a pair does not talk over its planned path, or something floods",
        &["meikyo lab verify --pairs 1000"],
    ),
    done("lab cut", &["meikyo lab cut sw1:sw2 --cable 1"]),
    done("lab mend", &["meikyo lab mend sw1:sw2"]),
    asks(
        "lab failover",
        "pairs were lost that are still connected",
        &["meikyo lab failover sw1:sw2 --patience 200ms"],
    ),
    done("lab down", &["meikyo lab down"]),
    asks(
        "simulate",
        "processes of the model still wait for something that never comes",
        &[
            "meikyo simulate examples/simulate-metadata.toml --set servers=4 --out simulated",
            "meikyo simulate examples/simulate-queue.toml --for 10s --scheduler sequential",
        ],
    ),
    asks(
        "trace",
        "as the command ended that was started",
        &[
            "meikyo trace --out cg -- mpirun -n 8 ./cg",
            "meikyo trace --mpicc mpicc.openmpi -- mpirun -n 4 ./program",
            "meikyo trace --from-otf2 scorep-run/traces.otf2 --out run",
        ],
    ),
    asks(
        "checkpoint plan",
        "no scheme survives the losses that it must, or no interval helps",
        &["meikyo checkpoint plan --hosts 64 --bytes 16GiB --mtbf 30d"],
    ),
    done("checkpoint key", &["meikyo checkpoint key --out job.key"]),
    done(
        "checkpoint run",
        &[
            "meikyo checkpoint run --local 4 --directory /var/tmp/job -- mpiexec -n 4 ./heat 1000 1000 100000 100 plate",
            "meikyo checkpoint run --as-is --local 4 --spares 1 --directory /var/tmp/job -- mpiexec -n 8 ./solver",
            "meikyo checkpoint run --cluster cluster.toml --on 'node[1-8]' --directory /local/job -- mpiexec -n 64 ./heat",
        ],
    ),
    asks(
        "checkpoint doctor",
        "the program cannot be captured",
        &["meikyo checkpoint doctor -- mpiexec -n 4 ./solver"],
    ),
    asks(
        "checkpoint rehearse",
        "the program cannot be captured",
        &["meikyo checkpoint rehearse --kill node2 -- mpiexec -n 4 ./solver"],
    ),
    done(
        "checkpoint daemon",
        &["meikyo checkpoint daemon --job job.toml --host node1 --directory /var/tmp/ckpt --found"],
    ),
    asks(
        "checkpoint status",
        "a host does not answer, or this one is no member",
        &["meikyo checkpoint status --directory /var/tmp/ckpt"],
    ),
    done(
        "checkpoint save",
        &["meikyo checkpoint save --directory /var/tmp/ckpt --step 7 --image state.bin"],
    ),
    asks(
        "checkpoint verify",
        "a block is not what was stored",
        &["meikyo checkpoint verify --directory /var/tmp/ckpt"],
    ),
    done(
        "checkpoint restart",
        &[
            "meikyo checkpoint restart --directory /var/tmp/job",
            "meikyo checkpoint restart --directory /var/tmp/job --on 'node[1-7],node9' -- mpiexec -n 56 ./heat",
            "meikyo checkpoint restart --directory /var/tmp/ckpt --out state.bin",
        ],
    ),
    done("mark", &["meikyo mark 'threshold changed to 20 %'"]),
    asks(
        "alerts",
        "an alert is raised that nobody has answered, or files are damaged",
        &["meikyo alerts --recording recording --all"],
    ),
    done(
        "alerts acknowledge",
        &["meikyo alerts acknowledge silent node017 --by ada", "meikyo alerts acknowledge --all"],
    ),
    done("alerts silence", &["meikyo alerts silence disk-nearly-full node017 --for 8h"]),
    asks("recording info", ROWS_MISSING, &["meikyo recording info recording --json"]),
    asks(
        "recording check",
        "something is damaged or missing",
        &["meikyo recording check recording"],
    ),
    done("recording compact", &["meikyo recording compact recording"]),
    asks(
        "config check",
        "something is wrong with the file",
        &["meikyo config check --cluster /etc/meikyo/cluster.toml"],
    ),
    done("config show", &["meikyo config show --json"]),
    done("config snmpd", &["meikyo config snmpd --cluster cluster.toml"]),
    asks(
        "config init",
        "nothing answers, and no file is written",
        &[
            "meikyo config init '10.0.0.[1-225]' --community env:MEIKYO_COMMUNITY --out cluster.toml",
        ],
    ),
    done("config schema", &["meikyo config schema"]),
    asks(
        "probe",
        "a device is silent, refuses, or lacks what is asked for",
        &["meikyo probe", "meikyo probe node017 --for 20s"],
    ),
    done("completions", &["meikyo completions bash"]),
    done("man", &["meikyo man --out /usr/share/man/man1", "meikyo man --markdown"]),
    done("agent", &["meikyo agent --listen 0.0.0.0:1610 --community file:/etc/meikyo/community"]),
    done(
        "farm",
        &[
            "meikyo farm --count 200 --switches 4 --write-cluster farm",
            "meikyo farm --virtual 24h --out day",
        ],
    ),
    asks(
        "query",
        ROWS_MISSING,
        &[
            "meikyo query",
            "meikyo query recording interfaces --device 'node[001-008]' --from -5min --to -1min --rate",
            "meikyo query recording load --every 10s --json",
        ],
    ),
    asks(
        "export",
        ROWS_MISSING,
        &["meikyo export recording interfaces --format parquet --out tables --from 2026-11-21"],
    ),
    asks("bench collect", NOT_REACHED, &["meikyo bench collect --agents 241 --for 30s"]),
    asks("bench requests", NOT_REACHED, &["meikyo bench requests"]),
    asks("bench agent", NOT_REACHED, &["meikyo bench agent --every 100ms"]),
    asks("bench scan", NOT_REACHED, &["meikyo bench scan --millions 4"]),
    asks("bench profile", NOT_REACHED, &["meikyo bench profile --only transfer --for 10s"]),
    asks("bench live", NOT_REACHED, &["meikyo bench live --only paint"]),
    asks("bench afar", NOT_REACHED, &["meikyo bench afar --only bytes,receiver"]),
    asks("bench phold", NOT_REACHED, &["meikyo bench phold --lps 1024 --threads 2"]),
    asks("bench metadata", NOT_REACHED, &["meikyo bench metadata --figure 5,6"]),
    asks("bench fabric", NOT_REACHED, &["meikyo bench fabric --only 'torus 4x4'"]),
    asks(
        "bench predict",
        NOT_REACHED,
        &["meikyo bench predict --json", "meikyo bench predict --lab"],
    ),
    asks("bench checkpoint", NOT_REACHED, &["meikyo bench checkpoint --hosts 8 --scheme rs2"]),
];
