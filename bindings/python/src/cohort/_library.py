# SPDX-License-Identifier: Apache-2.0
"""The C interface as Python functions that raise, conversion of arguments and results, and the lifetimes of handles and
callbacks.

Calls release Python's global lock. Each object has its own lock, held while a call works on it, so that two threads
that use one object wait for each other and others do not.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import threading
import weakref
from collections import deque
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p, create_string_buffer
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Type,
    TypeVar,
)

from . import _abi
from ._abi_functions import FUNCTIONS
from .errors import CLASSES, CohortError, InternalError, InvalidArgumentError, OutOfMemoryError, StateError

# ---- the library -----------------------------------------------------------------------------------------------------

_SONAME = f"libcohort.so.{_abi.SOVERSION}"


def _candidates() -> List[str]:
    """The library's path: from COHORT_LIB, in this package, or on the linker's path."""
    place = os.environ.get("COHORT_LIB")
    if place:
        return [os.path.join(place, "libcohort.so") if os.path.isdir(place) else place]
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_lib", _SONAME)
    return ([inside] if os.path.exists(inside) else []) + [_SONAME]


def _load() -> Tuple[ctypes.CDLL, str]:
    reasons = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path), path
        except OSError as error:
            reasons.append(f"{path}: {error}")
    raise ImportError(
        "libcohort cannot be loaded; COHORT_LIB may name it or the folder it is in. Tried " + "; ".join(reasons)
    )


_library, PATH = _load()


class _Thread(threading.local):
    """State of a thread that is inside a call."""

    depth = 0  # callbacks that are running, one inside another
    thrown: Optional[Tuple[int, BaseException]] = None  # a callback's exception, for the caller at that depth
    collects = False  # whether garbage is being collected, and a call made again after it


_thread = _Thread()
_throwing: Set[int] = set()  # threads that may have something in `thrown`: the others need not check
_released: Deque[Any] = deque()  # owners of memory that the library is done with; released outside its callbacks
_unfreed: Deque[Tuple[Callable[[int], None], int]] = deque()  # handles whose last use ended inside a callback


def _after_call(result: Optional[int], function: Any, arguments: Any) -> None:
    """Raises the error that a call returned or that a callback in it raised; frees what could not be freed inside the
    callback."""
    if result or _throwing or _released or _unfreed:
        _end_call(result)


def _end_call(result: Optional[int]) -> None:
    if _thread.depth == 0 and (_released or _unfreed):
        _let_go()
    thrown = _thread.thrown
    if thrown is not None and thrown[0] == _thread.depth:
        _thread.thrown = None
        _throwing.discard(threading.get_ident())
        if result:
            lib.cohort_error_free(result)
        raise thrown[1]
    if result:
        raise _error_of(result)


# Functions that create arrays, or objects with arrays.
_CREATES = {
    "cohort_arrays_load",
    "cohort_arrays_load_memory",
    "cohort_checkpoint_load",
    "cohort_executor_bind",
    "cohort_executor_reshape",
    "cohort_executor_simple_bind",
    "cohort_group_bind",
    "cohort_group_copy_params",
    "cohort_group_create",
    "cohort_group_merged",
    "cohort_group_reshape",
    "cohort_manager_create",
    "cohort_manager_merged",
    "cohort_ndarray_cast",
    "cohort_ndarray_concat",
    "cohort_ndarray_copy",
    "cohort_ndarray_empty",
    "cohort_ndarray_from_host",
    "cohort_ndarray_full",
    "cohort_ndarray_slice_axis",
    "cohort_ndarray_zeros",
    "cohort_operator_invoke",
    "cohort_tape_invoke",
}


def _after_create(result: Optional[int], function: Any, arguments: Any) -> None:
    """The same. If there was no memory, the arrays in reference cycles are freed and the call is made once more."""
    of_callback = _thread.thrown is not None and _thread.thrown[0] == _thread.depth
    try:
        _after_call(result, function, arguments)
        return
    except OutOfMemoryError:
        if _thread.collects or of_callback:  # this is the second call, or a second one would call back again
            raise
    _thread.collects = True
    try:
        gc.collect()
        function(*arguments)
    finally:
        _thread.collects = False


def _error_of(pointer: int) -> CohortError:
    code = lib.cohort_error_code(pointer)
    message = lib.cohort_error_message(pointer).decode("utf-8", "replace")
    subject = lib.cohort_error_subject(pointer).decode("utf-8", "replace")
    lib.cohort_error_free(pointer)
    return CLASSES.get(code, InternalError)(message, subject)


def _let_go() -> None:
    while _unfreed:
        try:
            free, pointer = _unfreed.popleft()
        except IndexError:
            break
        free(pointer)
    _released.clear()


class _Functions:
    """All functions of the library, by name."""

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        for name, (result, arguments) in FUNCTIONS.items():
            try:
                function = getattr(library, name)
            except AttributeError:
                raise ImportError(
                    f"{path} has no {name}: this package needs libcohort {_abi.VERSION} or later"
                ) from None
            function.restype = result
            function.argtypes = arguments
            if result is c_void_p:
                function.errcheck = _after_create if name in _CREATES else _after_call
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no function {name}")


lib = _Functions(_library, PATH)


def _check_version() -> None:
    major, minor, patch = (int(part) for part in _abi.VERSION.split("."))
    needed = major * 10000 + minor * 100 + patch
    if lib.cohort_version_number() < needed:
        found = lib.cohort_version().decode()
        raise ImportError(f"{PATH} is libcohort {found}; this package needs {_abi.VERSION} or later")


_check_version()
PATH = PATH if os.sep in PATH else _SONAME


@atexit.register
def _wait_at_the_end() -> None:
    """At exit: waits, because queued work may still read memory that Python owns."""
    try:
        lib.cohort_wait_all()
    except Exception:  # the owner of the failed work has been told
        pass


# ---- arguments -------------------------------------------------------------------------------------------------------


def to_text(value: Any, what: str) -> bytes:
    """Text as bytes in UTF-8."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{what}: expected text, found {describe(value)}", what)
    if "\0" in value:
        raise InvalidArgumentError(f"{what}: found a zero byte in it", what)
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{what}: invalid UTF-8: {error}", what) from None


def to_optional_text(value: Any, what: str) -> Optional[bytes]:
    return None if value is None else to_text(value, what)


def to_path(value: Any, what: str) -> bytes:
    try:
        path = os.fsencode(value)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{what}: expected a path, found {describe(value)} ({error})", what) from None
    if b"\0" in path:
        raise InvalidArgumentError(f"{what}: found a zero byte in it", what)
    return path


def describe(value: Any) -> str:
    """A value for a message, shortened."""
    try:
        text = repr(value)
    except Exception:
        text = "something"
    return f"{type(value).__name__} {text[:60]}"


def to_int(value: Any, what: str, low: int = -(2**63), high: int = 2**63 - 1) -> int:
    """An integer in a range; ctypes itself would truncate larger ones."""
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise InvalidArgumentError(f"{what}: expected a whole number, found {describe(value)}", what) from None
    if not low <= number <= high:
        raise InvalidArgumentError(f"{what}: expected {low} to {high}, found {number}", what)
    return int(number)


def to_size(value: Any, what: str) -> int:
    return to_int(value, what, 0, 2**63 - 1)


def to_bool(value: Any, what: str) -> int:
    """A truth value, as 1 or 0."""
    try:
        return 1 if value else 0
    except Exception as error:  # an array of several elements has no truth value
        raise InvalidArgumentError(f"{what}: expected True or False, found {describe(value)} ({error})", what) from None


def to_real(value: Any, what: str) -> float:
    if isinstance(value, (str, bytes)) or getattr(getattr(value, "dtype", None), "kind", "") == "c":
        raise InvalidArgumentError(f"{what}: expected a number, found {describe(value)}", what)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(f"{what}: expected a number, found {describe(value)}", what) from None


def to_list(value: Any, what: str) -> List[Any]:
    """A list of anything iterable but text."""
    if value is None:
        return []
    if isinstance(value, (str, bytes, Mapping)):
        raise InvalidArgumentError(f"{what}: expected a list, found {describe(value)}", what)
    try:
        return list(value)
    except TypeError:
        raise InvalidArgumentError(f"{what}: expected a list, found {describe(value)}", what) from None


def to_dict(value: Any, what: str) -> Dict[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{what}: expected a dict, found {describe(value)}", what)
    return dict(value)


def to_shape(value: Any, what: str) -> Tuple[Any, int]:
    """Lengths as a C array, and their number."""
    lengths = [value] if hasattr(value, "__index__") else to_list(value, what)
    if len(lengths) > _abi.MAX_AXES:
        raise InvalidArgumentError(f"{what}: expected at most {_abi.MAX_AXES} axes, found {len(lengths)}", what)
    numbers = [to_int(length, what) for length in lengths]
    return (c_int64 * len(numbers))(*numbers), len(numbers)


def texts(values: Iterable[Any], what: str) -> Any:
    """A list of text as a C array, which keeps the text alive. An empty one is not NULL."""
    found = [to_text(value, what) for value in to_list(values, what)]
    return (c_char_p * max(len(found), 1))(*found)


def pointers(handles: Sequence[Optional["Handle"]], what: str) -> Any:
    """A list of objects as a C array."""
    return (c_void_p * len(handles))(*(None if handle is None else handle.handle for handle in handles))


def attributes(values: Mapping[str, Any], what: str) -> Tuple[Any, Any, int]:
    """Keys, values and their number. Values of None are left out."""
    given = {key: value for key, value in to_dict(values, what).items() if value is not None}
    return texts(list(given), what), texts([attribute_text(value) for value in given.values()], what), len(given)


def attribute_text(value: Any) -> str:
    """An attribute in MXNet's spelling: (2, 2), 0.1, True, relu."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        inside = [attribute_text(item) if item is not None else "None" for item in value]
        return f"({inside[0]},)" if len(inside) == 1 else f"({', '.join(inside)})"
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, type) or hasattr(value, "kind") and hasattr(value, "name"):  # a NumPy type
        return str(getattr(value, "name", None) or value.__name__)
    raise InvalidArgumentError(f"attribute: expected text, a number or a tuple, found {describe(value)}")


# ---- what comes out --------------------------------------------------------------------------------------------------


def from_text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "replace")


def out_handle(function: Any, *arguments: Any) -> Optional[int]:
    """The handle that a call returns through its last parameter."""
    out = c_void_p()
    function(*arguments, byref(out))
    return out.value


def bytes_from(holder: Handle, function: Any) -> bytes:
    """The bytes that a call writes, which is asked for their number first."""
    size = c_size_t()
    with holder._lock:
        function(holder.handle, None, 0, byref(size))
        found = create_string_buffer(size.value)
        function(holder.handle, found, size.value, byref(size))
    return found.raw


def bytes_of(value: Any, what: str) -> Tuple[bytes, int]:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise InvalidArgumentError(f"{what}: expected bytes, found {describe(value)}", what)
    held = bytes(value)
    return held, len(held)


def out_int(function: Any, *arguments: Any) -> int:
    kind = function.argtypes[len(arguments)]._type_
    out = kind()
    function(*arguments, byref(out))
    return int(out.value)


def out_real(function: Any, *arguments: Any) -> float:
    out = c_double()
    function(*arguments, byref(out))
    return out.value


def out_text(function: Any, *arguments: Any) -> Optional[str]:
    out = c_char_p()
    function(*arguments, byref(out))
    return None if out.value is None else from_text(out.value)


def out_pair(function: Any, *arguments: Any) -> Tuple[int, int]:
    first, second = c_int64(), c_int64()
    function(*arguments, byref(first), byref(second))
    return first.value, second.value


def list_of_names(count: Any, at: Any, *arguments: Any) -> List[str]:
    return [out_text(at, *arguments, i) or "" for i in range(out_int(count, *arguments))]


# ---- callbacks -------------------------------------------------------------------------------------------------------

# Weak references: the owner of a function may itself hold the object the function is given to; both must be
# collectable.
_functions: "weakref.WeakValueDictionary[int, Numbered]" = weakref.WeakValueDictionary()
_last_id = 0
_ids = threading.Lock()
_trampolines: Dict[Any, Any] = {}


def _trampoline(kind: Any, always: bool, method: str) -> Any:
    """One C function for each kind of callback, which lives as long as the process and looks up the Python function
    by the number in user_data: no callback can reach freed memory, whatever still refers to it."""
    key = kind, method
    if key not in _trampolines:
        gives = kind._restype_ is not None

        def run(*arguments: Any) -> Any:
            callback = _functions.get(arguments[-1] or 0)
            thrown = _thread.thrown
            if callback is None or (thrown is not None and thrown[0] == _thread.depth and not always):
                return 1 if gives else None
            _thread.depth += 1
            try:
                result = getattr(callback, method)(*arguments[:-1])
                return int(result or 0) if gives else None
            except BaseException as error:  # it is raised after the library's call
                _throwing.add(threading.get_ident())
                _thread.thrown = (_thread.depth - 1, error)
                return 1 if gives else None
            finally:
                _thread.depth -= 1

        _trampolines[key] = kind(run)
    return _trampolines[key]


class Numbered:
    """An object known to the library by a number, the user_data of its callbacks, for as long as it lives."""

    def __init__(self) -> None:
        global _last_id
        with _ids:
            _last_id += 1
            self.number = _last_id
        _functions[self.number] = self

    def _entry(self, kind: Any, method: str, always: bool = False) -> Any:
        """The C function that calls a method of this object. With ``always`` it does so even while an exception of
        another callback is pending."""
        return _trampoline(kind, always, method)


class Callback(Numbered):
    """A Python function as a callback; pass ``pointer`` and ``number`` to the library. It is called for as long as
    this object lives."""

    def __init__(self, kind: Any, function: Callable[..., Any], always: bool = False) -> None:
        if not callable(function):
            raise InvalidArgumentError(f"callback: expected a function, found {describe(function)}", "callback")
        self.pointer = self._entry(kind, "function", always)
        self.function = function
        super().__init__()


def num_callbacks() -> int:
    return len(_functions)


def null(kind: Any) -> Any:
    """The null callback."""
    return kind()


def release_later(owner: Any) -> None:
    """Called by deleters, which must not call the library; releasing the owner could."""
    _released.append(owner)


# ---- handles ---------------------------------------------------------------------------------------------------------

H = TypeVar("H", bound="Handle")
_RLock: Any = type(threading.RLock())  # threading.RLock is no class


class Family(_RLock):
    """The lock of one object, or of several that share memory and may be used by one thread at a time only; and the
    callbacks that they call, which live as long as one of them."""

    __slots__ = ("callbacks",)

    def __init__(self) -> None:
        self.callbacks: List[Callback] = []


class Handle:
    """A library object. It is freed when nothing refers to it, by ``close()``, or at the end of ``with``.

    Any use of a closed object raises StateError.
    """

    _free_name = ""
    _pointer: Optional[int] = None  # NULL: closed, or not created

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            f"{type(self).__name__}: this class cannot be derived from, and its objects are created by functions"
        )

    @classmethod
    def _adopt(cls: Type[H], pointer: Optional[int], lock: Optional[Family] = None) -> H:
        made = cls.__new__(cls)
        made._start(pointer, lock)
        return made

    def _start(self, pointer: Optional[int], lock: Optional[Family] = None) -> None:
        self._pointer = pointer
        self._lock = lock or Family()

    @property
    def handle(self) -> int:
        """The address of the C object."""
        pointer = self._pointer
        if pointer is None:
            raise StateError(f"this {type(self).__name__} has been closed", type(self).__name__)
        return pointer

    @property
    def closed(self) -> bool:
        return self._pointer is None

    def _call(self, function: Any, *arguments: Any) -> Any:
        with self._lock:
            return function(self._pointer or self.handle, *arguments)

    def _out(self, read: Callable[..., Any], function: Any, *arguments: Any) -> Any:
        with self._lock:
            return read(function, self.handle, *arguments)

    def close(self) -> None:
        """Frees the object now, after waiting for a call of another thread that uses it. Closing again does nothing."""
        lock = getattr(self, "_lock", None)
        if lock is None:
            return
        with lock:
            self._free()
            self._lock = Family()  # its callbacks may be collected

    def _free(self) -> None:
        pointer, self._pointer = self._pointer, None
        if pointer is not None:
            free = getattr(lib, self._free_name)
            if _thread.depth:
                _unfreed.append((free, pointer))
            else:
                free(pointer)
                if _released or _unfreed:
                    _let_go()

    def __del__(self) -> None:
        try:
            if self._pointer is not None:
                self._free()
        except Exception:  # at interpreter exit the names used here may be gone
            pass

    def __enter__(self: H) -> H:
        self.handle
        return self

    def __exit__(self, *reason: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} cannot be pickled or copied")


@contextmanager
def held(*objects: Any) -> Iterator[None]:
    """Keeps other threads from using these objects; other values are ignored. The executor or group comes first,
    then a calibration or a metric."""
    with ExitStack() as stack:
        for one in objects:
            if isinstance(one, Handle):
                stack.enter_context(one._lock)
        yield


def handle_of(value: Any, kind: Type[Handle], what: str) -> int:
    if not isinstance(value, kind):
        raise InvalidArgumentError(f"{what}: expected {kind.__name__}, found {describe(value)}", what)
    return value.handle


def optional_handle(value: Any, kind: Type[Handle], what: str) -> Optional[int]:
    return None if value is None else handle_of(value, kind, what)


def live_handles() -> int:
    """The number of library objects that are alive in this process."""
    return int(lib.cohort_live_handles())


def wait_all() -> None:
    """Waits for all work queued so far on all devices."""
    lib.cohort_wait_all()


def version() -> str:
    """The version of the loaded library."""
    return from_text(lib.cohort_version())


def has_feature(name: str) -> bool:
    """Whether the loaded library has a feature, such as "cuda"."""
    return bool(lib.cohort_has_feature(to_text(name, "name")))


def options_of(kind: Any, init: Any) -> Any:
    """A struct of options with all defaults."""
    made = kind()
    init(byref(made), ctypes.sizeof(kind))
    return made


def reals(values: Sequence[Any], what: str) -> Any:
    return (c_double * max(len(values), 1))(*(to_real(value, what) for value in values))


def codes(values: Sequence[int]) -> Any:
    return (c_int32 * max(len(values), 1))(*values)


def sizes(values: Sequence[int]) -> Any:
    return (c_size_t * len(values))(*values)
