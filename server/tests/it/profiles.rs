//! Flame graphs and heat of a profile whose rows are written by hand: what they must say is known.

use std::collections::BTreeMap;
use std::path::Path;

use meikyo_profile::STREAM;
use meikyo_profile::tables::{all, cgroups, jit_symbols, samples, threads};
use meikyo_recording::{Kind, Packer, StreamOptions, StreamWriter, WhenFull};
use meikyo_server::hash_token;
use serde_json::Value;

use crate::client::{Served, serve, serve_with};
use crate::recorded::recording;

/// 2026-11-21T20:59:59Z.
const START_S: i64 = 1_795_294_799;

/// A row of a table: time, words by column, numbers by column.
pub(crate) fn row(
    packer: &mut Packer,
    table: &str,
    time: i64,
    words: &[(&str, &str)],
    numbers: &[(&str, u64)],
) {
    let schema = all().into_iter().find(|schema| schema.name == table).unwrap();
    let position =
        |name: &str| schema.columns.iter().position(|column| column.name == name).unwrap();
    let is_symbol = |name: &str| name == "host" || name == "event";
    let symbols: Vec<_> = words
        .iter()
        .filter(|(name, _)| is_symbol(name))
        .map(|(name, word)| (position(name), packer.symbol(word)))
        .collect();
    let batch = packer.batch();
    batch.begin_row(time);
    symbols.into_iter().for_each(|(column, symbol)| batch.put_symbol(column, symbol));
    for (name, word) in words.iter().filter(|(name, _)| !is_symbol(name)) {
        batch.put_text(position(name), word);
    }
    numbers.iter().for_each(|(name, number)| batch.put_u64(position(name), *number));
}

/// A profile of two hosts: in the second `n`, n + 1 samples of `outer` calling `inner`, of host b as many of
/// `outer` alone; a sample each 20 ms from the begin of the second on, of CPU 3.
fn profile(dir: &Path, seconds: i64) {
    let mut packers: BTreeMap<String, Packer> =
        all().into_iter().map(|table| (table.name.clone(), Packer::new(table))).collect();
    let mut put = |table: &str, time: i64, words: &[(&str, &str)], numbers: &[(&str, u64)]| {
        row(packers.get_mut(table).unwrap(), table, time, words, numbers);
    };
    let second = 1_000_000_000;
    for (host, job) in [("a", "/system.slice/slurmstepd.scope/job_9/step_0"), ("b", "/")] {
        let begin = START_S * second - second;
        let words = [("host", host), ("event", "there"), ("name", "solver")];
        put(threads::NAME, begin, &words, &[("pid", 7), ("tid", 7)]);
        for (name, address) in [("outer", 0x5000), ("inner", 0x6000)] {
            let numbers = [("pid", 7), ("address", address), ("size_bytes", 16)];
            put(jit_symbols::NAME, begin, &[("host", host), ("name", name)], &numbers);
        }
        let words = [("host", host), ("path", job)];
        put(cgroups::NAME, begin, &words, &[("cgroup", 1)]);
        for at in 0..seconds {
            for sample in 0..=at {
                let time = (START_S + at) * second + sample * 20_000_000;
                let (address, stack) = if host == "a" { (0x6001, "5001") } else { (0x5001, "") };
                let numbers =
                    [("cpu", 3), ("pid", 7), ("tid", 7), ("address", address), ("cgroup", 1)];
                put(samples::NAME, time, &[("host", host), ("stack", stack)], &numbers);
            }
        }
    }
    let options =
        StreamOptions { compact: false, when_full: WhenFull::Wait, ..StreamOptions::COLLECTOR };
    let mut writer = StreamWriter::open(dir, Kind::Measured, STREAM, all(), options).unwrap();
    for packer in packers.values_mut() {
        if packer.batch().rows() > 0 {
            writer.packed(packer.pack().unwrap()).unwrap();
        }
    }
    writer.close().unwrap();
}

fn numbers(of: &Value) -> Vec<u64> {
    of.as_array().unwrap().iter().map(|of| of.as_u64().unwrap()).collect()
}

/// Each node as the names to it and its samples: own, total, and those that are compared with.
fn nodes(tree: &Value) -> BTreeMap<String, Vec<u64>> {
    let parents = numbers(&tree["parent"]);
    let frames = numbers(&tree["frame"]);
    let index = |number: u64| usize::try_from(number).unwrap();
    let columns = ["own", "total", "than_own", "than_total"].map(|name| numbers(&tree[name]));
    let mut names = vec![String::new()];
    for at in 1..parents.len() {
        let name = tree["frames"][index(frames[at])]["name"].as_str().unwrap();
        let path = format!("{}/{name}", names[index(parents[at])]);
        names.push(path);
    }
    let sums = |at: usize| columns.iter().filter_map(|column| column.get(at).copied()).collect();
    names.into_iter().enumerate().map(|(at, name)| (name, sums(at))).collect()
}

fn expected(of: &[(&str, &[u64])]) -> BTreeMap<String, Vec<u64>> {
    of.iter().map(|(name, sums)| ((*name).to_owned(), sums.to_vec())).collect()
}

#[test]
fn a_flame_graph_counts_samples_by_callers_chosen_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("prof");
    profile(&path, 4);
    let served = serve(&path);
    let ask = |query: &str| served.json(&format!("recordings/prof/profile/flame?{query}"));
    // 1 + 2 + 3 + 4 samples of each host.
    let whole = ask("");
    let all = [("", &[0, 20][..]), ("/outer", &[10, 20]), ("/outer/inner", &[10, 10])];
    assert_eq!(nodes(&whole), expected(&all));
    assert_eq!((&whole["sides"][0]["samples"], &whole["left_out"]), (&20.into(), &0.into()));
    assert_eq!(whole["sides"][0]["first_us"], START_S * 1_000_000);
    let of_a = expected(&[("", &[0, 10]), ("/outer", &[0, 10]), ("/outer/inner", &[10, 10])]);
    for query in
        ["host=a", "job=slurm:*", "host=?&job=slurm:9&cpu=3&pid=7&process=sol*&thread=solver"]
    {
        assert_eq!(nodes(&ask(query)), of_a, "{query}");
    }
    for query in ["cpu=4", "host=c", "process=other", "job=none", "pid=8"] {
        assert_eq!(nodes(&ask(query)), expected(&[("", &[0, 0])]), "{query}");
    }
    // The second and the third second, compared with the first one and with the other host.
    let middle = format!("from={}000000&to={}000000", START_S + 1, START_S + 3);
    let first = format!("than_from={START_S}000000&than_to={}000000", START_S + 1);
    let compared =
        [("", &[0, 10, 0, 2][..]), ("/outer", &[5, 10, 1, 2]), ("/outer/inner", &[5, 5, 1, 1])];
    assert_eq!(nodes(&ask(&format!("{middle}&{first}"))), expected(&compared));
    let hosts =
        [("", &[0, 5, 0, 5][..]), ("/outer", &[0, 5, 5, 5]), ("/outer/inner", &[5, 5, 0, 0])];
    assert_eq!(nodes(&ask(&format!("{middle}&host=a&than_host=b"))), expected(&hosts));
    let by_host = ask("by=host");
    let frames: Vec<_> = by_host["frames"].as_array().unwrap().iter().collect();
    assert!(frames.iter().any(|frame| frame["kind"] == "group" && frame["name"] == "b"));
    assert_eq!(nodes(&by_host)["/b/outer"], [10, 10]);
    let in_time = ask("by=thread&order=time&host=a");
    assert_eq!(nodes(&in_time)["/solver 7/outer/inner"], [10, 10]);
}

#[test]
fn what_a_flame_graph_cannot_be_of_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("prof");
    profile(&path, 1);
    let served = serve(&path);
    let refused = |served: &Served, path: &str| {
        let answer = served.get(&format!("/api/v1/recordings/{path}"));
        (answer.status, answer.text())
    };
    for (query, says) in [
        ("by=colour", "`colour` is not one of together, thread"),
        ("order=time&than_host=a", "only merged stacks can be compared"),
        ("order=sideways", "`sideways` is not merged and not time"),
        ("of=colour", "`colour` is not samples and not off_cpu"),
        ("nodes=0", "`nodes` is a whole number from 1 to 100000"),
        ("pid=x", "`x` is no number of a pid"),
        ("than_from=2&than_to=1", "`than_from` is not before `than_to`"),
        ("colour=red", "`colour` is no parameter"),
    ] {
        let (status, text) = refused(&served, &format!("prof/profile/flame?{query}"));
        assert!(status == 400 && text.contains(says), "{query}: {status} {text}");
    }
    let (status, text) = refused(&served, "prof/profile/flame?of=off_cpu");
    assert!(status == 404 && text.contains("meikyo profile record --off-cpu"), "{status} {text}");
    let other = serve(recording());
    let all = other.json("recordings");
    let id = all[0]["id"].as_str().unwrap();
    for what in ["profile/flame", "heat", "cores"] {
        let (status, text) = refused(&other, &format!("{id}/{what}"));
        assert!(
            status == 404 && text.contains("meikyo profile record") || text.contains("`samples`"),
            "{what}: {status} {text}"
        );
    }
}

#[test]
fn heat_is_counted_where_none_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("prof");
    profile(&path, 30);
    let served = serve(&path);
    let map = served.json("recordings/prof/heat?host=a");
    assert_eq!((&map["from_us"], &map["tile_us"]), (&(START_S * 1_000_000).into(), &20_000.into()));
    assert_eq!(numbers(&map["samples"]), (1..=30).collect::<Vec<_>>());
    // In the second `n` the tiles from 0 to `n` have a sample each.
    let tile = |at: u64| u64::from(at % 50 <= at / 50);
    assert_eq!(numbers(&map["tiles"]), (0..30 * 50).map(tile).collect::<Vec<_>>());
    let cores = served.json("recordings/prof/cores?cpu=3");
    let hosts = cores["cores"].as_array().unwrap().iter();
    let found: Vec<_> =
        hosts.map(|core| (core["host"].as_str().unwrap(), numbers(&core["seconds"]))).collect();
    let each: Vec<u64> = (1..=30).collect();
    assert_eq!(found, [("a", each.clone()), ("b", each)]);
    assert_eq!(served.json("recordings/prof/cores?cpu=4")["cores"], Value::Array(Vec::new()));
}

/// A server of a profile that asks for tokens: for viewing, for the job that there is, for others.
fn with_tokens(dir: &Path) -> (Served, [String; 3]) {
    let (path, file) = (dir.join("prof"), dir.join("tokens"));
    profile(&path, 4);
    let roles = ["", "jobs slurm:9 ", "jobs slurm:1,user:1000 "];
    let tokens = roles.map(|_| meikyo_server::make_token());
    let lines = roles.iter().zip(&tokens);
    let lines = lines.map(|(role, token)| format!("{role}{}\n", hash_token(token).unwrap()));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let served = serve_with(&path, |options| {
        options.token_file = Some(file.clone());
        options.requests_per_s = std::num::NonZeroU32::new(100_000).unwrap();
    });
    (served, tokens)
}

#[test]
fn a_token_for_a_job_shows_samples_of_that_job() {
    let dir = tempfile::tempdir().unwrap();
    let (served, tokens) = with_tokens(dir.path());
    let ask = |token: &str, method: &str, path: &str| {
        served.ask(method, path, &format!("Authorization: Bearer {token}\r\n"), "")
    };
    let tree = |token: &str, query: &str| {
        let path = format!("/api/v1/recordings/prof/profile/flame?{query}");
        let answer = ask(token, "GET", &path);
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    let [view, of_job, of_others] = &tokens;
    // 10 samples of the job on host a; as many of nobody's on host b.
    assert_eq!(tree(view, "")["sides"][0]["samples"], 20);
    for query in ["", "job=*", "host=*", "job=slurm:9", "than_from=0&than_host=b"] {
        let body = tree(of_job, query);
        assert_eq!(body["sides"][0]["samples"], 10, "{query}");
        assert!(body["sides"][1]["samples"].as_u64().unwrap_or(0) == 0, "{query}: {body}");
    }
    let by_host = tree(of_job, "by=host");
    let mut frames = by_host["frames"].as_array().unwrap().iter();
    assert!(frames.all(|frame| frame["name"] != "b"), "{by_host}");
    assert_eq!(tree(of_job, "host=b")["sides"][0]["samples"], 0);
    assert_eq!(tree(of_others, "")["sides"][0]["samples"], 0);
    // Maps count the same samples: 1 to 4 a second, of host a alone.
    let map = |token: &str, of: &str| {
        let answer = ask(token, "GET", &format!("/api/v1/recordings/prof/{of}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    assert_eq!(numbers(&map(view, "heat")["samples"]), [2, 4, 6, 8]);
    let heat = map(of_job, "heat");
    assert_eq!(numbers(&heat["samples"]), [1, 2, 3, 4]);
    assert_eq!(numbers(&heat["tiles"]).iter().sum::<u64>(), 10);
    let cores = map(of_job, "cores");
    assert_eq!(cores["cores"].as_array().unwrap().len(), 1, "{cores}");
    let core = &cores["cores"][0];
    assert_eq!((&core["host"], &core["samples"]), (&"a".into(), &10.into()));
    assert_eq!(numbers(&map(of_job, "heat?host=b")["samples"]), [0, 0, 0, 0]);
    assert_eq!(numbers(&map(of_others, "heat")["samples"]), [0, 0, 0, 0]);
}

#[test]
fn a_token_for_a_job_opens_nothing_but_samples_and_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let (served, [view, of_job, _]) = with_tokens(dir.path());
    let ask = |token: &str, method: &str, path: &str| {
        served.ask(method, path, &format!("Authorization: Bearer {token}\r\n"), "")
    };
    // The list of recordings names no other table and no device.
    let list = |token: &str| {
        let answer = ask(token, "GET", "/api/v1/recordings");
        serde_json::from_slice::<Value>(&answer.body).unwrap()[0].clone()
    };
    assert!(list(&view)["tables"].as_array().unwrap().len() > 3);
    let list = list(&of_job);
    assert_eq!(list["devices"], Value::Array(Vec::new()));
    assert_eq!(list["tables"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["tables"][0]["name"], "samples");
    // Nothing else is opened but the page itself.
    let opened =
        ["heat", "cores", "profile/flame"].map(|what| format!("/api/v1/recordings/prof/{what}"));
    let opened = [&["/".to_owned(), "/api/v1/recordings".to_owned()], &opened[..]].concat();
    let document = ask(&view, "GET", "/api/v1/openapi.json");
    let document: Value = serde_json::from_slice(&document.body).unwrap();
    let paths =
        document["paths"].as_object().unwrap().keys().map(|path| path.replace("{id}", "prof"));
    let others = [
        "/",
        "/metrics",
        "/api/v1/openapi.json",
        "/api/v1/ingest",
        "/api/v1/recordings/a/b/profile/flame",
        "/api/v1/recordings//heat",
    ];
    let all: Vec<_> = paths.chain(others.map(str::to_owned)).collect();
    assert!(all.len() > 20, "{all:?}");
    for path in all {
        for method in ["GET", "POST"] {
            let is_opened = method == "GET" && opened.contains(&path);
            let answer = ask(&of_job, method, &path);
            assert_eq!(answer.status == 403, !is_opened, "{method} {path}: {}", answer.status);
        }
    }
}

/// A browser shows the token once, and has a session that sees no more than the token.
#[test]
fn a_session_that_began_with_a_token_for_a_job_sees_no_more_than_the_token() {
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = (dir.path().join("prof"), dir.path().join("tokens"));
    profile(&path, 2);
    let token = meikyo_server::make_token();
    std::fs::write(&file, format!("jobs slurm:* {}\n", hash_token(&token).unwrap())).unwrap();
    let served = serve_with(&path, |options| options.token_file = Some(file.clone()));
    let welcome = served.ask("GET", &format!("/?token={token}"), "", "");
    assert_eq!(welcome.status, 303, "{}", welcome.text());
    let cookie = welcome.head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.and_then(|cookie| cookie.split(';').next()).unwrap();
    let ask = |path: &str| served.ask("GET", path, &format!("Cookie: {cookie}\r\n"), "");
    assert_eq!(ask("/").status, 200);
    let heat = ask("/api/v1/recordings/prof/heat");
    let heat: Value = serde_json::from_slice(&heat.body).unwrap();
    assert_eq!(numbers(&heat["samples"]), [1, 2]);
    assert_eq!(ask("/api/v1/recordings/prof/export?table=samples").status, 403);
}
