"""A LETOR stream chunk by chunk: read one after the other, parsed side by side, handed over in order."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock, Thread

from ..errors import InputError
from ._letor_chunk import Chunk, Rules
from ._letor_kernels import LF
from ._text import ByteStream

CHUNK = 1 << 20
"""Bytes read at a time: they stay in the cache until they are parsed."""

LONGEST_LINE = 1 << 28


def read_chunks(
    stream: ByteStream, rules: Rules, add: Callable[[Chunk], None], *, threads: int, size: int = CHUNK
) -> None:
    """Parse a stream on several threads and call `add` for each chunk, one at a time and in the order of the file."""
    # One chunk more than threads: if one of them is held up, the others need not wait at once.
    queue = _Queue(stream, size, [Chunk(rules) for _ in range(threads + (threads > 1))], add)
    if threads == 1:
        return queue.work()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            queue.work()
        except BaseException as error:
            failures.append(error)

    # Not a pool: on Ctrl-C it would wait for a thread that waits for standard input.
    workers = [Thread(target=work, daemon=True) for _ in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    except BaseException:
        queue.stop()
        raise
    if failures:
        raise failures[0]


class _Queue:
    """Whole lines go out to the threads one chunk after the other, and are added in the same order."""

    def __init__(self, stream: ByteStream, size: int, chunks: list[Chunk], add: Callable[[Chunk], None]) -> None:
        self._stream, self._size, self._add = stream, size, add
        self._reading, self._state = Lock(), Condition()
        self._rest: bytes | bytearray = b""
        self._given = 0
        self._ended = False
        # Under the lock of `_state`:
        self._free, self._parsed = chunks, dict[int, Chunk]()
        self._added = self._lines = 0
        self._adding = self._stopped = False

    def work(self) -> None:
        """Read, parse and add chunks until there are no more; any number of threads may do so."""
        try:
            while chunk := self._next():
                if chunk.trouble is None:
                    chunk.parse()
                self._hand_over(chunk)
        except BaseException:
            self.stop()  # or the other threads would wait for this chunk
            raise

    def _next(self) -> Chunk | None:
        """Read the next whole lines; None at the end."""
        with self._state:
            self._state.wait_for(lambda: self._free or self._stopped)
            if self._stopped:
                return None
            chunk = self._free.pop()
        with self._reading:
            if not self._ended and self._fill(chunk):
                return chunk
        with self._state:
            self._free.append(chunk)  # for a thread that waits for one, to see the end too
            self._state.notify_all()
        return None

    def _fill(self, chunk: Chunk) -> bool:
        try:
            filled = self._read_lines(chunk)
        except InputError as error:  # reported when its turn comes: a bad line before it comes first
            chunk.trouble, self._ended, filled = error, True, True
        chunk.number, chunk.fraction = self._given, self._stream.fraction()
        self._given += 1
        return filled

    def _read_lines(self, chunk: Chunk) -> bool:
        size = len(self._rest)
        chunk.reserve(size)
        chunk.bytes[:size] = self._rest
        cut = 0
        while not cut:
            if size > LONGEST_LINE:
                raise InputError(f"{chunk.rules.name} has a line of more than {LONGEST_LINE >> 20} MB: no LETOR text")
            more = max(size, self._size)
            chunk.reserve(size + more + 1)  # a last line may lack its line feed
            with memoryview(chunk.bytes) as view:
                got = self._stream.readinto(view[size : size + more])
            size += got
            if not got:
                self._ended = True
                if size and chunk.bytes[size - 1] != LF:
                    chunk.bytes[size] = LF
                    size += 1
                cut = size
                break
            cut = chunk.bytes.rfind(b"\n", 0, size) + 1
        self._rest = chunk.bytes[cut:size]
        if self._given == 0 and chunk.bytes.startswith(b"\xef\xbb\xbf"):  # the mark some editors put before UTF-8
            chunk.bytes[:3] = b"   "
        chunk.size = cut
        return cut > 0

    def _hand_over(self, chunk: Chunk) -> None:
        """Add the chunk, and those behind it whose turn has come; if another thread does so now, leave it to that."""
        with self._state:
            self._parsed[chunk.number] = chunk
            if self._adding:
                return
            self._adding = True
        while ready := self._take():
            ready.first_line = self._lines
            self._add(ready)
            self._lines += ready.parsed.lines
            with self._state:
                self._added += 1
                self._free.append(ready)
                self._state.notify()

    def _take(self) -> Chunk | None:
        with self._state:
            ready = None if self._stopped else self._parsed.pop(self._added, None)
            self._adding = ready is not None
            return ready

    def stop(self) -> None:
        """Give up: no chunk is read or added any more."""
        with self._state:
            self._stopped = True
            self._state.notify_all()
