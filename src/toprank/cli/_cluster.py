"""`--dask`: reading and learning on a cluster, and saying how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from .._progress import busy
from ..errors import InputError

if TYPE_CHECKING:
    from ..data.dataset import QueryDataset


@contextmanager
def on_cluster(address: str) -> Iterator[Callable[..., QueryDataset]]:
    """Connect to a cluster, or start one for `local:N`, and yield what reads files there; nothing of it is left."""
    import logging

    from .. import dask
    from ..dask.workers import distributed
    from ..data.files import is_table

    cluster = distributed()
    with ExitStack() as stack:
        try:
            if address.startswith("local:"):
                count = address.removeprefix("local:")
                if not count.isdecimal() or not int(count):
                    raise InputError(f"--dask {address}: write local:2 for two processes")
                options = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
                address = stack.enter_context(
                    cluster.LocalCluster(n_workers=int(count), threads_per_worker=1, **options)
                )
            client = stack.enter_context(cluster.Client(address, timeout=10))
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"--dask {address}: no cluster answers there ({error or 'time ran out'})") from None

        def read(path: str, columns: dict[str, Any], missing: Any) -> QueryDataset:
            given = dict(columns)
            if given.pop("sep") is not None:
                raise InputError("--sep is about text tables, which are not read on a cluster: write Parquet")
            if is_table(path) or path.endswith("/"):
                return dask.read_table(path, client, missing=missing, **given)
            return dask.read_letor(path, client)

        yield read


@contextmanager
def progress(name: str) -> Iterator[None]:
    """Show how many times the objective was computed, and its value, on a terminal only."""
    from .. import objective

    def say(count: int, value: float) -> None:
        words(f"fitting {name}: {count} evaluations, objective {value:.6g}")

    with busy(f"fitting {name}") as words, objective.watched(say):
        yield
