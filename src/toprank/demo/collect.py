"""The documentation of the running Python's standard library as documents, without running any of it.

Python sources are parsed and never imported. Functions written in C have no source: those of the modules in `NATIVE`
are read from the module itself. They are compiled into the interpreter or stand beside it, and importing them defines
functions and does nothing else.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from importlib.machinery import BuiltinImporter, PathFinder
from pathlib import Path
from types import ModuleType

from ..errors import InputError
from .words import split_docstring

SKIPPED = frozenset(
    {"__pycache__", "dist-packages", "encodings", "ensurepip", "idlelib", "lib2to3", "lib-dynload", "pydoc_data"}
    | {"site-packages", "test", "tests", "turtledemo"}
)
"""Folders that hold tests, other people's packages, tables, or programs."""

PUBLIC_NAMES = {
    "_collections_abc": "collections.abc",
    "_pydatetime": "datetime",
    "_pydecimal": "decimal",
    "_weakrefset": "weakref",
    os.path.__name__: "os.path",
}
"""Sources with a private name whose contents are public under another one."""

NATIVE = {
    "_collections": "collections",
    "_csv": "csv",
    "_functools": "functools",
    "_io": "io",
    "_struct": "struct",
    "array": "array",
    "binascii": "binascii",
    "builtins": "builtins",
    "cmath": "cmath",
    "gc": "gc",
    "itertools": "itertools",
    "math": "math",
    "nt": "os",
    "posix": "os",
    "sys": "sys",
    "time": "time",
    "unicodedata": "unicodedata",
    "zlib": "zlib",
}
"""Modules written in C that are read by importing them, and the public names of what they define."""


@dataclass(frozen=True)
class Document:
    """A public function, class or method, in the fields that are indexed; `summary` is not one of them."""

    module: str
    path: str
    """Its name inside the module: `DictReader.writeheader`."""
    kind: str
    """`"function"`, `"class"` or `"method"`."""
    arguments: tuple[str, ...]
    text: str
    """The docstring without its first sentence."""
    summary: str
    """The first sentence of the docstring: a query, never indexed for this document. Empty where there is none."""
    about: str = ""
    """The first sentence of its module's docstring."""

    @property
    def id(self) -> str:
        """Its full name: `csv.DictReader`."""
        return f"{self.module}.{self.path}"

    @property
    def package(self) -> str:
        """The first part of the module's name: what folds keep together."""
        return self.module.partition(".")[0]

    @property
    def family(self) -> str:
        """What it belongs to: its class, for a class and its methods; its module, for a function."""
        return f"{self.module}.{self.path.partition('.')[0]}" if self.kind != "function" else self.module


@dataclass(frozen=True)
class Collection:
    """Documents in the order of their names, and what was read for them."""

    documents: tuple[Document, ...]
    n_files: int
    skipped: tuple[str, ...]
    """Files that could not be parsed."""


def collect(root: str | os.PathLike[str] | None = None, *, packages: Container[str] | None = None) -> Collection:
    """Parse the sources under `root` (by default the running Python's library) into documents.

    A name is public that has no underscore in front and, where a module spells out `__all__`, is in it. Of several
    definitions of a name the first with a docstring counts. `packages` are those to read, by default all. The modules
    of `NATIVE` come with the library, and not with another `root`.
    """
    top = home() if root is None else Path(root)
    found: dict[str, Document] = {}
    skipped = []
    n_files = 0
    for file in sources(top):
        n_files += 1
        module = _module_name(file.relative_to(top))
        if module is None or (packages is not None and module.partition(".")[0] not in packages):
            continue
        try:
            tree = _parse(file)
        except (SyntaxError, ValueError, RecursionError, OSError):  # ValueError: a null byte, an unknown encoding
            skipped.append(file.relative_to(top).as_posix())
            continue
        _keep(found, _documents_of(tree, module), _sentence(ast.get_docstring(tree)))
    if not n_files or (packages is None and not found):
        raise InputError(
            f"{top} holds no Python sources to read (an embedded or zipped build of Python): "
            "try `toprank demo --generated`, which needs none"
        )
    for name, public in NATIVE.items() if root is None else ():
        loaded = _native_module(name) if packages is None or public in packages else None
        if loaded is not None:
            _keep(found, _native_documents(loaded, public), _sentence(loaded.__doc__))
    return Collection(tuple(found[name] for name in sorted(found)), n_files, tuple(skipped))


def home() -> Path:
    """Return the folder of the running Python's library."""
    return Path(sysconfig.get_path("stdlib"))


def sources(top: Path) -> Iterator[Path]:
    """Yield the Python files under `top` that may document something, always in the same order."""
    for folder, inner, files in os.walk(top):
        inner[:] = sorted(name for name in inner if name not in SKIPPED and name.isidentifier())
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))


def _module_name(file: Path) -> str | None:
    """Return the public name of a source file, None for one that has none."""
    parts = [*file.parts[:-1], *([] if file.stem == "__init__" else [file.stem])]
    name = ".".join(parts)
    if name in PUBLIC_NAMES:
        return PUBLIC_NAMES[name]
    if not parts or any(part.startswith("_") for part in parts) or name in ("posixpath", "ntpath"):
        return None  # of the two flavours of os.path, the one that the running Python uses is enough
    return name


def _parse(file: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an old escape sequence in a docstring is no concern of ours
        return ast.parse(file.read_bytes(), filename=str(file))


def _sentence(docstring: str | None) -> str:
    """Return the first sentence of a module's docstring."""
    return split_docstring(docstring or "")[1]


def _keep(found: dict[str, Document], documents: Iterator[Document], about: str) -> None:
    for document in documents:
        known = found.get(document.id)
        if known is None or (not known.summary and document.summary):
            found[document.id] = replace(document, about=about)


def _documents_of(tree: ast.Module, module: str) -> Iterator[Document]:
    exported = _exported(tree)
    for node in _definitions(tree.body):
        if node.name.startswith("_") or (exported is not None and node.name not in exported):
            continue
        if not isinstance(node, ast.ClassDef):
            yield _document(node, module, node.name, "function", _arguments(node))
            continue
        members = list(_definitions(node.body))
        start = next((m for m in members if m.name == "__init__" and not isinstance(m, ast.ClassDef)), None)
        yield _document(node, module, node.name, "class", () if start is None else _arguments(start))
        for member in members:
            if not member.name.startswith("_") and not isinstance(member, ast.ClassDef):
                yield _document(member, module, f"{node.name}.{member.name}", "method", _arguments(member))


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _definitions(body: list[ast.stmt]) -> Iterator[Definition]:
    """Yield the definitions of a block, also those under an if, a try or a with: which branch runs is not known."""
    for node in body:
        if isinstance(node, Definition):
            yield node
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for part in ("body", "handlers", "orelse", "finalbody"):
                for inner in getattr(node, part, []):
                    yield from _definitions(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def _document(node: Definition, module: str, path: str, kind: str, arguments: tuple[str, ...]) -> Document:
    return _from_docstring(ast.get_docstring(node) or "", module, path, kind, arguments)


def _from_docstring(docstring: str, module: str, path: str, kind: str, arguments: tuple[str, ...]) -> Document:
    usage, summary, rest = split_docstring(docstring)
    if not arguments:
        arguments = _usage_arguments(usage)
    return Document(module, path, kind, arguments, rest, summary)


def _arguments(node: Definition) -> tuple[str, ...]:
    assert not isinstance(node, ast.ClassDef)
    a = node.args
    every = [*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg]
    names = [one.arg for one in every if one is not None]
    return tuple(name for name in names if name not in ("self", "cls"))


def _usage_arguments(usage: str) -> tuple[str, ...]:
    """Return the names between the brackets of lines such as `open(file, mode='r') -> file object`."""
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"|<[^>]*>", "", usage)
    inside = " ".join(re.findall(r"\(([^()]*)\)", unquoted))
    return tuple(dict.fromkeys(re.findall(r"(?<![\w=.])[A-Za-z_]\w*", inside)))


def _exported(tree: ast.Module) -> frozenset[str] | None:
    """Return the names in `__all__` where the source spells them out; None where it does not, or builds them."""
    names: list[str] = []
    met = False
    for node in tree.body:
        if isinstance(node, Definition) or not any(
            isinstance(n, ast.Name) and n.id == "__all__" for n in ast.walk(node)
        ):
            continue
        value = node.value if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) else None
        try:
            spelled = ast.literal_eval(value) if value is not None else None
        except ValueError:
            spelled = None
        if not isinstance(spelled, (list, tuple)):
            return None
        met = True
        names += map(str, spelled)
    return frozenset(names) if met else None


def _native_module(name: str) -> ModuleType | None:
    """Return a module of `NATIVE` from the interpreter or its own folder, never from the user's path; else None."""
    folders = [
        str(folder) for folder in (sysconfig.get_config_var("DESTSHARED"), Path(sys.base_prefix, "DLLs")) if folder
    ]
    spec = BuiltinImporter.find_spec(name) or PathFinder.find_spec(name, folders)
    if spec is None or spec.loader is None or (spec.origin or "").endswith((".py", ".pyc")):
        return None
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__spec__ is not None and loaded.__spec__.origin == spec.origin:
        return loaded
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _native_documents(native: ModuleType, module: str) -> Iterator[Document]:
    for name in sorted(vars(native)):
        value = vars(native)[name]
        if name.startswith("_"):
            continue
        if inspect.isclass(value):
            if value.__name__ != name:
                continue  # another name of a class: IOError is OSError
            yield _native_document(value, module, name, "class")
            for inner in sorted(vars(value)):
                member = vars(value)[inner]
                if not inner.startswith("_") and (callable(member) or inspect.isdatadescriptor(member)):
                    yield _native_document(member, module, f"{name}.{inner}", "method")
        elif inspect.isbuiltin(value):
            yield _native_document(value, module, name, "function")


def _native_document(value: object, module: str, path: str, kind: str) -> Document:
    docstring = getattr(value, "__doc__", None)
    signature = getattr(value, "__text_signature__", None)
    arguments = _usage_arguments(signature) if isinstance(signature, str) else ()
    return _from_docstring(
        inspect.cleandoc(docstring) if isinstance(docstring, str) else "",
        module,
        path,
        kind,
        tuple(name for name in arguments if name not in ("self", "cls", "type", "module")),
    )
