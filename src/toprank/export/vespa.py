"""A rank profile for Vespa: one function per feature, and one sum of weights times features or of nested ifs.

Vespa computes in double precision, but for large forests, of which it keeps thresholds and leaves in float32. A feature
that is not set is NaN there; where the model has a value for missing ones, the function of the feature puts it in.
Trees compare with <, the form that Vespa knows how to speed up: x > θ is not x < the number after θ, and NaN is below
nothing; where a missing value goes low, the split is !(x ≥ …), which NaN passes. The schema's grammar knows no
exponents, so constants are plain decimals; ranking expressions take any number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

import numpy as np

from .._typing import Floats
from .._version import __version__
from ..errors import InputError
from ..model import LinearFunction, Model
from . import model_trees
from .model_trees import ModelSplit, Tree
from .replicas import LinearReplica, PreparedReplica, Replica, next_single
from .targets import IDENTIFIER, Artifact, Settings, Target, check_names, model_name, policy_note
from .tree_replicas import EngineSplit, TreeReplica, nodes_of

_NUMBER = r"[-+0-9.eE]+"
_WEIGHT = re.compile(r"^ *w_(\w+): (.*)$", re.MULTILINE)
_SCHEMA_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
"""The numbers of the grammar of schemas."""
_FUNCTION = re.compile(r'^ *function f_(\w+)\(\) \{ # ("(?:[^"\\]|\\.)*")\n *expression: (.*)\n *\}$', re.MULTILINE)
_GUARD = re.compile(rf"if \(isNan\((.*)\), ({_NUMBER}), \1\)")
_SUM = re.compile(r"-phase \{\n *expression \{\n(.*?)\n *\}\n", re.DOTALL)
_TERM = re.compile(r"(?:\+ )?constant\(w_(\w+)\) \* f_\1")
_END = re.compile(rf"\+ ({_NUMBER})")
_LOG = "if ({0} < 0, -log(1 - {0}), log(1 + {0}))"
_TOKEN = re.compile(rf"\s*(if \(|!\(f_\w+ >=|f_\w+ <|,|\)|{_NUMBER})")

MANY_LEAVES, MANY_STEPS, LARGE_TREE = 25_000, 2_500, 12
"""Forests above so many leaves, or with trees above 12 leaves and ways to them above so many comparisons in all, are
compiled to a form with thresholds and leaves in float32."""


class Vespa(Target):
    """Vespa's rank profiles."""

    name = "vespa"
    settings = frozenset({"shift", "expressions", "phase"})
    prepares = frozenset({"log"})
    marks = re.compile(rb"^ *rank-profile\s", re.MULTILINE)
    file = "a rank profile as toprank writes it"

    def encode(self, model: Model, settings: Settings) -> Artifact:
        """Return a rank profile to be put into a schema."""
        check_names(model.names, self.name)
        unknown = next((name for name in settings.expressions if name not in model.names), None)
        if unknown is not None:
            raise InputError(f"--map {unknown}=…: the model has no feature {unknown!r}")
        name = model_name(model, settings, IDENTIFIER)
        ids = [n if IDENTIFIER.fullmatch(n) else f"{j}_" for j, n in enumerate(model.names, start=1)]
        logs = len(model.inputs.words)
        last = "l" * logs or "f"  # the score looks at f_x, a feature, or l_x, its logarithm, or ll_x, that of l_x
        constant = model.offset + (settings.shift or 0.0)
        lines = [
            f"rank-profile {name} {{",
            f"    # Written by toprank {__version__} from {model.source}. In the model, {model.rule.words}.",
        ]
        if isinstance(model.function, LinearFunction):
            used = list(range(len(ids)))
            pairs = zip(ids, model.weights.tolist(), strict=True)
            lines += ["    constants {", *(f"        w_{i}: {decimal(weight)}" for i, weight in pairs), "    }"]
            terms = [f"constant(w_{i}) * {last}_{i}" for i in ids]
            own_notes = [policy_note(model, "Vespa computes with NaN", ": isNan in the profile does it")]
        else:
            roots = model_trees.forest_of(model, model_trees.double_after)
            own_notes = []
            if large(roots):
                roots = model_trees.forest_of(model, model_trees.single_above)
                model_trees.check_single(model, roots, constant)
                own_notes = [
                    f"Vespa keeps thresholds and leaves of a forest with more than {MANY_LEAVES:,} leaves, or long "
                    "ways to them, in float32: they are written so",
                    *model_trees.side_notes(model, roots),
                ]
            used = model_trees.used_features(roots)
            named = [f"{last}_{i}" for i in ids]
            terms = [_nested(root, named, bool(own_notes), model.rule.native) for root in roots]
            how = "the splits do it" if model.rule.native else "isNan in the profile does it"
            own_notes += [
                model_trees.used_note(model, roots),
                model_trees.missing_note(model, roots, how, "NaN counts as above every threshold in Vespa"),
                "leave the rank property vespa.eval.use_fast_forest off, as it is by default: it rounds thresholds and "
                "features to float32",
            ]
        for j in used:
            feature, fill = _expression(model.names[j], settings), model.rule.fill_value(j)
            guarded = feature if fill is None else f"if (isNan({feature}), {fill!r}, {feature})"
            label = json.dumps(model.names[j], ensure_ascii=False)
            lines += [f"    function f_{ids[j]}() {{ # {label}", f"        expression: {guarded}", "    }"]
            for before, behind in pairwise(["f", *("l" * n for n in range(1, logs + 1))]):
                log = _LOG.format(f"{before}_{ids[j]}")
                lines += [f"    function {behind}_{ids[j]}() {{", f"        expression: {log}", "    }"]
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
        plain = [model.names[j] for j in used if model.names[j] not in settings.expressions]
        notes = (
            f"keep it as schemas/SCHEMA/{name}.profile, or put it into the schema; a search uses it with "
            f"ranking.profile={name}",
            *(
                [f"{len(plain)} features are read as attribute(name): --map name=expression for others"]
                if plain
                else []
            ),
            *own_notes,
        )
        return Artifact(("\n".join(lines) + "\n").encode(), name, notes)

    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the profile as Vespa scores with it; only profiles of the form written here are understood."""
        text = content.decode()
        if not text.startswith("rank-profile"):
            raise ValueError("a file of its own begins with rank-profile")
        numbers = dict(_WEIGHT.findall(text))
        refused = next((value for value in numbers.values() if not _SCHEMA_NUMBER.fullmatch(value)), None)
        if refused is not None:
            raise ValueError(f"the grammar of schemas has no number {refused}: digits, or digits . digits")
        weights = {i: float(value) for i, value in numbers.items()}
        functions = {i: (str(json.loads(label)), expression) for i, label, expression in _FUNCTION.findall(text)}
        found = _SUM.search(text)
        terms = found[1] if found else ""
        logs = _logs(text, terms)
        terms = re.sub(r"\bl+_(?=\w)", "f_", terms)
        if re.search(r"(?:^|\n)\s*(?:\+ )?if ", terms):
            forest = _forest(terms, functions)
            return PreparedReplica(forest.names, logs, forest, forest.fill, forest.rule) if logs else forest
        ids, end = _terms(terms)
        names = tuple(functions[i][0] for i in ids)
        fill = _fills(ids, functions)
        columns = np.array([weights[i] for i in ids])
        if not ids or not np.isfinite(columns).all():
            raise ValueError("no sum of weights times features")
        linear = LinearReplica(names, columns, _rule(fill), np.float64, np.float64, fill=fill, end=end)
        return PreparedReplica(names, logs, linear, fill, linear.rule) if logs else linear


def _logs(text: str, terms: str) -> tuple[str, ...]:
    """Return the logarithms that stand between the features and the sum."""
    found = set(re.findall(r"\b(l+)_\w", terms))
    if len(found) > 1:
        raise ValueError("the terms are not prepared alike")
    for prefix, name, expression in re.findall(r"function (l+)_(\w+)\(\) \{\n\s*expression: (.*)\n", text):
        if expression != _LOG.format(f"{prefix[1:] or 'f'}_{name}"):
            raise ValueError(f"{expression!r} is not a logarithm as it is written here")
    return ("log",) * len(found.pop()) if found else ()


def decimal(value: float) -> str:
    """Return a number as the grammar of schemas takes it, without an exponent.

    >>> decimal(1e-7), decimal(-3e22), decimal(0.25)
    ('0.0000001', '-30000000000000000000000.0', '0.25')
    """
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else f"{text}.0"


def large(roots: Sequence[Tree | EngineSplit]) -> bool:
    """Say whether Vespa keeps the thresholds and leaves of a forest in float32."""
    depths = [[depth for node, depth in nodes_of(root) if isinstance(node, (int, float))] for root in roots]
    sizes, steps = [len(each) for each in depths], sum(sum(each) / len(each) for each in depths)
    return sum(sizes) > MANY_LEAVES or (max(sizes) > LARGE_TREE and steps > MANY_STEPS)


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


def _rule(fill: Floats, precision: str = "float64") -> str:
    return f"{precision}; a feature without a value is " + ("NaN" if np.isnan(fill).all() else "guarded by isNan")


def _fills(ids: Sequence[str], functions: Mapping[str, tuple[str, str]]) -> Floats:
    guards = [_GUARD.fullmatch(functions[i][1]) for i in ids]
    return np.array([float(guard[2]) if guard else np.nan for guard in guards])


def _nested(node: Tree, ids: Sequence[str], rounded: bool, follows: bool) -> str:
    if not isinstance(node, ModelSplit):
        return repr(model_trees.nearest_single(node) if rounded else node)
    name, threshold = ids[node.feature], model_trees.finite_in_single(node.threshold) if rounded else node.threshold
    low, high = (_nested(branch, ids, rounded, follows) for branch in (node.low, node.high))
    test = f"!({name} >= {threshold!r})" if follows and node.missing_low else f"{name} < {threshold!r}"
    return f"if ({test}, {low}, {high})"


def _forest(text: str, functions: Mapping[str, tuple[str, str]]) -> TreeReplica:
    """Return the sum of nested ifs, one on each line, and the number behind them."""
    places: dict[str, int] = {}
    roots: list[EngineSplit | float] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        tokens = _tokens(line.removeprefix("+ "))
        roots.append(_parsed(tokens, places))
        if next(tokens, None) is not None:
            raise ValueError(f"{line[:40]!r} … goes on behind its last bracket")
    fill = _fills(list(places), functions)
    names = tuple(functions[i][0] for i in places)
    rounded = large(roots)
    rule = _rule(fill, "float64 with thresholds and leaves in float32" if rounded else "float64")
    roots = [_rounded(root) for root in roots] if rounded else roots
    return TreeReplica(names, roots, rule, np.float64, np.float64, fill)


def _rounded(node: EngineSplit | float) -> EngineSplit | float:
    """Return a tree as Vespa compiles it for large forests; the model's threshold is up to a float32 step below."""
    if not isinstance(node, EngineSplit):
        return model_trees.nearest_single(node)
    first = model_trees.nearest_single(node.first)
    low, high = _rounded(node.low), _rounded(node.high)
    floor = next_single(first, -math.inf)
    return EngineSplit(node.feature, math.nextafter(first, -math.inf), first, low, high, node.missing_low, floor)


def _tokens(line: str) -> Iterator[str]:
    place = 0
    while place < len(line):
        found = _TOKEN.match(line, place)
        if found is None:
            raise ValueError(f"{line[place : place + 40]!r} is not understood")
        yield found[1]
        place = found.end()


def _parsed(tokens: Iterator[str], places: dict[str, int]) -> EngineSplit | float:
    """Read a number, or `if (f_x < number, value, value)`."""
    first = _next(tokens)
    if first != "if (":
        return float(first)
    symbol = _next(tokens)
    negated = symbol.startswith("!(")
    if not (negated or symbol.startswith("f_")):
        raise ValueError(f"a comparison begins with {symbol!r}")
    name = symbol.removeprefix("!(").removeprefix("f_").removesuffix(" >=").removesuffix(" <")
    feature = places.setdefault(name, len(places))
    threshold = float(_next(tokens))
    if negated:
        _expect(tokens, ")")
    _expect(tokens, ",")
    low = _parsed(tokens, places)
    _expect(tokens, ",")
    high = _parsed(tokens, places)
    _expect(tokens, ")")
    return EngineSplit(feature, math.nextafter(threshold, -math.inf), threshold, low, high, negated)


def _next(tokens: Iterator[str]) -> str:
    found = next(tokens, None)
    if found is None:
        raise ValueError("the expression ends too soon")
    return found


def _expect(tokens: Iterator[str], token: str) -> None:
    found = _next(tokens)
    if found != token:
        raise ValueError(f"{found!r} stands where {token!r} should")
