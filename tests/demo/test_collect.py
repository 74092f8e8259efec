"""Documents are read by parsing alone: a tree of files stands in for the library."""

import subprocess
import sys

import pytest

import toprank as tr
from toprank.demo.collect import collect
from toprank.demo.words import split_docstring, words

BOOM = "raise SystemExit('this file was run')\n"


@pytest.fixture
def tree(tmp_path):
    def write(name: str, text: str | bytes) -> None:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    write(
        "shop.py",
        BOOM
        + '''
import os

def buy(item, *things, price=1, **more):
    """Buy an item. It is then yours.

    Nothing is given back.
    """

def _haggle(): "Private."

if os.name == "nt":
    def pay(coins):
        pass
else:
    def pay(notes):
        """Pay with notes."""

class Till:
    """Holds the money."""

    def __init__(self, opening, /, currency): ...

    def __len__(self): "Private too."

    def close(self):
        """Close it; count later"""

    @property
    def total(self): return 0

    @total.setter
    def total(self, value):
        """Set what is in it."""

    class Drawer:
        """Inner classes are left alone."""

    @classmethod
    def opened(cls, hour):
        """Make an open one."""
        def helper(): "Functions within functions are nobody's business."
''',
    )
    write("market/__init__.py", '__all__ = ["stall"]\ndef stall(): "Set up."\ndef left_out(): "Not in the list."\n')
    write("market/fair.py", '__all__ = ["a"]\n__all__ += [n for n in dir()]\ndef a(): "A."\ndef b(): "B."\n')
    write("market/_inner.py", 'def hidden(): "Hidden."\n')
    write("market/__main__.py", 'def main(): "Run."\n')
    write("latin.py", "# -*- coding: latin-1 -*-\ndef f():\n    '''Caf\xe9 for one.'''\n".encode("latin-1"))
    write("wrong.py", 'def broken(:\n    "No."\n')
    write("nul.py", b"x = 1\0\n")
    write("badly.py", b"# -*- coding: klingon -*-\n")
    write("escape.py", "def f():\n    '\\d is no escape.'\n")
    write("test/test_shop.py", 'def helper(): "Test helper."\n')
    write("site-packages/other.py", 'def other(): "Not the library."\n')
    write("lib2to3/main.py", 'def main(): "Old."\n')
    write("_collections_abc.py", 'class Sized: "Has a size."\n')
    return tmp_path


@pytest.fixture
def found(tree):
    collection = collect(tree)
    return {document.id: document for document in collection.documents}


def test_public_things_and_nothing_else(found):
    assert sorted(found) == list(found), "in the order of their names"
    assert set(found) == {
        "collections.abc.Sized",
        "escape.f",
        "latin.f",
        "market.fair.a",
        "market.fair.b",
        "market.stall",
        "shop.Till",
        "shop.Till.close",
        "shop.Till.opened",
        "shop.Till.total",
        "shop.buy",
        "shop.pay",
    }


def test_fields(found):
    buy, till = found["shop.buy"], found["shop.Till"]
    assert (buy.kind, buy.arguments) == ("function", ("item", "things", "price", "more"))
    assert buy.summary == "Buy an item."
    assert buy.text == "It is then yours.\n\nNothing is given back."
    assert (till.kind, till.arguments, till.text) == ("class", ("opening", "currency"), "")
    assert found["shop.Till.close"].summary == "Close it; count later"
    assert found["shop.Till.opened"].arguments == ("hour",)
    assert found["latin.f"].summary == "Café for one."


def test_of_two_definitions_the_documented_one_counts(found):
    assert found["shop.pay"].arguments == ("notes",)
    assert found["shop.Till.total"].summary == "Set what is in it."


def test_families_and_packages(found):
    assert found["shop.Till"].family == found["shop.Till.close"].family == "shop.Till"
    assert found["shop.buy"].family == found["shop.pay"].family == "shop"
    assert found["market.fair.a"].package == found["market.stall"].package == "market"
    assert found["market.fair.a"].family != found["market.stall"].family


def test_what_cannot_be_parsed_is_counted(tree):
    collection = collect(tree)
    assert collection.skipped == ("badly.py", "nul.py", "wrong.py")
    assert collection.n_files == 11


def test_a_library_without_sources_is_one_clear_line(tmp_path):
    (tmp_path / "python311.zip").write_bytes(b"PK")
    with pytest.raises(tr.InputError, match=r"no Python sources.*--generated"):
        collect(tmp_path)


def test_a_module_of_the_users_is_not_taken_for_a_native_one(tmp_path):
    # With `python -m`, the working folder comes first on the path: array.py there is somebody's own file.
    for name in ("array", "_csv", "zlib", "math"):
        (tmp_path / f"{name}.py").write_text(BOOM)
    code = (
        "from toprank.demo.collect import collect\n"
        "ids = {d.id for d in collect().documents}\n"
        "print({'math.sqrt', 'builtins.len', 'csv.reader', 'csv.DictReader', 'os.path.join', 'os.remove'} <= ids)"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr


def test_reading_the_library_imports_none_of_it():
    code = (
        "import sys, sysconfig\nfrom toprank.demo.collect import collect\n"
        "sysconfig.get_config_vars()\nbefore = set(sys.modules)\ncollect()\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_usage_lines_are_no_sentences():
    text = "range(stop) -> range object\nrange(start, stop[, step]) -> range object\n\nReturn numbers. All of them."
    usage, sentence, rest = split_docstring(text)
    assert usage.count("range(") == 2
    assert (sentence, rest) == ("Return numbers.", "All of them.")
    several = "rows = reader(file [, dialect='excel']\n  [keywords])\n    for row in rows:\n        use(row)\n\nRead."
    assert split_docstring(several)[1:] == ("Read.", "")
    assert split_docstring("") == ("", "", "")
    assert split_docstring("f(x)") == ("f(x)", "", "")


def test_words_of_identifiers():
    assert words("getElementsByTagName") == ["get", "element", "by", "tag", "name"]
    assert words("IMAP4_SSL.read2bytes, naïve") == ["imap4", "ssl", "read2byte", "naïve"]
