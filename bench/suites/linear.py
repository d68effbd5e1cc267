"""Linear models: seconds to one quality, on dense and on sparse samples, beside what solves the same problem.

A table is a `Problem`: to add one (ridge, logistic, …), give its contestants and how each is run and judged.
"""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import datasets
import processes
from peers.base import WORKER
from peers.gradus import ROOT
from progress import say
from report import Section, median, number, ratio

EXAMPLE = ROOT / "target" / "release" / "examples" / "lasso_time"
DATA = {
    "dense": {"kind": "dense", "n": 200_000, "d": 100},
    "sparse": {"kind": "sparse", "n": 50_000, "d": 100_000, "nnz": 3_000_000},
}
SHARES = (0.1, 0.01)
PATH = 100


@dataclass(frozen=True)
class Problem:
    """What is solved, and by whom."""

    title: str
    l1_ratio: float
    contestants: tuple


PROBLEMS = (
    Problem("lasso", 1.0, ("gradus", "sklearn", "celer", "skglm")),
    Problem("elastic net, ρ = 0.5", 0.5, ("gradus", "sklearn", "celer", "skglm")),
)


def run(options):
    if options.gradus:
        manifest = ROOT / "Cargo.toml"
        processes.run(["cargo", "build", "--release", "--manifest-path", manifest, "--workspace", "--examples"])
    for kind, shape in DATA.items():
        folder = made(kind, shape)
        for problem in PROBLEMS:
            yield table(problem, kind, folder, options)


def made(name, shape):
    """The data, made once."""
    folder = datasets.WORK / f"linear-{name}"
    if not (folder / "meta.json").exists():
        say(f"linear: making {name} data")
        processes.worker(WORKER, "make_linear", {"folder": str(folder), **shape})
    return folder


def table(problem, name, folder, options, shares=SHARES, path=PATH):
    meta = json.loads((folder / "meta.json").read_text())
    shape = f"{meta['n']:,} × {meta['d']:,} {name}" + (f", {meta['nnz']:,} entries" if name == "sparse" else "")
    section = Section(
        f"{problem.title}, {shape}",
        ["penalty", "peer", "s (median)", "÷ gradus", "gap", "objective above the best", "non-zeros"],
    )
    largest = meta["largest"] / problem.l1_ratio
    grids = [(f"{share} λ_max", [share * largest]) for share in shares]
    steps = [1e-3 ** (at / (path - 1)) for at in range(path)]
    grids.append((f"path of {path}", [largest * step for step in steps]))
    failures = []
    for label, lambdas in grids:
        contestants = [peer for peer in problem.contestants if peer != "gradus" or options.gradus]
        rows(section, problem, folder, (label, lambdas), contestants, options, failures)
    section.notes = [
        f"{options.repeat} alternating rounds, {options.threads} threads, each fit in its own process; peers are "
        "compiled before the clock starts and get column order, gradus orders columns itself, on its clock",
        "gap and excess by one evaluator (numpy) for all, as shares; of a path, the largest over its penalties",
        *failures,
    ]
    return section


def rows(section, problem, folder, grid, contestants, options, failures):
    label, lambdas = grid
    with tempfile.TemporaryDirectory() as scratch:
        seconds, solutions = {peer: [] for peer in contestants}, {}
        for turn in range(options.repeat):
            for peer in list(seconds):
                say(f"linear: {section.title}: {label}: round {turn + 1} of {options.repeat}, {peer}")
                try:
                    took, solutions[peer] = fit(peer, problem, folder, lambdas, Path(scratch), options)
                    seconds[peer].append(took)
                except processes.Failed as failure:
                    failures.append(f"{peer}, {label}: {failure}")
                    del seconds[peer]
        arguments = {"folder": str(folder), "l1_ratio": problem.l1_ratio, "lambdas": lambdas, "solutions": solutions}
        judged, _ = processes.worker(WORKER, "judge_linear", arguments)
    base = median(seconds.get("gradus", []))
    for peer, times in seconds.items():
        found, took = judged[peer], median(times)
        quality = [f"{found['gap']:.0e}", f"{found['excess']:.0e}", f"{found['nonzeros']:,}"]
        section.rows.append([label, peer, number(took), ratio(took, base), *quality])


def fit(peer, problem, folder, lambdas, scratch, options):
    """Seconds, and the file with the solution."""
    threads = str(options.threads)
    if peer == "gradus":
        solution = scratch / "gradus.bin"
        # Penalties go through a file: their last digits count.
        grid = scratch / "lambdas.txt"
        grid.write_text("\n".join(map(repr, lambdas)))
        (data,) = [path for path in folder.iterdir() if path.name in ("data.bin", "data.svm")]
        command = [EXAMPLE, data, folder / "meta.json", problem.l1_ratio, grid, solution]
        child = processes.run(command, {"RAYON_NUM_THREADS": threads}, options.timeout)
        return float(child.stdout), str(solution)
    solution = scratch / f"{peer}.npz"
    arguments = {"peer": peer, "folder": str(folder), "l1_ratio": problem.l1_ratio, "lambdas": lambdas}
    arguments |= {"solution": str(solution), "threads": options.threads}
    environment = {name: threads for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
    answer, _ = processes.worker(WORKER, "fit_linear", arguments, environment, options.timeout)
    return answer["seconds"], str(solution)
