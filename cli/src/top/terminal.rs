//! The thin shell: the terminal in raw mode, its events, signals, repaints.
//!
//! Whatever happens, the terminal is given back as it was: on quitting, on an error, on a panic,
//! on `SIGTERM`, `SIGINT` and `SIGHUP`, and while suspended, by Ctrl+Z or by `SIGTSTP`.

use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use meikyo_console::failure::{Answer, Failure};
use meikyo_units::{Nanos, WallTime};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::afar::CATCHES;
use super::clusters::gather::Gathering;
use super::clusters::{Location, Overview, OverviewWish};
use super::draw::clusters::draw as draw_clusters;
use super::draw::draw;
use super::palette::Palette;
use super::screen::{Fed, Wish};
use super::session::Session;

/// How long the end may take after a signal has asked for it.
const LONGEST_END: Duration = Duration::from_secs(1);

/// The longest wait for a key before signals are looked at.
const PATIENCE: Duration = Duration::from_millis(100);

type Screenful = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

/// The terminal while it is ours; gives it back when dropped.
struct Taken;

impl Taken {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        // From here on dropping gives it back, also when the rest fails.
        let taken = Self;
        execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    // A terminal that is gone needs nothing.
    drop(execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show));
    drop(disable_raw_mode());
    drop(io::stdout().flush());
}

/// What signals have asked for.
#[derive(Debug, Default)]
struct Asked {
    to_end: Arc<AtomicBool>,
    to_stop: Arc<AtomicBool>,
}

impl Asked {
    fn listen() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
        let asked = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&asked.to_end))?;
        }
        signal_hook::flag::register(SIGTSTP, Arc::clone(&asked.to_stop))?;
        let to_end = Arc::clone(&asked.to_end);
        std::thread::Builder::new().name("end".to_owned()).spawn(move || end_at_last(&to_end))?;
        Ok(asked)
    }

    fn to_end(&self) -> bool {
        self.to_end.load(Ordering::Relaxed)
    }

    /// Whether it was asked to stop since the last time.
    fn to_stop(&self) -> bool {
        self.to_stop.swap(false, Ordering::Relaxed)
    }
}

/// Ends the program where it was told to end, or has lost its terminal, and goes on: reading keys from
/// a terminal that has gone never returns, and the signal of it goes to the shell alone.
fn end_at_last(to_end: &AtomicBool) {
    loop {
        std::thread::park_timeout(LONGEST_END);
        if to_end.load(Ordering::Relaxed) || !io::stdout().is_terminal() {
            std::thread::park_timeout(LONGEST_END);
            give_back();
            drop(signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGHUP));
        }
    }
}

/// Shows a session until the person quits or a signal comes.
pub(super) fn show(mut session: Session, palette: Palette) -> Result<Answer, Failure> {
    let asked = Asked::listen()?;
    session.follow();
    in_terminal(|terminal| converse(&mut session, terminal, palette, &asked).map(drop))?;
    Ok(Answer::Yes)
}

/// Shows clusters beside each other, and each that is opened, until the person quits or a signal comes.
pub(super) fn show_clusters(
    mut overview: Overview,
    gathering: &Gathering,
    open: impl Fn(&Location) -> Result<Box<dyn Fed>, String>,
    palette: Palette,
) -> Result<Answer, Failure> {
    let asked = Asked::listen()?;
    in_terminal(|terminal| {
        while let Some(at) = browse(&mut overview, gathering, terminal, palette, &asked)? {
            match open(&at) {
                Ok(mut fed) => {
                    fed.screen().is_of_several = true;
                    if converse(&mut *fed, terminal, palette, &asked)? == Left::Quit {
                        break;
                    }
                }
                Err(text) => overview.trouble = Some(text),
            }
        }
        Ok(())
    })?;
    Ok(Answer::Yes)
}

/// Shows the clusters until one is opened, and where that is; `None` at the end.
fn browse(
    overview: &mut Overview,
    gathering: &Gathering,
    terminal: &mut Screenful,
    palette: Palette,
    asked: &Asked,
) -> io::Result<Option<Location>> {
    while !asked.to_end() {
        if let Some(found) = gathering.take() {
            overview.take(found);
        }
        terminal.draw(|frame| {
            let area = frame.area();
            draw_clusters(overview, palette, WallTime::now(), area, frame.buffer_mut());
        })?;
        if asked.to_stop() {
            suspend(terminal)?;
        }
        if !event::poll(PATIENCE)? {
            continue;
        }
        match event::read()? {
            Event::Key(key) => match overview.key(key) {
                Some(OverviewWish::Quit) => return Ok(None),
                Some(OverviewWish::Suspend) => suspend(terminal)?,
                Some(OverviewWish::Open(at)) => return Ok(Some(at)),
                None => {}
            },
            Event::Resize(..) => *terminal = emptied()?,
            Event::Mouse(_) | Event::FocusGained | Event::FocusLost | Event::Paste(_) => {}
        }
    }
    Ok(None)
}

/// How a view was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Quit,
    /// For the clusters that it is one of.
    Back,
}

/// Does something with the terminal in raw mode, and gives it back however that ends.
fn in_terminal(work: impl FnOnce(&mut Screenful) -> io::Result<()>) -> io::Result<()> {
    let _taken = Taken::take()?;
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // What a thread catches by itself is no end of the view.
        if std::thread::current().name().is_some_and(|name| name.starts_with(CATCHES)) {
            return;
        }
        // What the panic says would be gone with the other screen.
        give_back();
        tell(panic);
    }));
    work(&mut emptied()?)
}

/// The screen with nothing on it, of the size that it has now.
///
/// `Terminal::clear` would ask the terminal where its cursor is, and fail where no answer comes
/// within 2 s, as over a slow line.
fn emptied() -> io::Result<Screenful> {
    execute!(io::stdout(), Clear(ClearType::All))?;
    let output = BufWriter::with_capacity(1 << 16, io::stdout());
    Terminal::new(CrosstermBackend::new(output))
}

/// Repaints and answers keys until it is the end.
fn converse(
    fed: &mut dyn Fed,
    terminal: &mut Screenful,
    palette: Palette,
    asked: &Asked,
) -> io::Result<Left> {
    while !asked.to_end() {
        let begun = WallTime::now();
        fed.tick(begun);
        paint(fed, terminal, palette)?;
        let due = begun + fed.screen().every;
        loop {
            let left = due.since(WallTime::now());
            if left == Nanos::ZERO || asked.to_end() {
                break;
            }
            if asked.to_stop() {
                suspend(terminal)?;
                break;
            }
            if !event::poll(left.to_std().min(PATIENCE))? {
                continue;
            }
            match answer(fed, terminal)? {
                Some(Wish::Quit) => return Ok(Left::Quit),
                Some(Wish::Back) => return Ok(Left::Back),
                Some(Wish::Suspend) => {
                    suspend(terminal)?;
                    break;
                }
                Some(wish) => fed.carry_out(wish),
                None => {}
            }
            paint(fed, terminal, palette)?;
        }
    }
    Ok(Left::Quit)
}

fn paint(fed: &mut dyn Fed, terminal: &mut Screenful, palette: Palette) -> io::Result<()> {
    let clock = fed.clock(WallTime::now());
    terminal.draw(|frame| {
        let area = frame.area();
        draw(fed.screen(), palette, clock, area, frame.buffer_mut());
    })?;
    Ok(())
}

/// Takes one event.
fn answer(fed: &mut dyn Fed, terminal: &mut Screenful) -> io::Result<Option<Wish>> {
    let event = event::read()?;
    let clock = fed.clock(WallTime::now());
    match event {
        Event::Key(key) => return Ok(fed.screen().key(key, clock)),
        Event::Mouse(mouse) => fed.screen().mouse(mouse, clock),
        Event::Resize(..) => *terminal = emptied()?,
        Event::FocusGained | Event::FocusLost | Event::Paste(_) => {}
    }
    Ok(None)
}

/// Stops as a job of the shell, and takes the terminal again when it goes on.
fn suspend(terminal: &mut Screenful) -> io::Result<()> {
    give_back();
    signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture)?;
    *terminal = emptied()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Set where the test runs once more, in a terminal that `script` of util-linux makes.
    const IN_TERMINAL: &str = "MEIKYO_TEST_IN_TERMINAL";

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test runs in a terminal of its own")]
    fn a_panic_is_told_in_the_terminal_as_it_was_before() {
        if std::env::var_os(IN_TERMINAL).is_some() {
            in_terminal(|_| panic!("nothing can be shown")).unwrap();
        }
        let again = format!(
            "stty -g; {} --nocapture --exact top::terminal::tests::{}; stty -g",
            std::env::current_exe().unwrap().display(),
            "a_panic_is_told_in_the_terminal_as_it_was_before",
        );
        let mut script = Command::new("script")
            .args(["--quiet", "--command", &again, "/dev/null"])
            .env(IN_TERMINAL, "yes")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Held open: without keys to come `script` would press Ctrl+D.
        let _keys = script.stdin.take();
        let output = String::from_utf8(script.wait_with_output().unwrap().stdout).unwrap();
        let (before, after) = (output.lines().next(), output.lines().last());
        assert!(before.is_some_and(|before| before.contains(':')), "{output:?}");
        assert_eq!(before, after, "{output:?}");
        // Only a terminal that is not raw begins a line where it writes a line feed.
        let (shown, _) = output.split_once("nothing can be shown\r\n").expect(&output);
        let (_, shown) = shown.split_once("\u{1b}[?1049h").expect(&output);
        let (_, restored) = shown.split_once("\u{1b}[?1049l").expect(&output);
        assert!(restored.contains("\u{1b}[?25h"), "{output:?}");
    }
}
