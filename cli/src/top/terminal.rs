//! The thin shell: the terminal in raw mode, its events, signals, repaints.
//!
//! Whatever happens, the terminal is given back as it was: on quitting, on an error, on a panic,
//! on `SIGTERM`, `SIGINT` and `SIGHUP`, and while suspended.

use std::io::{self, BufWriter, Stdout, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use meikyo_units::{Nanos, WallTime};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::draw::draw;
use super::palette::Palette;
use super::screen::Wish;
use super::session::Session;
use crate::failure::{Answer, Failure};

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

/// Shows a session until the person quits or a signal comes.
pub(super) fn show(mut session: Session, palette: Palette) -> Result<Answer, Failure> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in
        [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
    {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    session.follow();
    let taken = Taken::take()?;
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        tell(panic);
    }));
    let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, io::stdout()));
    let mut terminal = Terminal::new(backend)?;
    let outcome = converse(&mut session, &mut terminal, palette, &ended);
    drop(taken);
    outcome?;
    Ok(Answer::Yes)
}

/// Repaints and answers keys until it is the end.
fn converse(
    session: &mut Session,
    terminal: &mut Screenful,
    palette: Palette,
    ended: &AtomicBool,
) -> io::Result<()> {
    while !ended.load(Ordering::Relaxed) {
        let begun = WallTime::now();
        session.tick(begun);
        paint(session, terminal, palette)?;
        let due = begun + session.screen.every;
        loop {
            let left = due.since(WallTime::now());
            if left == Nanos::ZERO || ended.load(Ordering::Relaxed) {
                break;
            }
            if !event::poll(left.to_std().min(PATIENCE))? {
                continue;
            }
            match answer(session, terminal)? {
                Some(Wish::Quit) => return Ok(()),
                Some(Wish::Suspend) => {
                    suspend(terminal)?;
                    break;
                }
                Some(wish) => session.carry_out(wish),
                None => {}
            }
            paint(session, terminal, palette)?;
        }
    }
    Ok(())
}

fn paint(session: &mut Session, terminal: &mut Screenful, palette: Palette) -> io::Result<()> {
    let clock = WallTime::now();
    terminal.draw(|frame| {
        let area = frame.area();
        draw(&mut session.screen, palette, clock, area, frame.buffer_mut());
    })?;
    Ok(())
}

/// Takes one event.
fn answer(session: &mut Session, terminal: &mut Screenful) -> io::Result<Option<Wish>> {
    let clock = WallTime::now();
    match event::read()? {
        Event::Key(key) => return Ok(session.screen.key(key, clock)),
        Event::Mouse(mouse) => session.screen.mouse(mouse, clock),
        Event::Resize(..) => terminal.autoresize()?,
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
    terminal.clear()
}
