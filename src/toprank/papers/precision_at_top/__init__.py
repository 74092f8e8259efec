"""Precision at the top, recomputed: the hierarchy of surrogates, precision against time, the sweeps, and the theorems.

Every finished (task, method, seed) is kept as a small file, so that an interrupted run goes on where it was. Data sets
that are not in the data folder are named and left out.
"""

from __future__ import annotations

from ..exhibits import by_name
from .figures import covertype, fig2, fig3
from .theory import counterexample, fig1, theorems

FIGURES = by_name(fig1, fig2, fig3, theorems, covertype, counterexample)
