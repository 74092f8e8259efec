"""Text files: plain, .gz, .bz2, .xz or .zst, standard input, or a file that is open already."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import os
import sys
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from .._files import is_stream, open_stream, replacing
from .._typing import AnyArray
from ..errors import InputError

TextSource: TypeAlias = "str | os.PathLike[str] | BinaryIO"

_MAGIC = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00", ".zst": b"\x28\xb5\x2f\xfd"}
"""The first bytes of a compressed file."""
_FORMAT = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
PACKED = tuple(_MAGIC)
"""The suffixes of compressed files."""
_STEP, _PIECE = 1 << 13, 1 << 17

MOST_TIMES, MOST_UNPACKED = 200, 1 << 28
"""A file that unpacks to more bytes than this and to this many times its size is refused; text packs 5 to 20 times."""


def without_packing(name: str) -> str:
    """Return the name of a file without the suffix of its compression.

    >>> without_packing("train.txt.gz"), without_packing("train.csv")
    ('train.txt', 'train.csv')
    """
    return name.removesuffix(Path(name).suffix) if name.lower().endswith(PACKED) else name


def text_array(words: list[str]) -> AnyArray:
    """Return words as an array of text, or of objects where a few very long ones would make all of them wide.

    >>> text_array(["a", "bc"]).dtype, text_array(["a"] * 99 + ["b" * 5000]).dtype
    (dtype('<U2'), dtype('O'))
    """
    lengths = [len(word) for word in words]
    if max(lengths, default=0) <= 32 + 4 * sum(lengths) / max(1, len(words)):
        return np.array(words, dtype=str)
    result = np.empty(len(words), dtype=object)
    result[:] = words
    return result


def name_of(path: TextSource) -> str:
    """Return what an error message calls the file."""
    if isinstance(path, ByteStream):
        return path.title
    if isinstance(path, str | os.PathLike):
        return "<stdin>" if path == "-" else os.fspath(path)
    name = getattr(path, "name", None)
    return name if isinstance(name, str) else "<stream>"


def open_bytes(path: TextSource) -> ByteStream:
    """Open a file for reading bytes: a file name, `-` for standard input, or an open binary file.

    What is compressed is seen from its first bytes, so standard input may be compressed too. A file that is missing,
    damaged or cut short raises `InputError` with one line, when it is opened or while it is read. Closing the stream
    closes only what this function opened.

    >>> with open_bytes(io.BytesIO(gzip.compress(b"1 qid:7\\n"))) as stream:
    ...     stream.readlines()
    [b'1 qid:7\\n']
    """
    name = name_of(path)
    if isinstance(path, str | os.PathLike) and path != "-":
        try:
            raw: Any = open(path, "rb", buffering=0)  # noqa: SIM115 - the stream that is returned closes it
        except (OSError, ValueError) as error:
            raise InputError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        return ByteStream(raw, name, owned=True)
    raw = _standard_input() if isinstance(path, str) else path
    if not hasattr(raw, "readinto") or isinstance(raw, io.TextIOBase):
        raise InputError(f"path must be a file name, '-' or a file opened in binary mode, got {path!r}")
    return ByteStream(raw, name, owned=False)


def _standard_input() -> Any:
    """Return standard input without Python's own buffer, whose lock a thread that waits for input would keep."""
    buffer = sys.stdin.buffer
    try:
        return open(buffer.fileno(), "rb", buffering=0, closefd=False)
    except (OSError, ValueError, AttributeError):  # replaced by something else
        return buffer


class ByteStream(io.BufferedReader):
    """Bytes of a plain or compressed file; an error while reading is an `InputError` that names the file."""

    def __init__(self, raw: Any, name: str, *, owned: bool) -> None:
        try:
            counted = _CountedFile(raw, owned)
            packed: io.BufferedReader = io.BufferedReader(counted, 1 << 16)
            with _naming(name):
                head = packed.peek(8)
            suffix = next((suffix for suffix, magic in _MAGIC.items() if head.startswith(magic)), None)
            wanted = Path(name).suffix.lower()
            if suffix is None and wanted in _MAGIC:
                raise InputError(f"{name} is no {_FORMAT[wanted]} file, though its name says so")
            plain = packed if suffix is None else _decompress(suffix, packed)
        except BaseException:
            if owned:
                raw.close()
            raise
        super().__init__(_LimitedFile(plain, packed, name, suffix, counted), 1 << 16)
        self._counted, self.title = counted, name

    def fraction(self) -> float | None:
        """How much of a file on disk has been read (of its compressed bytes), or None where that is not known."""
        try:
            size = os.fstat(self._counted.fileno()).st_size
            return min(1.0, self._counted.count / size) if size else None
        except OSError:
            return None


def _decompress(suffix: str, packed: io.BufferedReader) -> Any:
    if suffix == ".zst":
        return _zstd().ZstdFile(packed) if sys.version_info >= (3, 14) else _ZstdFile(packed)
    openers: dict[str, Callable[[BinaryIO], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return openers[suffix](packed)


def _zstd() -> Any:
    """Import the package that knows zstd: Python's own from 3.14 on."""
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "zstandard")


class _ReadableFile(io.RawIOBase):
    def readable(self) -> bool:
        return True


class PieceFile(_ReadableFile):
    """A file that is made piece by piece, each as long as it happens to be."""

    _ready = memoryview(b"")

    @abstractmethod
    def next_piece(self, wanted: int) -> bytes | None:
        """Return some bytes, about as many as are wanted; None at the end."""

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            piece = self.next_piece(len(buffer))
            if piece is None:
                return 0
            self._ready = memoryview(piece)
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


class _ZstdFile(PieceFile):
    """Frames of zstd, one after the other; the package's own reader does not notice where a file is cut short."""

    def __init__(self, packed: io.BufferedReader) -> None:
        self._packed, self._new_frame = packed, _zstd().ZstdDecompressor().decompressobj
        self._frame: Any = None

    def next_piece(self, wanted: int) -> bytes | None:
        data, parts = self._packed.read(_STEP), []
        if not data and self._frame is not None:
            raise EOFError("the last frame is not complete")
        while data:
            self._frame = self._frame or self._new_frame()
            parts.append(self._frame.decompress(data))
            data = self._frame.unused_data if self._frame.eof else b""
            self._frame = None if self._frame.eof else self._frame
        return b"".join(parts) if parts else None


class _CountedFile(_ReadableFile):
    """A file whose bytes are counted as they are read, also those of a pipe; the caller's is never closed."""

    def __init__(self, file: Any, owned: bool) -> None:
        self._file, self._owned, self.count = file, owned, 0

    def readinto(self, buffer: Any) -> int:
        got = int(self._file.readinto(buffer) or 0)
        self.count += got
        return got

    def fileno(self) -> int:
        return int(self._file.fileno()) if self._owned else super().fileno()

    def close(self) -> None:
        if self._owned:
            self._file.close()
        super().close()


class _LimitedFile(_ReadableFile):
    """An unpacked file that may not be far larger than what it was packed in: a few bytes can stand for any number."""

    def __init__(
        self, plain: Any, packed: io.BufferedReader, name: str, packing: str | None, counted: _CountedFile
    ) -> None:
        self._plain, self._packed, self._name, self._packing, self._counted = plain, packed, name, packing, counted
        self._unpacked = 0

    def readinto(self, buffer: Any) -> int:
        if self._packing:  # to fill a large buffer, the decompressors need several times its memory
            buffer = memoryview(buffer)[:_PIECE]
        with _naming(self._name, self._packing):
            got = int(self._plain.readinto(buffer))
        self._unpacked += got
        if self._packing and self._unpacked > max(MOST_UNPACKED, MOST_TIMES * self._counted.count):
            raise InputError(
                f"{self._name} unpacks to more than {MOST_TIMES} times its size and {MOST_UNPACKED >> 20} MB: if that "
                "is as it should be, unpack it first"
            )
        return got

    def close(self) -> None:
        if not self.closed:
            self._plain.close()
            self._packed.close()
        super().close()


@contextmanager
def _naming(name: str, packing: str | None = None) -> Iterator[None]:
    """Turn what the decompressors raise into one line that names the file."""
    errors: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, lzma.LZMAError)
    if packing == ".zst":
        errors += (_zstd().ZstdError,)
    try:
        yield
    except errors as error:
        reason = error.strerror if isinstance(error, OSError) else None
        problem = f"cannot be read: {reason}" if reason else f"is damaged or cut short: {error}"
        raise InputError(f"{name} {problem}") from None


@contextmanager
def create_bytes(path: str | os.PathLike[str] | BinaryIO) -> Iterator[BinaryIO]:
    """Open a file for writing bytes, compressed by its suffix; it appears under its name whole or not at all.

    An open binary file is written to as it is, and stays open.
    """
    if not isinstance(path, str | os.PathLike):
        if not hasattr(path, "write") or isinstance(path, io.TextIOBase):
            raise InputError(f"path must be a file name or a file opened in binary mode, got {path!r}")
        yield path
        path.flush()
        return
    suffix = Path(path).suffix.lower()
    with ExitStack() as stack:
        if is_stream(path):
            file = stack.enter_context(open_stream(path))
        else:
            draft = stack.enter_context(replacing(path))
            file = stack.enter_context(open(draft, "wb"))
        yield stack.enter_context(_packer(suffix, file)) if suffix in _MAGIC else file


def _packer(suffix: str, file: BinaryIO) -> Any:
    if suffix == ".gz":
        return gzip.GzipFile("", "wb", 6, file, mtime=0)  # no name, no time: the same data is the same file
    if suffix == ".zst" and sys.version_info >= (3, 14):
        zstd = _zstd()
        return zstd.ZstdFile(file, "wb", options={zstd.CompressionParameter.checksum_flag: 1})
    if suffix == ".zst":
        return _zstd().ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)
    return (bz2.open if suffix == ".bz2" else lzma.open)(file, "wb")
