"""Workers with other processors: what compiled code makes of the same numbers is equal to rounding on all of them."""

import logging
import os
import platform
import warnings

import numpy as np
import pytest
from distributed import Client, Nanny, Scheduler, SpecCluster

import dask
import toprank as tr

from .conftest import judged

pytestmark = [
    pytest.mark.usefixtures("short_runs"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86-64 processors"),
]

NAMES = ("nehalem", "haswell")
"""Vectors of two numbers, and of four with fused products: compilers add and multiply differently for them."""


def target():
    import numba

    return os.environ["NUMBA_CPU_NAME"], numba.config.CPU_NAME


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    workers = {
        name: {
            "cls": Nanny,
            "options": {"nthreads": 1, "env": {"NUMBA_CPU_NAME": name}, "silence_logs": logging.CRITICAL},
        }
        for name in NAMES
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": ":0"}}
    folder = str(tmp_path_factory.mktemp("mixed"))
    with (
        dask.config.set({"temporary-directory": folder, "distributed.admin.tick.limit": "1h"}),
        SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.CRITICAL) as cluster,
        Client(cluster) as client,
    ):
        assert sorted(client.run(target).values()) == sorted((name, name) for name in NAMES)
        yield client


@pytest.mark.parametrize(
    "ranker",
    [
        tr.ListNet(max_iter=8),
        *(  # each compiles for seconds on each worker
            pytest.param(ranker, marks=pytest.mark.slow)
            for ranker in (tr.RankSVM(max_iter=4), tr.AdaRank("map", rounds=6), tr.SlamPerceptron(shuffle=False))
        ),
    ],
    ids=repr,
)
def test_two_kinds_of_processors_agree_with_this_one(mixed, ranker):
    data = judged()
    far = tr.dask.place(data, mixed, parts=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are stopped early
        here, there = (type(ranker)(**ranker.get_params()).fit_queries(each) for each in (data, far))
    assert len({tuple(held) for held in mixed.who_has(far.X.futures).values()}) == 2  # both took part
    np.testing.assert_allclose(here.coef_, there.coef_, rtol=1e-6, atol=1e-9 * np.abs(here.coef_).max())
    assert np.any(here.coef_)
