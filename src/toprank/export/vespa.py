"""A rank profile for Vespa: one constant per weight, one function per feature, one sum.

Vespa computes in double precision. A feature that is not set is NaN there; where the model has a value for missing
ones, the function of the feature puts it in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from .._version import __version__
from ..errors import InputError
from .replicas import LinearReplica, Replica
from .scorers import Linear
from .targets import IDENTIFIER, Artifact, Settings, Target, check_names, model_name

_NUMBER = r"[-+0-9.eE]+"
_WEIGHT = re.compile(rf"^\s*w_(\w+): ({_NUMBER})$", re.MULTILINE)
_FUNCTION = re.compile(r'^\s*function f_(\w+)\(\) \{ # ("(?:[^"\\]|\\.)*")\n\s*expression: (.*)\n\s*\}$', re.MULTILINE)
_GUARD = re.compile(rf"if \(isNan\((.*)\), ({_NUMBER}), \1\)")
_SUM = re.compile(r"-phase \{\n\s*expression \{\n(.*?)\n\s*\}\n", re.DOTALL)
_TERM = re.compile(r"(?:\+ )?constant\(w_(\w+)\) \* f_\1")
_END = re.compile(rf"\+ ({_NUMBER})")


class Vespa(Target):
    """Vespa's rank profiles."""

    name = "vespa"
    settings: ClassVar[frozenset[str]] = frozenset({"shift", "expressions", "phase"})

    def encode(self, scorer: Linear, settings: Settings) -> Artifact:
        """Return a rank profile to be put into a schema."""
        check_names(scorer.names, self.name)
        unknown = next((name for name in settings.expressions if name not in scorer.names), None)
        if unknown is not None:
            raise InputError(f"--map {unknown}=…: the model has no feature {unknown!r}")
        name = model_name(scorer, settings, IDENTIFIER)
        features = [_expression(feature, settings) for feature in scorer.names]
        ids = [n if IDENTIFIER.fullmatch(n) else f"{j}_" for j, n in enumerate(scorer.names, start=1)]
        constant = scorer.offset + settings.shift
        lines = [
            f"# Written by toprank {__version__} from {scorer.source}. In the model, {scorer.missing}.",
            f"rank-profile {name} {{",
            "    constants {",
            *(f"        w_{i}: {weight!r}" for i, weight in zip(ids, scorer.weights.tolist(), strict=True)),
            "    }",
        ]
        for j, (i, feature) in enumerate(zip(ids, features, strict=True)):
            fill = scorer.fill_value(j)
            guarded = feature if fill is None else f"if (isNan({feature}), {fill!r}, {feature})"
            label = json.dumps(scorer.names[j], ensure_ascii=False)
            lines += [f"    function f_{i}() {{ # {label}", f"        expression: {guarded}", "    }"]
        terms = [f"{'+ ' if j else ''}constant(w_{i}) * f_{i}" for j, i in enumerate(ids)]
        terms += [f"+ {constant!r}"] if constant else []
        lines += [
            f"    {settings.phase}-phase {{",
            "        expression {",
            *(f"            {term}" for term in terms),
            "        }",
            "    }",
            "}",
        ]
        plain = [n for n in scorer.names if n not in settings.expressions]
        notes = (
            "put it into the schema; a search uses it with ranking.profile=" + name,
            *(
                [f"{len(plain)} features are read as attribute(name): --map name=expression for others"]
                if plain
                else []
            ),
            f"{scorer.missing} by the model, but Vespa computes with NaN: make sure that every feature has a value"
            if scorer.fill is None
            else f"{scorer.missing}: isNan in the profile does it",
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
            ids, end = _terms(found[1] if found else "")
            names = tuple(functions[i][0] for i in ids)
            guards = [_GUARD.fullmatch(functions[i][1]) for i in ids]
            fill = np.array([float(guard[2]) if guard else np.nan for guard in guards])
            columns = np.array([weights[i] for i in ids])
        except (UnicodeDecodeError, ValueError, KeyError) as error:
            raise InputError(f"{place} is not a rank profile as toprank writes it: {error}") from None
        if not ids or not np.isfinite(columns).all():
            raise InputError(f"{place} is not a rank profile as toprank writes it: no sum of weights times features")
        rule = "float64; a feature without a value is " + ("NaN" if np.isnan(fill).all() else "guarded by isNan")
        return LinearReplica(names, columns, rule, np.float64, np.float64, fill=fill, end=end)


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
