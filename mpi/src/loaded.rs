//! The library of the ranks in memory: the functions of `ranks.c`.
#![expect(unsafe_code, reason = "a library is loaded and called")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::failure::JoinError;

type Join = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type Leave = unsafe extern "C" fn();
type Abort = unsafe extern "C" fn(c_int);
type AmongFirst = unsafe extern "C" fn(c_int, *mut i64) -> c_int;
type Free = unsafe extern "C" fn(i64);
type AllGather = unsafe extern "C" fn(i64, *const u64, *mut u64, c_int);
type Exchange =
    unsafe extern "C" fn(i64, c_int, *const *const u8, *const u64, *const *mut u8, *const u64);

/// What `ranks.c` holds, under the same names. It stays loaded until the process ends.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) join: Join,
    pub(crate) leave: Leave,
    pub(crate) abort: Abort,
    pub(crate) among_first: AmongFirst,
    pub(crate) free: Free,
    pub(crate) all_gather: AllGather,
    pub(crate) exchange: Exchange,
}

impl Loaded {
    /// Loads a library that was built of `ranks.c`.
    pub(crate) fn open(path: &Path) -> Result<Self, JoinError> {
        let not_loaded = || JoinError::NotLoaded { path: path.to_owned(), said: last_error() };
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| not_loaded())?;
        // Parts that Open MPI loads later look for its own names among those that all can see.
        // SAFETY: the name is a text that ends with a zero. What runs while it is loaded is what MPI does
        // for every program that is linked with it.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if library.is_null() {
            return Err(not_loaded());
        }
        let function = |name: &CStr| {
            // SAFETY: the library stays loaded, and the name ends with a zero.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            if found.is_null() { Err(not_loaded()) } else { Ok(found) }
        };
        macro_rules! function {
            ($name:literal: $type:ty) => {
                // SAFETY: `ranks.c` declares it with these arguments, in the calling convention of C.
                unsafe { std::mem::transmute::<*mut c_void, $type>(function($name)?) }
            };
        }
        Ok(Self {
            join: function!(c"meikyo_join": Join),
            leave: function!(c"meikyo_leave": Leave),
            abort: function!(c"meikyo_abort": Abort),
            among_first: function!(c"meikyo_among_first": AmongFirst),
            free: function!(c"meikyo_free": Free),
            all_gather: function!(c"meikyo_all_gather": AllGather),
            exchange: function!(c"meikyo_exchange": Exchange),
        })
    }
}

/// What the loader says of what went wrong last.
fn last_error() -> String {
    // SAFETY: it has no precondition.
    let said: *mut c_char = unsafe { libc::dlerror() };
    if said.is_null() {
        return "its path is no text".to_owned();
    }
    // SAFETY: the text is the loader's, ends with a zero, and stays until this thread asks it again.
    unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
}
