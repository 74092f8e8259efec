"""A rank profile for Vespa: one function per feature, and one sum of weights times features or of nested ifs.

Vespa computes in double precision. A feature that is not set is NaN there; where the model has a value for missing
ones, the function of the feature puts it in. Trees compare with <, the form that Vespa knows how to speed up: x > θ is
not x < the number after θ, and NaN is below nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from .._typing import Floats
from .._version import __version__
from ..errors import InputError
from .replicas import LinearReplica, Replica
from .scorers import Linear, Stumps
from .targets import IDENTIFIER, Artifact, Settings, Target, check_names, model_name
from .tree_replicas import Split, TreeReplica
from .trees import Cut, missing_note, steps_of, used_note

_NUMBER = r"[-+0-9.eE]+"
_WEIGHT = re.compile(rf"^\s*w_(\w+): ({_NUMBER})$", re.MULTILINE)
_FUNCTION = re.compile(r'^\s*function f_(\w+)\(\) \{ # ("(?:[^"\\]|\\.)*")\n\s*expression: (.*)\n\s*\}$', re.MULTILINE)
_GUARD = re.compile(rf"if \(isNan\((.*)\), ({_NUMBER}), \1\)")
_SUM = re.compile(r"-phase \{\n\s*expression \{\n(.*?)\n\s*\}\n", re.DOTALL)
_TERM = re.compile(r"(?:\+ )?constant\(w_(\w+)\) \* f_\1")
_END = re.compile(rf"\+ ({_NUMBER})")
_TOKEN = re.compile(rf"\s*(if \(|f_\w+ <|,|\)|{_NUMBER})")


class Vespa(Target):
    """Vespa's rank profiles."""

    name = "vespa"
    settings: ClassVar[frozenset[str]] = frozenset({"shift", "expressions", "phase"})

    def encode(self, scorer: Linear | Stumps, settings: Settings) -> Artifact:
        """Return a rank profile to be put into a schema."""
        check_names(scorer.names, self.name)
        unknown = next((name for name in settings.expressions if name not in scorer.names), None)
        if unknown is not None:
            raise InputError(f"--map {unknown}=…: the model has no feature {unknown!r}")
        name = model_name(scorer, settings, IDENTIFIER)
        ids = [n if IDENTIFIER.fullmatch(n) else f"{j}_" for j, n in enumerate(scorer.names, start=1)]
        constant = scorer.offset + settings.shift
        lines = [
            f"# Written by toprank {__version__} from {scorer.source}. In the model, {scorer.missing}.",
            f"rank-profile {name} {{",
        ]
        if isinstance(scorer, Linear):
            used = list(range(len(ids)))
            pairs = zip(ids, scorer.weights.tolist(), strict=True)
            lines += ["    constants {", *(f"        w_{i}: {weight!r}" for i, weight in pairs), "    }"]
            terms = [f"constant(w_{i}) * f_{i}" for i in ids]
            told = [
                f"{scorer.missing} by the model, but Vespa computes with NaN: make sure that every feature has a value"
                if scorer.fill is None
                else f"{scorer.missing}: isNan in the profile does it"
            ]
        else:
            steps = steps_of(scorer, _after)
            used = [step.feature for step in steps]
            terms = [_nested(step.tree(), ids[step.feature]) for step in steps]
            told = [
                used_note(scorer, steps),
                missing_note(
                    scorer, steps, "isNan in the profile does it", "NaN counts as above every threshold in Vespa"
                ),
                "leave the rank property vespa.eval.use_fast_forest off, as it is by default: it rounds thresholds and "
                "features to float32",
            ]
        for j in used:
            feature, fill = _expression(scorer.names[j], settings), scorer.fill_value(j)
            guarded = feature if fill is None else f"if (isNan({feature}), {fill!r}, {feature})"
            label = json.dumps(scorer.names[j], ensure_ascii=False)
            lines += [f"    function f_{ids[j]}() {{ # {label}", f"        expression: {guarded}", "    }"]
        terms = [f"{'+ ' if place else ''}{term}" for place, term in enumerate(terms)]
        terms += [f"+ {constant!r}"] if constant else []
        lines += [
            f"    {settings.phase}-phase {{",
            "        expression {",
            *(f"            {term}" for term in terms),
            "        }",
            "    }",
            "}",
        ]
        plain = [scorer.names[j] for j in used if scorer.names[j] not in settings.expressions]
        notes = (
            "put it into the schema; a search uses it with ranking.profile=" + name,
            *(
                [f"{len(plain)} features are read as attribute(name): --map name=expression for others"]
                if plain
                else []
            ),
            *told,
        )
        return Artifact(("\n".join(lines) + "\n").encode(), name, notes)

    def recognizes(self, content: bytes) -> bool:
        """Look for a rank profile."""
        return re.search(rb"^\s*rank-profile\s", content, re.MULTILINE) is not None

    def decode(self, content: bytes, place: str, beside: Mapping[str, bytes]) -> Replica:
        """Return the profile as Vespa scores with it; only profiles of the form written here are understood."""
        try:
            text = content.decode()
            weights = {i: float(value) for i, value in _WEIGHT.findall(text)}
            functions = {i: (str(json.loads(label)), expression) for i, label, expression in _FUNCTION.findall(text)}
            found = _SUM.search(text)
            if found and found[1].lstrip().startswith("if "):
                return _forest(found[1], functions)
            ids, end = _terms(found[1] if found else "")
            names = tuple(functions[i][0] for i in ids)
            fill = _fills(ids, functions)
            columns = np.array([weights[i] for i in ids])
        except (UnicodeDecodeError, ValueError, KeyError, RecursionError) as error:
            raise InputError(f"{place} is not a rank profile as toprank writes it: {error}") from None
        if not ids or not np.isfinite(columns).all():
            raise InputError(f"{place} is not a rank profile as toprank writes it: no sum of weights times features")
        return LinearReplica(names, columns, _rule(fill), np.float64, np.float64, fill=fill, end=end)


def _expression(feature: str, settings: Settings) -> str:
    given = settings.expressions.get(feature)
    if given is not None:
        if not given.strip() or not given.isprintable() or any(c in given for c in "{}#"):
            raise InputError(f"--map {feature}={given}: not a rank expression on one line")
        return given.strip()
    if not IDENTIFIER.fullmatch(feature):
        raise InputError(
            f"feature {feature!r} cannot be the name of an attribute: say what it is in vespa, --map "
            f"'{feature}=bm25(title)'"
        )
    return f"attribute({feature})"


def _terms(text: str) -> tuple[list[str], float | None]:
    """Return the terms of the sum in order, and the constant behind them."""
    ids: list[str] = []
    end = None
    for line in filter(None, map(str.strip, text.splitlines())):
        term, last = _TERM.fullmatch(line), _END.fullmatch(line)
        if end is not None or (term is None and last is None):
            raise ValueError(f"{line!r} is not a term of the sum")
        if term is not None:
            ids.append(term[1])
        elif last is not None:
            end = float(last[1])
    return ids, end


def _rule(fill: Floats) -> str:
    return "float64; a feature without a value is " + ("NaN" if np.isnan(fill).all() else "guarded by isNan")


def _fills(ids: Sequence[str], functions: Mapping[str, tuple[str, str]]) -> Floats:
    guards = [_GUARD.fullmatch(functions[i][1]) for i in ids]
    return np.array([float(guard[2]) if guard else np.nan for guard in guards])


def _after(threshold: float) -> float:
    number = math.nextafter(threshold, math.inf)
    if math.isinf(number):
        raise InputError("a threshold is the largest number there is: divide the feature by a constant and fit again")
    return number


def _nested(node: Cut | float, feature: str) -> str:
    if not isinstance(node, Cut):
        return repr(node)
    return f"if (f_{feature} < {node.threshold!r}, {_nested(node.low, feature)}, {_nested(node.high, feature)})"


def _forest(text: str, functions: Mapping[str, tuple[str, str]]) -> TreeReplica:
    """Return the sum of nested ifs, one on each line, and the number behind them."""
    places: dict[str, int] = {}
    roots: list[Split | float] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        tokens = _tokens(line.removeprefix("+ "))
        roots.append(_parsed(tokens, places))
        if next(tokens, None) is not None:
            raise ValueError(f"{line[:40]!r} … goes on behind its last bracket")
    fill = _fills(list(places), functions)
    names = tuple(functions[i][0] for i in places)
    return TreeReplica(names, roots, _rule(fill), np.float64, np.float64, fill)


def _tokens(line: str) -> Iterator[str]:
    place = 0
    while place < len(line):
        found = _TOKEN.match(line, place)
        if found is None:
            raise ValueError(f"{line[place : place + 40]!r} is not understood")
        yield found[1]
        place = found.end()


def _parsed(tokens: Iterator[str], places: dict[str, int]) -> Split | float:
    """Read a number, or `if (f_x < number, value, value)`."""
    first = _next(tokens)
    if first != "if (":
        return float(first)
    symbol = _next(tokens)
    if not symbol.startswith("f_"):
        raise ValueError(f"a comparison begins with {symbol!r}")
    feature = places.setdefault(symbol.removeprefix("f_").removesuffix(" <"), len(places))
    threshold = float(_next(tokens))
    _expect(tokens, ",")
    low = _parsed(tokens, places)
    _expect(tokens, ",")
    high = _parsed(tokens, places)
    _expect(tokens, ")")
    return Split(feature, math.nextafter(threshold, -math.inf), threshold, low, high)


def _next(tokens: Iterator[str]) -> str:
    found = next(tokens, None)
    if found is None:
        raise ValueError("the expression ends too soon")
    return found


def _expect(tokens: Iterator[str], token: str) -> None:
    found = _next(tokens)
    if found != token:
        raise ValueError(f"{found!r} stands where {token!r} should")
