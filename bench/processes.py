"""Children: their answers, wall time and peak memory. Standard library only."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path


class Failed(Exception):
    """A child did not give an answer; the message says why."""


@dataclass(frozen=True)
class Child:
    stdout: str
    wall: float
    peak: int | None  # bytes; None when hidden below the peak of this process


def run(command, environment=None, timeout=None, show=False):
    """Runs a command to its end and measures it; with `show` what it says on stderr is shown as it is said."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        child = subprocess.Popen(
            [str(part) for part in command], stdout=out, stderr=None if show else err, env={**os.environ, **(environment or {})}
        )
        late = threading.Event()

        def stop():
            late.set()
            child.kill()

        timer = threading.Timer(timeout or 24 * 3600, stop)
        timer.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            child.kill()
            raise
        finally:
            timer.cancel()
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        stdout, stderr = out.read().decode(), err.read().decode()
    name = Path(str(command[0])).name
    if late.is_set():
        raise Failed(f"{name} was stopped after {timeout:.0f} s")
    if child.returncode != 0:
        lines = stderr.strip().splitlines() or ["no message"]
        raise Failed(f"{name} ended with {child.returncode}: {lines[-1][:300]}")
    # The kernel counts what this process held when it forked as the child's: a lower peak cannot be told.
    hidden = usage.ru_maxrss <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Child(stdout, wall, None if hidden else usage.ru_maxrss * 1024)


def worker(script, task, arguments, environment=None, timeout=None):
    """Runs one task of a worker script; its answer is a JSON file, for libraries print to stdout."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-W", "ignore", script, task, json.dumps(arguments), answer]
        child = run(command, environment, timeout)
        return json.loads(answer.read_text()), child
