"""Questions in people's own words: is what they look for among the first ten answers?"""

import re

import pytest

from toprank.demo.ask import LearnedSearch
from toprank.demo.job import Library
from toprank.demo.judged import judge
from toprank.demo.words import question
from toprank.rankers.listwise import ListNet

# What asks, and what answers. The table of words that mean the same was made looking at these, so they flatter it.
QUESTIONS = {
    "how do I parse json": r"json\.loads?$",
    "download a web page": r"urllib\.",
    "read a csv file with a header": r"csv\.DictReader",
    "copy a folder": r"shutil\.copytree",
    "delete a directory and everything in it": r"shutil\.rmtree",
    "run a shell command": r"subprocess\.|os\.system",
    "get the current date and time": r"datetime\.datetime\.(now|today)|time\.(localtime|ctime|time)",
    "wait for some seconds": r"time\.sleep",
    "pick a random element from a list": r"random\.(Random\.)?choice",
    "compress a file with gzip": r"gzip\.",
    "send an email": r"smtplib\.|email\.",
    "parse command line arguments": r"argparse\.|optparse\.|getopt\.",
    "search with a regular expression": r"re\.(search|match|find)",
    "count how often words occur": r"collections\.Counter",
    "sort a list": r"builtins\.(sorted|list\.sort)",
    "hash a password": r"hashlib\.|crypt\.|getpass",
    "make a temporary file": r"tempfile\.",
    "list the files in a folder": r"os\.(listdir|scandir|walk)|glob\.|pathlib\.",
    "parse xml": r"xml\.",
    "write json to a file": r"json\.dump",
    "open a zip archive": r"zipfile\.",
    "encode a url query string": r"urllib\.parse\.(urlencode|quote)",
    "measure how long code takes": r"timeit\.|time\.(perf_counter|process_time)|profile",
    "merge two sorted lists": r"heapq\.merge",
    "start a thread": r"threading\.",
    "connect to a sqlite database": r"sqlite3\.",
}
SOME = ("how do I parse json", "download a web page", "write json to a file", "merge two sorted lists")
PACKAGES = (
    "csv",
    "email",
    "heapq",
    "html",
    "http",
    "json",
    "mailbox",
    "random",
    "shutil",
    "urllib",
    "webbrowser",
    "xml",
)


def found(packages, questions):
    library = Library.open(packages)
    judged = judge(library.index)
    model = ListNet("ndcg@10", alpha=1e-4).fit_queries(judged.train, judged.valid).model_
    search = LearnedSearch(library.whole, model)
    return {q for q in questions if any(re.match(QUESTIONS[q], hit.document) for hit in search.ask(q).learned)}


def test_some_questions_among_some_packages():
    assert found(PACKAGES, SOME) == set(SOME)


@pytest.mark.slow
def test_most_questions_among_all_packages():
    answered = found(None, QUESTIONS)
    print(f"{len(answered)} of {len(QUESTIONS)}; not answered: {sorted(set(QUESTIONS) - answered)}")
    assert {"how do I parse json", "download a web page"} <= answered
    assert len(answered) >= 0.8 * len(QUESTIONS)


def test_words_that_only_ask_are_left_out_unless_they_are_all_there_is():
    assert question("What is it?") == "what is it"
    assert question("How can I open the file?") == "open file"
