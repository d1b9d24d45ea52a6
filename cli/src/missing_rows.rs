//! Telling a person that rows may be missing from what he got.

use meikyo_console::failure::Answer;
use meikyo_console::output;
use meikyo_recording::read::Problem;

/// Tells what is wrong with a recording; the answer is no when anything is.
pub(crate) fn tell(problems: &[Problem]) -> Answer {
    let texts = problems.iter();
    tell_texts(texts.map(|problem| format!("`{}`: {}", problem.path.display(), problem.what)))
}

/// As [`tell`], of problems in words.
pub(crate) fn tell_texts(problems: impl IntoIterator<Item = String>) -> Answer {
    let mut answer = Answer::Yes;
    for problem in problems {
        output::say(&format!("meikyo: {problem}; rows may be missing"));
        answer = Answer::No;
    }
    answer
}
