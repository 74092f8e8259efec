"""A walk through the command line as a new user takes it, on a terminal of 80 columns: python -m tests.cli.walk.

Each command is printed with its exit code and the first lines of what it says. A refusal must be one line and no
traceback, and nothing but refusals, warnings and notes, which are a line each, may be wider than the terminal; what
breaks that is counted at the end.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import toprank as tr

COLUMNS = 80
HEADER = "query,doc_id,label,price,bm25,age"
GOES = """
info train.csv
info gaps.csv
fit train.csv -o model.json
fit gaps.csv -o gaps.json
fit gaps.csv --missing median -o gaps.json
fit gaps.csv --missing indicator -o indicator.json
evaluate model.json test.csv
evaluate gaps.json gaps.csv
rank model.json test.csv -o run.txt
evaluate model.json swapped.csv
certify model.json test.csv
certify model.json train.csv
compare train.csv test.csv --rankers ListNet,RankSVM
convert gaps.csv out.txt
convert gaps.csv out.txt --missing zero
export gaps.json --to elasticsearch --shift-from gaps.csv -o es.json
verify-export gaps.json es.json test.csv
export model.json --to sql --dialect mysql -o model.sql
verify-export model.json model.sql test.csv
export indicator.json --to solr -o solr.json
fit train.csv -o train.csv
fit comma.csv -o x.json
fit tabs.tsv -o tabs.json
rank tabs.json tabs.tsv
fit dates.csv -o x.json
fit train.csv --features price,label -o x.json
info fives.csv
info noqid.txt
info train.foo
fit train.csv --dask local:2 --missing median -o x.json
fit wide.csv -o wide.json
evaluate wide.json wide.csv
info wide.csv
rankers
measures
"""


def write(folder: Path) -> None:
    """Write the tables that the walk reads."""
    for name, seed in (("train", 0), ("test", 1)):
        data = tr.datasets.make_graded(n_queries=40, n_docs=(4, 9), n_features=3, n_grades=3, random_state=seed)
        cells = [
            [f"0{q}", f"d{i}", f"{y:.0f}", *(f"{v:.4f}" for v in x)]
            for i, (q, y, x) in enumerate(zip(data.qid, data.y, data.X, strict=True))
        ]
        rows = {"test": cells} if name == "test" else tables(cells)
        for file, (header, sep, body) in {
            key: value if isinstance(value, tuple) else (HEADER, ",", value) for key, value in rows.items()
        }.items():
            suffix = ".tsv" if sep == "\t" else ".csv"
            lines = [header.replace(",", sep), *(sep.join(row) for row in body)]
            (folder / f"{file}{suffix}").write_text("\n".join(lines) + "\n")
    (folder / "noqid.txt").write_text("".join(f"{i % 2} 1:{i}\n" for i in range(30)))
    (folder / "train.foo").write_text("a,b\n")


def tables(cells: list[list[str]]) -> dict[str, object]:
    """Return the tables that are made of the training rows."""
    gaps = [[*row[:3], *("" if (i + j) % 9 == 0 else v for j, v in enumerate(row[3:]))] for i, row in enumerate(cells)]
    long = HEADER.replace("price", "p" * 90)
    return {
        "train": cells,
        "gaps": gaps,
        "swapped": (
            "query,age,doc_id,label,note,price,bm25",
            ",",
            [[q, a, d, y, "7", p, b] for q, d, y, p, b, a in cells],
        ),
        "comma": (HEADER, ";", [[*row[:3], *(v.replace(".", ",") for v in row[3:])] for row in cells]),
        "tabs": (HEADER, "\t", [[f'"a\tb{row[0]}"', *row[1:]] for row in cells]),
        "dates": (f"{HEADER},when", ",", [[*row, "2020-01-01"] for row in cells]),
        "fives": [[*row[:2], f"{int(row[2]) + 1}", *row[3:]] for row in cells],
        "wide": (long, ",", cells),
    }


def on_terminal(folder: Path, words: list[str]) -> tuple[int, str]:
    """Run a command on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    env = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | {"TERM": "xterm"}
    command = [sys.executable, "-m", "toprank", *words]
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said.decode("utf-8", "replace")).replace("\r\n", "\n")
    return process.wait(), "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))


def main(shown: int = 5) -> int:
    """Walk, and return how many commands break the two rules."""
    broken = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        for line in GOES.split("\n"):
            if not line:
                continue
            code, text = on_terminal(folder, line.split())
            text = re.sub(r"[\u2800-\u28ff][^…\n]*…", "", text)  # the spinner, which the terminal erases
            lines = [part for part in text.split("\n") if part.strip()]
            refused = [part for part in lines if part.lstrip().startswith("toprank: error:")]
            told = [part for part in lines if part.lstrip().startswith(("toprank: warning:", "toprank: note:"))]
            wide = [part for part in lines if len(part) > COLUMNS and part not in refused + told]
            wrong = wide or "Traceback" in text or (code not in (0, 1) and len(refused) != 1)
            broken += bool(wrong)
            print(f"$ toprank {line}   [{code}]{'  BREAKS A RULE' if wrong else ''}")
            print("\n".join(f"    {part}" for part in [*wide, *lines[:shown]]))
    print(f"{broken} commands break a rule")
    return broken


if __name__ == "__main__":
    sys.exit(bool(main()))
