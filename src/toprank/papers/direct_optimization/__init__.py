"""Direct optimisation of ranking measures: its bounds, tables and figures, recomputed.

The methods as the paper has them stand beside the library's own, each with its settings chosen by MAP on the validation
part. Every fit is kept, so an interrupted run goes on where it was, and exhibits share their fits.
"""

from __future__ import annotations

from ..exhibits import by_name
from .bounds import fig1, fig2, fig3, fig4, fig5
from .tables import comparison, fig8, fig9, fig10, fig12, fig13, fig14, fig15, fig16, switch, table2, table3, ttests
from .training import fig11, table4

FIGURES = by_name(
    *(fig1, fig2, fig3, fig4, fig5, table2, table3, table4, fig8, fig9, fig10, fig11, fig12, fig13, fig14, fig15),
    *(fig16, ttests, comparison, switch),
)
