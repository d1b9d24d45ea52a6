//! A real debuginfod tells functions of a program that no host can tell of.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use meikyo_profile::STREAM;
use meikyo_profile::tables::{all, file_symbols, mappings};
use meikyo_recording::{Packer, Recording, Selection};
use meikyo_server::Debuginfod;
use meikyo_transport::SenderOptions;
use meikyo_transport::limits::SpoolLimits;
use meikyo_transport::shell::{Target, Uplink};
use meikyo_transport::wire::Declared;
use meikyo_units::{Nanos, WallTime};

use crate::client::{Served, serve_with};
use crate::recorded::recording;

/// How long anything may take that has to happen.
const PATIENCE: Nanos = Nanos::from_secs(120);

/// How often it is looked: who asks gives way to everybody.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

const PROGRAM: &str = "#include <stdio.h>\n\
                       int first_of_three(int a) { return a + 1; }\n\
                       int second_of_three(int a) { return first_of_three(a) * 3; }\n\
                       int third_of_three(int a) { return second_of_three(a) - 2; }\n\
                       int main(void) { return third_of_three(getchar()); }\n";

/// A process that is ended.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn output(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The build ID of the program, and where its functions lie in its file, as `readelf` has both.
fn facts(program: &str) -> (String, BTreeMap<String, u64>) {
    let notes = output("readelf", &["-n", program]).unwrap();
    let build_id = notes.split("Build ID: ").nth(1).unwrap().split_whitespace().next().unwrap();
    let sections = output("readelf", &["-SW", program]).unwrap();
    let text = sections.lines().find(|line| line.contains(" .text ")).unwrap();
    let words: Vec<_> = text.split(" .text ").nth(1).unwrap().split_whitespace().collect();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (address, offset) = (number(words[1]), number(words[2]));
    let symbols = output("readelf", &["-sW", program]).unwrap();
    let of_three = symbols.lines().filter(|line| line.ends_with("_of_three"));
    let functions = of_three.map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        (words[7].to_owned(), number(words[1]) - address + offset)
    });
    (build_id.to_owned(), functions.collect())
}

/// What a debuginfod answers to a request, first line.
fn status(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    String::from_utf8_lossy(&answer).lines().next().map(str::to_owned)
}

/// A debuginfod that has indexed the files of a directory.
fn debuginfod(dir: &Path, build_id: &str) -> Option<(Ended, u16)> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("debuginfod");
    command.args(["-p", &port.to_string(), "-d", ":memory:", "-F"]).arg(dir);
    let child = command.env("DEBUGINFOD_CACHE_PATH", dir.join("cache")).stderr(Stdio::null());
    let Ok(child) = child.stdout(Stdio::null()).spawn() else {
        meikyo_testing::lacking("debuginfod, which Debian has in debuginfod");
        return None;
    };
    let child = Ended(child);
    let deadline = WallTime::now() + PATIENCE;
    for what in ["debuginfo", "executable"] {
        let path = format!("/buildid/{build_id}/{what}");
        while !status(port, &path).is_some_and(|line| line.contains(" 200 ")) {
            assert!(WallTime::now() < deadline, "debuginfod does not have {path}");
            std::thread::park_timeout(LOOK_EVERY);
        }
    }
    Some((child, port))
}

/// The functions of a recording by build ID and name, with the host that told of them.
fn told(recording: &Path) -> BTreeMap<(String, String), (u64, String)> {
    let mut found = BTreeMap::new();
    let Ok(scan) = Recording::open(recording).and_then(|recording| {
        Ok(recording.scan(&Selection::all(file_symbols::NAME))?.collect::<Vec<_>>())
    }) else {
        return found;
    };
    for rows in scan {
        let rows = rows.unwrap();
        let (hosts, files) =
            (file_symbols::HOST.values_in(&rows), file_symbols::BUILD_ID.values_in(&rows));
        let (names, offsets) =
            (file_symbols::FUNCTION.values_in(&rows), file_symbols::OFFSET_BYTES.values_in(&rows));
        let (hosts, files) = (hosts.unwrap(), files.unwrap());
        let (names, offsets) = (names.unwrap(), offsets.unwrap());
        for row in 0..rows.num_rows() {
            let key = (files.get(row).unwrap().to_owned(), names.get(row).unwrap().to_owned());
            found.insert(key, (offsets.get(row).unwrap(), hosts.get(row).unwrap().to_owned()));
        }
    }
    found
}

#[test]
fn functions_of_a_program_that_no_host_has_any_more_come_from_a_debuginfod() {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let (source, program) = (dir.path().join("program.c"), files.join("program"));
    std::fs::write(&source, PROGRAM).unwrap();
    let (source, program) = (source.to_str().unwrap(), program.to_str().unwrap());
    let words = ["-g", "-O0", "-Wl,--build-id", "-o", program, source];
    if output("cc", &words).is_none() {
        return meikyo_testing::lacking("cc, which Debian has in gcc and libc6-dev");
    }
    let (build_id, expected) = facts(program);
    assert_eq!(expected.len(), 3);
    // As distributions do: what runs has no symbols, and its debug information lies elsewhere.
    output("objcopy", &["--only-keep-debug", program, &format!("{program}.debug")]).unwrap();
    output("strip", &[program]).unwrap();
    let Some((_debuginfod, port)) = debuginfod(&files, &build_id) else { return };
    let taking = dir.path().join("rec");
    let Served { running, address } = serve_with(recording(), |options| {
        options.recordings.push(taking.clone());
        options.ingest = Some(taking.clone());
        let url = format!("http://127.0.0.1:{port}");
        options.debuginfod = Some(Debuginfod::new(&url, Path::new("/none")).unwrap());
    });
    let options = SenderOptions {
        name: "node001".into(),
        cluster: None,
        identity: None,
        boot: 1,
        machine: String::new(),
        streams: vec![Declared { stream: STREAM.into(), tables: all() }],
        spool: SpoolLimits::STANDARD,
        catch_up: None,
    };
    let target = Target { authority: address, prefix: String::new(), roots: None, token: None };
    let sender = Uplink::start(target, options, None).unwrap();
    // One that the debuginfod has, and one that it has not.
    for of in [&*build_id, "0123456789012345678901234567890123456789"] {
        let mut packer = Packer::new(mappings::schema());
        let host = packer.symbol("node001");
        let batch = packer.batch();
        batch.begin_row(1_795_294_799_000_000_000);
        batch.put(mappings::HOST, host);
        batch.put(mappings::PID, 7);
        batch.put(mappings::PATH, "/gone/program");
        batch.put(mappings::BUILD_ID, of);
        sender.offer(STREAM, packer.pack().unwrap()).unwrap();
    }
    let deadline = WallTime::now() + PATIENCE;
    let told = loop {
        let told = told(&taking);
        if !told.is_empty() {
            break told;
        }
        assert!(WallTime::now() < deadline, "the debuginfod's functions are not there");
        std::thread::park_timeout(LOOK_EVERY);
    };
    for (name, offset) in expected {
        let found = told.get(&(build_id.clone(), name.clone()));
        assert_eq!(found, Some(&(offset, "debuginfod".to_owned())), "{name} in {told:?}");
    }
    assert!(told.keys().all(|(of, _)| *of == build_id), "{told:?}");
    assert!(sender.finish(PATIENCE).is_delivered());
    running.stop();
}
