"""The pages of docs/ as a static site: `python docs/build.py --out site`.

Markdown goes through markdown-it-py and code through Pygments (both come with rich); the command reference is what
`--help` prints and the API reference is what the docstrings say. A link inside the site that leads nowhere is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

import reference  # noqa: E402 - stands beside this file

PAGES = {
    "Guide": (
        "index",
        "choose-a-ranker",
        "choose-a-measure",
        "streaming",
        "clicks",
        "rare-classes",
        "to-elasticsearch",
        "serve",
    ),
    "Background": ("theory", "add-a-surrogate", "compare", "design"),
    "Reference": ("commands", "api", "changelog"),
}
ELSEWHERE = {"compare": "COMPARE.md", "design": "DESIGN.md", "changelog": "CHANGELOG.md"}


class BrokenLinkError(SystemExit):
    """A page links to a page or a heading that is not there."""


@dataclass
class Page:
    """One page of the site: its HTML, and what can be linked to in it."""

    name: str
    title: str
    body: str
    headings: list[tuple[int, str, str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


def code(text: str, language: str) -> str:
    """Return highlighted code, or plain text where there is nothing to highlight."""
    kind = {"": "text", "console": "console"}.get(language, language)
    try:
        lexer = get_lexer_by_name(kind, stripnl=False)
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    shown = highlight(text, lexer, HtmlFormatter(nowrap=True))
    label = ' class="output"' if kind == "text" else ""
    return f'<pre tabindex="0"{label}><code>{shown}</code></pre>\n'


def slug(text: str) -> str:
    """Return the name by which a heading is linked to."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", text.lower())).strip("-")


def render(name: str, text: str) -> Page:
    """Turn Markdown into a page."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(text)
    page = Page(name, name, "")
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            title = tokens[at + 1].content.replace("`", "")
            anchor = slug(title)
            again = sum(anchor == known for _, _, known in page.headings)
            anchor += f"-{again + 1}" if again else ""
            token.attrSet("id", anchor)
            page.headings.append((int(token.tag[1]), title, anchor))
        for child in token.children or ():
            if child.type == "link_open":
                target = _address(str(child.attrGet("href")))
                child.attrSet("href", target)
                page.links.append(target)
    parser.add_render_rule("fence", lambda self, ts, i, options, env: code(ts[i].content, ts[i].info.strip()))
    parser.add_render_rule("table_open", lambda *_: '<div class="wide" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    page.body = parser.renderer.render(tokens, parser.options, {})
    page.title = next((title for level, title, _ in page.headings if level == 1), name)
    return page


def _address(link: str) -> str:
    """Turn a link between Markdown files into one between pages."""
    if re.match(r"[a-z]+:", link):
        return link
    path, mark, anchor = link.partition("#")
    if path.endswith(".md"):
        stem = Path(path).stem
        path = f"{stem.lower() if stem.isupper() else stem}.html"
    return path + mark + anchor


def check_links(pages: dict[str, Page]) -> None:
    """Refuse a link that leads nowhere."""
    anchors = {f"{page.name}.html": {anchor for _, _, anchor in page.headings} for page in pages.values()}
    for page in pages.values():
        for link in page.links:
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            there = anchors.get(path or f"{page.name}.html")
            if there is None or (anchor and anchor not in there):
                raise BrokenLinkError(f"docs: {page.name} links to {link}, which is not there")


def pages() -> dict[str, Page]:
    """Return every page of the site, links checked."""
    made = {}
    for name in (name for group in PAGES.values() for name in group):
        if name == "commands":
            text = reference.commands()
        elif name == "api":
            text = reference.api()
        else:
            source = ROOT / ELSEWHERE[name] if name in ELSEWHERE else DOCS / f"{name}.md"
            text = source.read_text(encoding="utf-8")
        made[name] = render(name, text)
    strays = {path.stem for path in DOCS.glob("*.md")} - set(made)
    if strays:
        raise BrokenLinkError(f"docs: no link leads to {', '.join(sorted(strays))}: add it to PAGES in docs/build.py")
    check_links(made)
    return made


def _contents(page: Page) -> Iterable[str]:
    for level, title, anchor in page.headings:
        if level == 2:
            yield f'<li><a href="#{anchor}">{escape(unescape(title))}</a></li>'


def whole(page: Page, everything: dict[str, Page]) -> str:
    """Return the page with its frame: menu, contents, style."""
    menu = "".join(
        f"<h2>{group}</h2><ul>"
        + "".join(
            f'<li><a href="{name}.html"{" aria-current=page" if name == page.name else ""}>'
            f"{escape(everything[name].title)}</a></li>"
            for name in names
        )
        + "</ul>"
        for group, names in PAGES.items()
    )
    inside = "".join(_contents(page))
    contents = f'<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>{inside}</ul></nav>'
    title = page.title if page.name == "index" else f"{page.title} – toprank"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css">
</head>
<body>
<a class="skip" href="#main">Skip to the text</a>
<header><a class="home" href="index.html">toprank</a>
<details class="menu"><summary>Pages</summary><nav aria-label="Pages">{menu}</nav></details></header>
<div class="frame">
<nav class="side" aria-label="Pages">{menu}</nav>
<main id="main">
{page.body}</main>
{contents if inside else ""}
</div>
</body>
</html>
"""


def style() -> str:
    """Return the style sheet: the hand-written part, and the colours of code in light and dark."""
    light = HtmlFormatter(style="xcode").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    dark = "\n".join(line for line in dark.splitlines() if "background" not in line)
    light = "\n".join(line for line in light.splitlines() if "background" not in line)
    own = (DOCS / "style.css").read_text(encoding="utf-8")
    return f"{own}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def build(out: Path) -> int:
    """Write the site into a folder and return the number of its pages."""
    made = pages()
    out.mkdir(parents=True, exist_ok=True)
    for page in made.values():
        (out / f"{page.name}.html").write_text(whole(page, made), encoding="utf-8")
    (out / "style.css").write_text(style(), encoding="utf-8")
    return len(made)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--out", type=Path, default=ROOT / "site")
    chosen = arguments.parse_args()
    print(f"{build(chosen.out)} pages in {chosen.out}/")
