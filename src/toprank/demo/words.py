"""Words of sentences and of identifiers, and the first sentence of a docstring."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+")
# A capital after a small letter or a digit starts a word, and so does the last capital before a small one (HTTPError).
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)[.!?][\"')\]]*(?=\s|$)")

# `range(stop) -> range object`, `reader = reader(file)`
_USAGE = re.compile(r"(\w+ = )?[\w.]+\(")


def words(text: str) -> list[str]:
    """Return the words of a text or an identifier, in small letters, without a plural's or a verb's -s.

    >>> words("Opens the DictReader's file_name, an HTTPError"), words("classes of entries: os.path")
    (['open', 'the', 'dict', 'reader', 'file', 'name', 'an', 'http', 'error'], ['class', 'of', 'entry', 'os', 'path'])
    """
    text = re.sub(r"['’]s\b", "", text)
    return [stem(part.lower()) for word in _WORD.findall(text) for part in _HUMP.split(word)]


def stem(word: str) -> str:
    """Return the word without -s, by rule and not by dictionary: queries, classes, files and reads lose it.

    >>> [stem(word) for word in ("queries", "classes", "files", "reads", "class", "status", "os")]
    ['query', 'class', 'file', 'read', 'class', 'status', 'os']
    """
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


_ASKING = "a an and are can do does for from how i in is it me my of on please that the to we what with you"
ASKING = frozenset(_WORD.findall(_ASKING))
"""Words of questions that say nothing about what is asked for."""
ALSO = {
    "archive": "zipfile tarfile",
    "choose": "choice",
    "connect": "connection",
    "count": "counter",
    "current": "now",
    "database": "sqlite",
    "delete": "remove",
    "download": "retrieve url open",
    "email": "mail smtp message",
    "folder": "directory",
    "occur": "counter",
    "page": "url",
    "parse": "load decode deserialize",
    "pick": "choice",
    "run": "execute",
    "second": "sleep",
    "shell": "subprocess",
    "wait": "sleep",
    "web": "url http",
    "write": "dump",
}
"""Words that people ask with, and those that this documentation has for the same thing."""


def question(text: str) -> str:
    """Return what to search for where somebody asks in words of their own.

    >>> question("How do I delete a folder?")
    'delete folder remove directory'
    """
    asked = [word for word in words(text) if word not in ASKING] or words(text)
    return " ".join([*asked, *(ALSO[word] for word in asked if word in ALSO)])


def split_docstring(docstring: str) -> tuple[str, str, str]:
    """Return the usage lines, the first sentence and what follows it.

    Docstrings of functions written in C often begin with lines such as `range(stop) -> range object`: those are
    signatures, not sentences. A sentence ends at a full stop before white space, or with its paragraph.

    >>> split_docstring("pow(x, y) -> number\\n\\nRaise x to y, e.g. 2 to 3. Numbers only.\\n\\nMore.")
    ('pow(x, y) -> number', 'Raise x to y, e.g. 2 to 3.', 'Numbers only.\\n\\nMore.')
    >>> split_docstring("Flush the buffers\\n\\nNothing else happens.")
    ('', 'Flush the buffers', 'Nothing else happens.')
    """
    lines = docstring.strip().split("\n")
    usage, met, opened = 0, False, 0
    for line in lines:
        # Signatures, what is indented under them, and blank lines between them.
        if not (_USAGE.match(line) or (met and (opened > 0 or not line.strip() or line[0].isspace()))):
            break
        usage, met, opened = usage + 1, True, opened + line.count("(") - line.count(")")
    text = "\n".join(lines[usage:]).lstrip()
    paragraph = re.match(r".*?(?=\n\s*\n|\Z)", text, re.DOTALL)
    assert paragraph is not None  # the pattern matches the empty text too
    found = _SENTENCE_END.search(paragraph[0])
    end = found.end() if found else paragraph.end()
    return "\n".join(lines[:usage]).strip(), " ".join(text[:end].split()), text[end:].strip()
