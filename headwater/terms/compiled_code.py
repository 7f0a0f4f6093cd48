"""`compiled`: numba's decorator for the package's functions, with a cache on disk that is never stale.

numba's own cache compiles a function again when its own file has changed. It does not see that a function which this
one calls, from another file, has become another one. So the cache here belongs to all sources that compiled code can be
made of (`SOURCE_FOLDERS`): when one of them changes, every function is compiled again and overwrites its old code.

Compiled code lies in the first of these folders that can be written; without one, nothing is kept:

1. `$HEADWATER_COMPILED_CODE`, then `$NUMBA_CACHE_DIR`, if they are set
2. `__pycache__` beside the source
3. `headwater` in the user's cache folder, `$XDG_CACHE_HOME` or `~/.cache`

Importing a module compiles and writes nothing: a function opens its cache when it is called for the first time.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from inspect import getfile
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import numba as nb
from numba.core import caching, config, event, serialize, types
from numba.core.dispatcher import Dispatcher
from numba.extending import is_jitted

from headwater.terms.durable_files import Sync, replace_file

FOLDER_SETTING = "HEADWATER_COMPILED_CODE"
SOURCE_FOLDERS = tuple(Path(__file__).resolve().parents[1] / room for room in ("terms", "kernel", "datasets"))
"""Where functions are compiled, and where the constants come from that are compiled into them."""

_Function = TypeVar("_Function", bound=Callable[..., object])
_DIGEST_BYTES = 16
_UNREADABLE = (OSError, EOFError, pickle.UnpicklingError, ValueError, LookupError, AttributeError, ImportError)
_dumps: Any = serialize.dumps
_numba_settings: Any = config
_IMPORTED_AT = time.time_ns()
_SILENT_SECONDS = 2.0

logger = logging.getLogger(__name__)


@overload
def compiled(function: _Function, /) -> Dispatcher[_Function]: ...


@overload
def compiled(*, inline: Literal["always"]) -> Callable[[_Function], Dispatcher[_Function]]: ...


@overload
def compiled(*, nogil: Literal[True]) -> Callable[[_Function], Dispatcher[_Function]]: ...


@overload
def compiled(*, makes_arrays: Literal[True]) -> Callable[[_Function], Dispatcher[_Function]]: ...


def compiled(function: Any = None, /, *, makes_arrays: bool = False, **options: Any) -> Any:
    """Have numba compile a function when it is first called, or load it from the cache.

    `inline="always"` has numba put the function's code into its callers. With `nogil` other threads run meanwhile.

    numba counts references to the arrays that a function has, again and again in its loops, which can take most of its
    time. It need not where all arrays are the caller's. A function that makes or gives arrays, or calls one that does,
    must say so (`makes_arrays`), and had better leave its loops to others that do not.
    """
    # The option is numba's own, and not in its types.
    options["_nrt"] = makes_arrays
    return partial(_compile, options) if function is None else _compile(options, function)


def _compile(options: dict[str, Any], function: Any) -> Any:
    dispatcher: Any = nb.njit(**options)(function)
    COMPILATIONS.functions += "inline" not in options
    can_compile = is_jitted(dispatcher)  # not with NUMBA_DISABLE_JIT: then it is the function itself
    if can_compile:
        dispatcher._cache = _CacheOnFirstUse(dispatcher)
    return dispatcher


class _CacheOnFirstUse(caching.NullCache):
    """The cache of a function that was not called yet: it opens the cache on disk and gives it its place."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        function = self._dispatcher.py_func
        is_kept = _Locator.from_function(function, getfile(function)) is not None
        makes_arrays = self._dispatcher.targetoptions["_nrt"]
        self._dispatcher._cache = _open_cache(function, makes_arrays) if is_kept else caching.NullCache()
        return self._dispatcher._cache.load_overload(sig, target_context)


class _Locator(caching._CacheLocator):
    """Where the compiled code of a function lies, and from which sources it was made."""

    def __init__(self, function: Any, source: Path, folder: Path) -> None:
        self._function, self._source, self._folder = function, source, folder

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator | None:
        source = Path(py_file)
        folder = _choose_folder(source.parent) if source.is_file() and _sources_digest() is not None else None
        return None if folder is None else cls(py_func, source, folder)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> tuple[bytes, bytes | None]:
        return hashlib.blake2b(self._source.read_bytes()).digest(), _sources_digest()

    def get_disambiguator(self) -> str:
        return str(self._function.__code__.co_firstlineno)


class _CacheFiles(caching.CompileResultCacheImpl):
    _locator_classes: list[Any] = [_Locator]  # noqa: RUF012 (as numba declares it)


@dataclass
class Compilations:
    """How many functions this process has, how many it began to compile and has compiled; and when it was compiling.

    `functions` and `compiled` count functions; `begun` and `done` count each for every type of its arguments.
    """

    functions: int = 0
    compiled: int = 0
    begun: int = 0
    done: int = 0
    is_told: bool = False
    """Whether somebody was told, or tells it in a way of their own."""
    periods: list[tuple[float, float]] = field(default_factory=list)
    """From when to when something was compiled, by the monotonic clock."""
    period_begin: float | None = None
    """Since when something is being compiled."""

    @property
    def is_at_work(self) -> bool:
        """Whether something is being compiled just now."""
        return self.begun > self.done

    def seconds_since(self, instant: float) -> float:
        """How many seconds something was compiled since an instant of the monotonic clock."""
        now = time.monotonic()
        periods = [*self.periods, (now if self.period_begin is None else self.period_begin, now)]
        return sum(max(0.0, end - max(begin, instant)) for begin, end in periods)

    def text(self) -> str:
        """How far it is: which functions a query needs is not known before."""
        return f"compiling, at the first use only: {self.compiled:,} of up to {self.functions:,} functions"

    def tell(self, folder: str) -> None:
        """Say it once, when it takes a while; who calls the package from Python sees no line of progress."""
        if not self.is_told and self.seconds_since(0.0) > _SILENT_SECONDS:
            self.is_told = True
            logger.warning("%s; their code is kept, here in %s", self.text(), folder)


COMPILATIONS = Compilations()


class CompiledFiles:
    """The files of one function in a folder: one for each version of the sources, `stamp`, and types of the arguments.

    numba numbers the files of a function and keeps the numbers in an index. Two processes that compile the function for
    other types at the same time can take the same number: then a later process finds the code of the wrong types, and
    fails where these cannot be converted. Here the name of a file follows from what is in it, so processes that write
    at the same time write other files, or the same.
    """

    def __init__(self, folder: Path, name: str, stamp: object) -> None:
        self._folder = folder
        self._name = name
        self._version = _digest(repr((nb.__version__, stamp)).encode()).hex()

    def load(self, key: Any) -> Any:
        """What was saved under a key; None where nothing was, or where it is damaged."""
        with suppress(*_UNREADABLE):
            content = self._path(key).read_bytes()
            digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
            if digest == _digest(data):
                found_key, found = pickle.loads(data)
                return found if found_key == key else None
        return None

    def save(self, key: Any, data: Any) -> None:
        """Save something under a key; where the disk does not take it, nothing is kept."""
        content = _dumps((key, data))
        with suppress(OSError):
            replace_file(self._path(key), _digest(content) + content, sync=Sync.NOTHING, is_shared=True)
        self._remove_other_versions()

    def flush(self) -> None:
        """Remove the files of the function."""
        for path in self._files():
            with suppress(OSError):
                path.unlink()

    def _path(self, key: Any) -> Path:
        signature, *rest = key
        digest = _digest(repr((str(signature), rest)).encode()).hex()
        return self._folder / f"{self._name}.{self._version}.{digest}.nbc"

    def _files(self) -> Iterator[Path]:
        """The files of the function, without those that are being written."""
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.name.startswith(f"{self._name}.") and path.suffix in (".nbc", ".nbi"):
                    yield path

    def _remove_other_versions(self) -> None:
        for path in self._files():
            if not path.name.startswith(f"{self._name}.{self._version}."):
                with suppress(OSError):
                    path.unlink()


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


_Listener: Any = event.Listener


class _PeriodListener(_Listener):  # type: ignore[misc]
    """Notes when numba compiles functions or loads compiled ones, or waits for another thread that does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0

    def on_start(self, _: object) -> None:
        with self._lock:
            if not self._depth:
                COMPILATIONS.period_begin = time.monotonic()
            self._depth += 1

    def on_end(self, _: object) -> None:
        with self._lock:
            self._depth -= 1
            begin = COMPILATIONS.period_begin
            if not self._depth and begin is not None:
                COMPILATIONS.periods.append((begin, time.monotonic()))
                COMPILATIONS.period_begin = None


_register: Any = event.register
_register("numba:compiler_lock", _PeriodListener())


_FunctionCache: Any = caching.FunctionCache


class _SourceCache(_FunctionCache):  # type: ignore[misc]
    _impl_class = _CacheFiles
    _is_counted = False

    def __init__(self, function: Any, makes_arrays: bool) -> None:
        super().__init__(function)
        self.makes_arrays = makes_arrays
        # Not numba's own files, which processes that write at the same time mix up.
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = CompiledFiles(Path(self._cache_path), self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        COMPILATIONS.begun += found is None
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self.makes_arrays:
            _refuse_uncounted_arrays(data)
        COMPILATIONS.done += 1
        COMPILATIONS.compiled += not self._is_counted
        self._is_counted = True
        super().save_overload(sig, data)
        COMPILATIONS.tell(self.cache_path)


def _refuse_uncounted_arrays(compilation: Any) -> None:
    """Refuse a function that gives arrays or gets some from another one, and does not count references to them."""
    kinds, calls = compilation.type_annotation.typemap, compilation.type_annotation.calltypes.items()
    given = [compilation.signature.return_type]
    for expression, signature in calls:
        function = kinds.get(expression.func.name) if getattr(expression, "op", "") == "call" else None
        if isinstance(function, types.Dispatcher):
            given.append(signature.return_type)
    if any(isinstance(part, types.Array) for one in given for part in (one, *getattr(one, "types", ()))):
        name = compilation.type_annotation.func_id.func_qualname
        raise TypeError(f"{name} gives arrays, or gets some from another function: use @compiled(makes_arrays=True)")


_open_cache: Any = _SourceCache


def code_folder(sources: Path) -> Path | None:
    """Where the code of the functions of a folder of sources lies; None where it is not kept."""
    return _choose_folder(sources) if _sources_digest() is not None else None


@cache
def _choose_folder(beside: Path) -> Path | None:
    """The first folder that can be written, for the functions of a folder of sources."""
    # One folder serves several installations: each has a folder in it that is named after its place.
    own = f"{beside.name}_{hashlib.blake2b(str(beside).encode(), digest_size=16).hexdigest()}"
    given = (os.environ.get(FOLDER_SETTING), _numba_settings.CACHE_DIR)
    folders = [Path(folder) / own for folder in given if folder]
    folders.append(beside / "__pycache__")
    with suppress(RuntimeError):  # of a user without a home
        folders.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater" / own)
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


@cache
def _sources_digest() -> bytes | None:
    """A hash of all sources; None where one was changed after the process began to import them.

    What such a process compiles may come from the sources as they were before. It must not be kept as the code of the
    sources as they are now.
    """
    digest = hashlib.blake2b()
    for folder in SOURCE_FOLDERS:
        for source in sorted(folder.rglob("*.py")):
            if source.stat().st_mtime_ns > _IMPORTED_AT:
                return None
            digest.update(f"{source.relative_to(folder)}\n".encode())
            digest.update(source.read_bytes())
    return digest.digest()
