"""`toprank demo`: the main job, on data that everybody has."""

from __future__ import annotations

import click

from ._common import busy, json_option, print_json, show


@click.command()
@click.option("--html", default="report.html", show_default=True, help="Where to write the page.")
@click.option("--queries", default=400, show_default=True, type=click.IntRange(4), help="How many queries to generate.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same numbers.")
@json_option
def demo(html: str, queries: int, seed: int, as_json: bool) -> None:
    """Train and evaluate a ranker on a generated set and write a report page.

    Example: toprank demo --html report.html
    """
    from .. import demo as job

    with busy("generating, training, evaluating"):
        result = job.run(n_queries=queries, random_state=seed)
        job.write_page(result, html)
    if as_json:
        means = {name: dict(report.mean) for name, report in result.reports.items()}
        print_json({"means": means, "comparison": result.comparison.to_dict(), "html": html})
        return
    click.echo(f"{result.train.n_queries} queries to learn from, {result.test.n_queries} to be judged on\n")
    show(result.comparison)
    click.echo(f"\nwrote {html}")
