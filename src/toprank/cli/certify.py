"""`toprank certify`: what is proved about a saved model, as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import click

from ._common import busy, json_option, label_option, load, print_json, qid_option, read

if TYPE_CHECKING:
    from ..certificates.base import Certificate

_BAR = 30
_MARKS = {True: "✓ verified", False: "✗ violated", None: "? on trust"}


@click.command()
@click.argument("model")
@click.argument("data")
@click.option(
    "--all", "every", is_flag=True, help="Print every certificate, also of a series and those that do not apply."
)
@label_option
@qid_option
@json_option
def certify(model: str, data: str, every: bool, label: str, qid: str, as_json: bool) -> None:
    """Print what is proved about a saved model on judged queries: each theorem with its bound and the observed value.

    Assumptions that could be checked against DATA are marked verified or violated; the others are taken on trust. For a
    model that learned online, DATA is the stream it learned from.

    Example: toprank certify model.json train.txt
    """
    from ..rankers.certifying import certify as prove

    ranker = load(model)
    queries = read(data, label, qid, ranker.missing)
    with busy("certifying"):
        certificates = prove(ranker, queries)
    if as_json:
        print_json([certificate.to_dict() for certificate in certificates])
        return
    if not certificates:
        click.echo(f"no theorem here applies to a saved {type(ranker).__name__}")
        return
    shown = [c for c in certificates if every or c.assumptions_hold]
    blocks = shown if every else list(_without_series(shown))
    click.echo("\n\n".join(block if isinstance(block, str) else paragraph(block) for block in blocks))
    refused = [c for c in certificates if not c.assumptions_hold]
    if refused and not every:
        click.echo(("\n" if blocks else "") + "Not applicable to these data (--all prints them in full):")
        for certificate in refused:
            why = next(a.text for a in certificate.assumptions if a.verified is False)
            click.echo(f"  {certificate.reference}: violated: {why}")


def paragraph(certificate: Certificate) -> str:
    """Return a certificate as a sentence, a bar of the observed value against the bound, and its assumptions."""
    lines = [
        f"{certificate.reference}: {certificate.verdict}.",
        f"  {certificate.statement}",
        f"  observed {certificate.observed:.6g}, bound {certificate.value:.6g}{_bar(certificate)}",
    ]
    lines += [f"  {_MARKS[a.verified]}: {a.text}" for a in certificate.assumptions]
    return "\n".join(lines)


def _bar(certificate: Certificate) -> str:
    """Draw how much of the bound is used up, where both are amounts and the bound says something."""
    inside = 0 <= certificate.observed <= certificate.value < math.inf
    if certificate.sense != "<=" or certificate.vacuous or not inside or certificate.value == 0:
        return ""
    share = certificate.observed / certificate.value
    full = round(share * _BAR)
    return f"  [{'█' * full}{'·' * (_BAR - full)}] {share:.1%} of it"


def _without_series(certificates: Iterable[Certificate]) -> Iterable[Certificate | str]:
    """Replace a theorem applied round after round by its first and last round and a count."""
    for _, group in groupby(certificates, key=lambda c: (c.reference, c.sense)):
        run = list(group)
        if len(run) <= 3:
            yield from run
            continue
        held = sum(c.holds() for c in run)
        telling = sum(not c.vacuous for c in run)
        yield run[0]
        yield f"… {len(run) - 2} more like it (--all prints them): {held} of {len(run)} hold, {telling} not vacuous"
        yield run[-1]
