//! The smallest program that can be all processes of a lab: what a test, or a tool of one's own, needs
//! beside the library.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = match words.as_slice() {
        ["keeper", directory] => {
            meikyo_lab::keep(Path::new(directory)).map_err(|error| error.to_string())
        }
        // A kernel adds arguments of its own.
        ["inside", directory, ..] => {
            return ExitCode::from(meikyo_lab::be_inside(Path::new(directory)));
        }
        ["task"] => meikyo_lab::be_task(),
        ["probe"] => meikyo_lab::probe_namespaces(),
        _ => Err("this program is started by a lab".into()),
    };
    match said {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            #[expect(clippy::print_stderr, reason = "read by who started it")]
            {
                eprintln!("{text}");
            }
            ExitCode::from(2)
        }
    }
}
