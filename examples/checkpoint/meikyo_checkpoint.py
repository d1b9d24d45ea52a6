"""libmeikyo_checkpoint for Python; include/meikyo_checkpoint.h says what the functions do.

Arrays are NumPy arrays, or anything else with the buffer protocol that is writable and contiguous (array.array,
bytearray). They stay where they are: an array is changed in place, not replaced.

    checkpoint = Checkpoint(rank, ranks)
    checkpoint.protect("temperature", temperature, whole=(rows, columns), first=(begin, 0))
    step = checkpoint.restore() or 0
"""

import collections
import ctypes
import os

ELEMENTS = {
    "b": "i8", "B": "u8", "h": "i16", "H": "u16", "i": "i32", "I": "u32", "l": "i64", "L": "u64",
    "q": "i64", "Q": "u64", "f": "f32", "d": "f64", "Zf": "c64", "Zd": "c128",
}


Cost = collections.namedtuple("Cost", "stop_seconds ahead_bytes residue_bytes keeps_copy")


class CheckpointError(Exception):
    """A call of the library failed; the text says why."""


class Checkpoint:
    def __init__(self, rank=-1, ranks=-1, ranks_here=-1, directory=None):
        library = os.environ.get("MEIKYO_CHECKPOINT_LIBRARY", "libmeikyo_checkpoint.so")
        self._calls = ctypes.CDLL(library)
        self._calls.meikyo_checkpoint_error.restype = ctypes.c_char_p
        self._calls.meikyo_checkpoint_finalize.restype = None
        self._handle = ctypes.c_void_p()
        self._views = []
        path = None if directory is None else os.fsencode(directory)
        self._call("init", path, rank, ranks, ranks_here, ctypes.byref(self._handle), joined=False)

    def _call(self, name, *arguments, joined=True):
        handle = (self._handle,) if joined else ()
        outcome = getattr(self._calls, f"meikyo_checkpoint_{name}")(*handle, *arguments)
        if outcome < 0:
            raise CheckpointError(self._calls.meikyo_checkpoint_error().decode())
        return outcome

    def protect(self, name, array, whole=None, first=None):
        """Names an array, which must stay in its place until `close`."""
        view = memoryview(array)
        if view.readonly or not view.c_contiguous:
            raise CheckpointError(f"the array `{name}` is read-only or not contiguous")
        element = ELEMENTS.get(view.format.lstrip("@=<"))
        if element is None:
            raise CheckpointError(f"the array `{name}` has elements of another kind than numbers: {view.format}")
        # Holding the buffer keeps the array from being moved or resized.
        data = (ctypes.c_char * view.nbytes).from_buffer(view)
        self._views.append((view, data))
        numbers = [None if some is None else (ctypes.c_uint64 * len(some))(*some)
                   for some in (view.shape, whole, first)]
        self._call("protect", name.encode(), ctypes.byref(data), element.encode(), len(view.shape), *numbers)

    def file(self, path):
        self._call("file", os.fsencode(path))

    def due(self):
        return self._call("due") == 1

    def should_exit(self):
        return self._call("should_exit") == 1

    def save(self, step):
        self._call("save", ctypes.c_uint64(step))

    def cost(self):
        """What the last save cost: seconds that all threads stood still, octets copied before and meanwhile (both 0
        where no copy is kept), and whether one is."""
        seconds, ahead, residue = ctypes.c_double(), ctypes.c_uint64(), ctypes.c_uint64()
        kept = self._call("cost", ctypes.byref(seconds), ctypes.byref(ahead), ctypes.byref(residue))
        return Cost(seconds.value, ahead.value, residue.value, kept == 1)

    def restore(self):
        """Fills all arrays; the step that they are of, or None where there is no checkpoint."""
        step = ctypes.c_uint64()
        return step.value if self._call("restore", ctypes.byref(step)) == 1 else None

    def close(self):
        self._calls.meikyo_checkpoint_finalize(self._handle)
        self._handle = ctypes.c_void_p()
        self._views.clear()
