"""A certificate that its numbers contradict says so, whichever way the bound goes."""

import pytest

from toprank.certificates.base import Certificate


@pytest.mark.parametrize(
    ("sense", "observed", "verdict"),
    [(">=", 0.6, "holds"), (">=", 0.4, "violated"), ("<=", 0.4, "holds"), ("<=", 0.6, "violated")],
)
def test_a_bound_on_the_wrong_side_is_violated(sense, observed, verdict):
    found = Certificate(statement="a claim", value=0.5, observed=observed, sense=sense, reference="nowhere")
    assert (found.verdict, found.holds()) == (verdict, verdict == "holds")


@pytest.mark.parametrize("sense", [">=", "<="])
def test_rounding_violates_nothing(sense):
    for observed in (0.5 - 1e-15, 0.5 + 1e-15):
        assert Certificate(statement="a claim", value=0.5, observed=observed, sense=sense, reference="nowhere").holds()
