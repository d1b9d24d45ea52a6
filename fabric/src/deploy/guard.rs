//! What happens when the session to a switch is lost during a step.

use super::StepTexts;
use crate::dialect::Dialect;

/// How a switch of the dialect is brought back when the session is lost during a step.
pub fn lost_session(dialect: Dialect) -> &'static str {
    if dialect.has_shell() {
        "the step takes itself back unless it is confirmed in time"
    } else {
        "the switch has no timer of its own: nothing is saved before the last step, so switching it \
         off and on, by hand or by a power outlet with a timer, brings back the settings that it had"
    }
}

/// A script that carries out a step on a Linux machine, and takes it back unless a file appears in
/// time: `NAME.sh` and `NAME.rollback.sh` lie beside it. Nobody needs to be logged in for that.
///
/// The step and its roll-back do not overlap (`flock`), and the timer of an earlier attempt ends
/// when the next one begins.
pub fn guarded_script(name: &str, seconds: u32) -> String {
    format!(
        "#!/bin/sh\n\
         # Carries out {name}.sh, and takes it back in {seconds} s unless it is confirmed by\n\
         #   touch {name}.confirmed\n\
         cd \"$(dirname \"$0\")\" || exit 2\n\
         [ ! -e {name}.timer ] || kill -- \"-$(cat {name}.timer)\" 2>/dev/null\n\
         rm -f {name}.confirmed {name}.timer\n\
         setsid sh -c 'echo $$ >{name}.timer; sleep {seconds}; [ -e {name}.confirmed ] ||\n    \
             flock {name}.lock sh {name}.rollback.sh' </dev/null >{name}.rollback.log 2>&1 &\n\
         flock {name}.lock sh {name}.sh && exit 0\n\
         touch {name}.confirmed\n\
         flock {name}.lock sh {name}.rollback.sh\n\
         exit 1\n"
    )
}

/// A script that a Linux machine is sent whole: it puts the files of a step into `directory`, and
/// carries the step out under the guard of [`guarded_script`]. It is to be confirmed over a session of
/// its own, by [`confirmation`]: that there can be one is what is to be found out.
pub fn guarded_delivery(directory: &str, name: &str, seconds: u32, texts: &StepTexts) -> String {
    let guarded = guarded_script(name, seconds);
    let mut script = format!("set -e\nmkdir -p {directory}\ncd {directory}\n");
    for (ending, text) in
        [("sh", &texts.apply), ("rollback.sh", &texts.roll_back), ("guarded.sh", &guarded)]
    {
        script += &format!("cat >{name}.{ending} <<'STEP'\n{text}STEP\n");
    }
    script + &format!("exec sh ./{name}.guarded.sh\n")
}

/// What confirms a step that [`guarded_delivery`] carried out.
pub fn confirmation(directory: &str, name: &str) -> String {
    format!("touch {directory}/{name}.confirmed\n")
}
