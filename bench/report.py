"""Tables, and the record of a run. Standard library only."""

import datetime
import os
import platform
import statistics
import subprocess
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

BENCH = Path(__file__).resolve().parent
RESULTS = BENCH / "RESULTS.md"
QUIET = 0.5
LIBRARIES = ["implicit", "cmfrec", "scikit-surprise", "libmf", "myfm", "polars", "pandas", "pyarrow", "numpy", "scipy", "scikit-learn"]
LIBRARIES += ["celer", "skglm", "gensim"]


@dataclass
class Section:
    """One table with what a reader must know to read it."""

    title: str
    columns: list
    rows: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def markdown(self):
        lines = [f"### {self.title}", ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        lines.append("|" + "---|" * len(self.columns))
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"


def number(value, digits=3):
    """A number for a table; an en dash for none."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}" if value < 1 else f"{value:.{max(digits - 1, 0)}f}"


def ratio(value, base):
    return "–" if value is None or not base else f"{value / base:.2f}×"


def wanted(options, table, row):
    """Whether `--part` asks for this row."""
    part = getattr(options, "part", None)
    return part is None or part.search(f"{table}: {row}") is not None


def rmse(value):
    return "–" if value is None else f"{value:.4f}"


def mebibytes(value):
    return "–" if value is None else f"{value / 2**20:,.0f}"


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def best(values):
    values = [value for value in values if value is not None]
    return min(values) if values else None


def busy():
    """Processes that want a core (one-minute mean) when nothing is being measured yet."""
    return os.getloadavg()[0]


def machine():
    """The lines that say where numbers come from."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    return [
        f"machine: {model}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}",
        f"gradus: commit {_commit()}",
        f"peers: Python {platform.python_version()}, {libraries}",
    ]


def record(command, sections, load):
    """Appends a run to RESULTS.md."""
    date = datetime.date.today().isoformat()
    lines = ["", f"## {date}: `{command}`", "", *(f"- {line}" for line in machine())]
    lines += [f"- load average before the run: {load:.2f}" + (" (NOT a quiet machine)" if load > QUIET else ""), ""]
    with RESULTS.open("a") as file:
        file.write("\n".join(lines) + "\n" + "\n".join(section.markdown() for section in sections))


def _commit():
    def git(*arguments):
        return subprocess.run(["git", "-C", str(BENCH), *arguments], capture_output=True, text=True).stdout.strip()

    # The results themselves do not make a run's tree unclean.
    changed = git("status", "--porcelain", "--", ":/", ":(exclude,top)bench/RESULTS.md")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else "")
