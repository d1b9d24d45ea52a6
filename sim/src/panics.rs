//! Panics of handlers: caught, with the place where they happened, and quiet while that is speculation.
//!
//! A speculative event may meet a state that no event of the sequential order ever meets, and a handler
//! that asserts something then panics, before the event is rolled back as if it had never been. Only the
//! panic of an event that is committed says something about the model, and a run tells that one in its
//! error. The process's panic hook is therefore wrapped once: on a thread that speculates it stays
//! silent, and everywhere else it calls the hook that was there before.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use crate::fault::Problem;

/// What the thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// Nothing that a run would catch.
    Nothing,
    /// An event that is committed: the hook that was there before prints its panic as always.
    Committed,
    /// An event that may be rolled back: its panic is silent.
    Speculative,
}

thread_local! {
    static HANDLING: Cell<Handling> = const { Cell::new(Handling::Nothing) };
    /// Where the last panic of a handler happened.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

static WRAPPED: Once = Once::new();

/// Wraps the panic hook, the first time that this is called.
pub(crate) fn wrap_hook() {
    // A thread that panics may not change the hook.
    if std::thread::panicking() {
        return;
    }
    WRAPPED.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let handling = HANDLING.get();
            if handling != Handling::Nothing {
                let place = info.location().map(ToString::to_string);
                PLACE.with_borrow_mut(|last| *last = place);
            }
            if handling != Handling::Speculative {
                former(info);
            }
        }));
    });
}

/// Restores what the thread did before, also when it unwinds.
struct Restored(Handling);

impl Drop for Restored {
    fn drop(&mut self) {
        HANDLING.set(self.0);
    }
}

/// Calls `call`, and has the panic hook know for as long that the thread is `handling` an event.
pub(crate) fn during<T>(handling: Handling, call: impl FnOnce() -> T) -> T {
    let _restored = Restored(HANDLING.replace(handling));
    call()
}

/// Calls `call` as `handling`, and gives its panic as a problem.
///
/// What `call` was changing when it panicked must not be relied upon.
pub(crate) fn caught<T>(handling: Handling, call: impl FnOnce() -> T) -> Result<T, Problem> {
    during(handling, || catch_unwind(AssertUnwindSafe(call))).map_err(|payload| {
        let place = PLACE.with_borrow_mut(Option::take);
        Problem::Panicked { place, message: message(payload.as_ref()) }
    })
}

/// The message of a panic, where it is a text.
fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".to_owned())
}
