"""Mutations that know the format, so that most inputs get past the first check."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any

NUMBERS = (
    b"0 1 -1 2 0.5 -0 +3 .5 5. 1e5 1e-5 1E400 -1e400 1e-400 nan inf -inf 9007199254740993 2147483646 "
    b"2147483647 2147483648 9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551616 "
    b"0.1000000000000000055511151231257827 "
    b"2.2250738585072011e-308 4.9406564584124654e-324 1.7976931348623159e308 3.4028236e38 00000000000000000000001 "
    b"99999999999999999999999999 1e99999999999999999999 1_0 0x1 \xd9\xa1 1:1 :"
).split()
WORDS = (
    b"",
    b"qid:",
    b"qid:1",
    b"qid:a",
    b"qid:-3",
    b"#",
    b"#docid = d",
    b"# x",
    b"#docid =",
    b":",
    b"1:",
    b":1",
    b"\t",
    b"\r",
    b"\0",
    b"\xff",
    b"\xc3\xa9",
    b"\xef\xbb\xbf",
    b"Q0",
    b"tag",
    b'"',
    b'""',
    b",",
    b"query",
    b"label",
    b"doc_id",
)


def text(separators: bytes) -> Callable[[bytes, random.Random], bytes]:
    """Return a mutator of lines of words."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        lines = data.split(b"\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(9)
        if kind == 0:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 1:
            del lines[at]
        elif kind == 2:
            lines[at] += b"\n" * rng.randrange(2) + lines[rng.randrange(len(lines))]
        else:
            separator = separators[rng.randrange(len(separators)) :][:1]
            words = lines[at].split(separator)
            k = rng.randrange(len(words))
            if kind == 3:
                words.insert(k, rng.choice(WORDS + tuple(NUMBERS)))
            elif kind == 4:
                del words[k]
            elif kind == 5:
                words[k] = rng.choice(NUMBERS)
            elif kind == 6:
                head, colon, _ = words[k].partition(b":")
                words[k] = head + colon + rng.choice(NUMBERS)
            elif kind == 7:
                words[k] = rng.choice(WORDS)
            else:
                words[k] = words[k] * rng.choice((2, 3, 40))
            lines[at] = separator.join(words)
        return b"\n".join(lines)

    return mutate


VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    2**31,
    2**53,
    2**63 - 1,
    -(2**63),
    0.5,
    -0.0,
    1e308,
    -1e-320,
    "",
    "x",
    "ndcg@10",
    "inf",
    [],
    {},
    {"$float": "inf"},
    {"$float": "nan"},
    {"$float": 3},
    {"$tuple": [1]},
    {"$tuple": 1},
    {"$value": "NDCG", "fields": {}},
    {"$value": "Slam", "fields": {"measure": "ap"}},
    {"$value": "LinearFunction", "fields": {"coef": [1]}},
    {"$value": ["x"]},
    {"$array": "float64", "shape": [1], "data": [1.0]},
    {"$array": "float64", "shape": [2**40, 0], "data": []},
    {"$array": "float64", "shape": [], "data": [1]},
    {"$array": "int64", "shape": [1], "data": [2.5]},
    {"$array": "float32", "shape": [1], "data": [1e300]},
    {"$array": "uint8", "shape": [1], "data": [-1]},
    {"$array": "bool", "shape": [1], "data": ["x"]},
    {"$array": "float64", "shape": [1], "data": ["1"]},
    {"$array": "float64", "shape": [1], "data": [[1]]},
    {"$array": ["float64"], "shape": [0], "data": []},
)


def model(data: bytes, rng: random.Random) -> bytes:
    """Change one node of the JSON."""
    try:
        root = json.loads(data)
    except (ValueError, RecursionError):
        return text(b",:[{")(data, rng)
    spots: list[tuple[Any, Any]] = []
    stack = [root]
    while stack:
        node = stack.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        spots += [(node, key) for key in keys]
        stack += [node[key] for key in keys]
    if not spots:
        return json.dumps(rng.choice(VALUES)).encode()
    node, key = rng.choice(spots)
    kind = rng.randrange(8)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[rng.choice(("x", "$value", "$array", "$tuple", "$float", "fields", "shape", "data"))] = node[key]
    elif kind == 2:
        other, name = rng.choice(spots)
        node[key] = json.loads(json.dumps(other[name])) if name in other or isinstance(other, list) else None
    elif kind == 3:
        node[key] = [node[key]] * rng.choice((1, 2, 5))
    elif kind == 4:
        for _ in range(rng.choice((2, 50, 600))):
            node[key] = [node[key]]
    else:
        node[key] = rng.choice(VALUES)
    try:
        return json.dumps(root).encode()
    except RecursionError:
        return data


def table(data: bytes, rng: random.Random) -> bytes:
    """Change a column of a Parquet table (its type, its cells, its name, the notes of the file), or a cell of CSV."""
    if data[:4] != b"PAR1":
        return text(b",")(data, rng)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_table(io.BytesIO(data))
        columns, names = list(found.columns), list(found.column_names)
        notes = found.schema.metadata
        k, n = rng.randrange(len(names)), found.num_rows
        kind = rng.randrange(8)
        if kind < 4:
            columns[k] = _column(pa, rng, n)
        elif kind == 4:
            columns.append(_column(pa, rng, n))
            names.append(rng.choice([*names, "x", ""]))
        elif kind == 5:
            names[k] = rng.choice([*names, "query", "label", "é", "a\nb"])
        elif kind == 6:
            notes = {
                b"toprank": rng.choice(
                    (
                        b"",
                        b"{",
                        b"[]",
                        b"3",
                        b"\xff",
                        b'{"doc_id": "label"}',
                        b'{"doc_id": 5}',
                        b'{"sparse": true}',
                        b'{"sparse": 3, "named": []}',
                        b'{"query_weight": ["x"]}',
                        b'{"doc_id": "none"}',
                    )
                )
            }
        else:
            found = pa.table(columns, names=names)
            rows = [rng.randrange(n) for _ in range(rng.choice((0, 1, n, 2 * n)))] if n else []
            columns = [column.take(pa.array(rows, pa.int64())) for column in columns]
        out = io.BytesIO()
        pq.write_table(pa.table(columns, names=names).replace_schema_metadata(notes), out)
        return out.getvalue()
    except (pa.ArrowException, ValueError, TypeError, OSError, IndexError):
        return text(b"\0")(data, rng)


def _column(pa: Any, rng: random.Random, n: int) -> Any:
    import datetime as dt
    import decimal as dc

    cells: tuple[tuple[Any, Any], ...] = (
        (pa.int64(), (0, 1, -5, 2**62)),
        (pa.int8(), (0, 1)),
        (pa.uint64(), (0, 2**63)),
        (pa.float32(), (0.5, 1e38)),
        (pa.float64(), (0.5, float("nan"))),
        (pa.float64(), (1e300, float("inf"))),
        (pa.float16(), (0.5, 1)),
        (pa.string(), ("a", "", "a\nb")),
        (pa.large_string(), ("a", "é")),
        (pa.binary(), (b"a", b"\xff")),
        (pa.bool_(), (True, False)),
        (pa.null(), (None,)),
        (pa.decimal128(20, 2), (dc.Decimal("1.25"),)),
        (pa.date32(), (dt.date(2020, 1, 1),)),
        (pa.timestamp("ns"), (dt.datetime(2020, 1, 1), dt.datetime(1970, 1, 1))),
        (pa.duration("s"), (dt.timedelta(1),)),
        (pa.list_(pa.int64()), ([1, 2], [])),
        (pa.struct([("a", pa.int64())]), ({"a": 1},)),
        (pa.time64("us"), (dt.time(1),)),
        (pa.dictionary(pa.int32(), pa.string()), ("a", "b")),
    )
    kind, pool = rng.choice(cells)
    empty = rng.random() < 0.3
    values = [None if empty and rng.random() < 0.4 else rng.choice(pool) for _ in range(n)]
    return pa.array(values, pa.string()).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(values, kind)


def folder(data: bytes, rng: random.Random) -> bytes:
    """Change one file of a zip file: the header as JSON, an array in its values, its type or its length."""
    import zipfile

    import numpy as np

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        name = rng.choice(sorted(files))
        if rng.random() < 0.05:
            del files[name]
        elif name.endswith(".json"):
            files[name] = model(files[name], rng)
        elif rng.random() < 0.2:
            at = rng.randrange(len(files[name]))
            files[name] = files[name][:at] + bytes([rng.randrange(256)]) + files[name][at + 1 :]
        else:
            out = io.BytesIO()
            np.save(out, _array(np, np.load(io.BytesIO(files[name])), rng))
            files[name] = out.getvalue()
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return packed.getvalue()
    except Exception:  # what numpy or zipfile cannot take is a mutation too
        return data[: rng.randrange(len(data) + 1)]


def _array(np: Any, array: Any, rng: random.Random) -> Any:
    kind = rng.randrange(5)
    if kind == 0:
        return array.astype(
            rng.choice(("<i8", "<i4", ">i4", "<f4", ">f8", "<f8", "U3", "S3", "?", "<u8", "<c16", "M8[s]"))
        )
    if kind == 1:
        return array[: rng.randrange(len(array) + 1)]
    if kind == 2:
        return rng.choice((array[:, None], array[::-1], np.concatenate((array, array)), np.asfortranarray(array)))
    flat = array.reshape(-1).copy()
    if len(flat):
        values = (
            (0, 1, -1, 2, 2**31 - 1, -(2**31)) if flat.dtype.kind in "iu" else (0.5, float("nan"), float("inf"), 1e308)
        )
        flat[rng.randrange(len(flat))] = rng.choice(values)
    return flat.reshape(array.shape)


def export(data: bytes, rng: random.Random) -> bytes:
    """Change a node of JSON, else a word of a line."""
    return model(data, rng) if data.lstrip()[:1] in (b"{", b"[") else text(b" (,<")(data, rng)


MUTATORS = {
    "letor": text(b" :"),
    "trec": text(b" "),
    "model": model,
    "table": table,
    "folder": folder,
    "export": export,
}
