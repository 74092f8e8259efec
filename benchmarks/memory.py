"""Memory beside X that learning and reading take, in sizes of X: `python -m benchmarks.memory`.

Peaks are of the process (VmHWM), each in a process of its own, after a small run that loads and compiles what it needs.
"""

import subprocess
import sys
import tempfile

LIMITS = {"RankBoost": 1.0, "AdaRank": 0.5, "read_table (Parquet)": 2.0}
PROGRAM = """
import sys, warnings, numpy as np, toprank as tr
warnings.simplefilter("ignore")
what, folder = sys.argv[1:]
def made(n):
    rng = np.random.default_rng(0)
    X = rng.random((n, 100), dtype=np.float32)
    return tr.QueryDataset.from_arrays(X, rng.integers(0, 3, n), np.arange(n) // 50)
def run(data, file):
    if "Parquet" in what:
        return tr.read_table(file)
    return (tr.RankBoost(rounds=5) if what == "RankBoost" else tr.AdaRank(rounds=5)).fit_queries(data)
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
if what == "write":
    tr.write_parquet(made(5000), f"{folder}/small.parquet")
    tr.write_parquet(made(300_000), f"{folder}/large.parquet")
    sys.exit()
read = "Parquet" in what
small, data = made(5000), None if read else made(300_000)
run(small, f"{folder}/small.parquet")
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = peak()
kept = run(data, f"{folder}/large.parquet")
print((peak() - before) / (300_000 * 100 * 4) - read)
"""


def main() -> None:
    for what, limit in LIMITS.items():
        with tempfile.TemporaryDirectory() as folder:
            for part in ("write", what) if "Parquet" in what else (what,):
                command = [sys.executable, "-c", PROGRAM, part, folder]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"{what:<22} {float(done.stdout):5.2f} × X beside X, limit {limit:g}", flush=True)


if __name__ == "__main__":
    main()
