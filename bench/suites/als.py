"""Time of an ALS iteration, time to a held-out error, memory: gradus beside its peers."""

import datasets
import peers
import processes
from peers.base import Job
from progress import say
from report import Section, best, mebibytes, median, number, ratio, rmse

DATA = {
    "ml-100k": datasets.ml_100k,
    "ml-1m": datasets.ml_1m,
    "synthetic-20m": datasets.synthetic,
}
WIDEST = 512  # iterations; where doubling stops


def run(options):
    for name in options.data:
        if name.startswith("synthetic") and not options.gradus:
            say(f"als: {name} is skipped: it needs `gradus make`")
            continue
        try:
            dataset = DATA[name]()
        except datasets.Absent as absent:
            say(f"als: {name} is skipped: {absent}")
            continue
        yield table(dataset, options)


def table(dataset, options):
    """One data set: first the held-out error after each number of iterations, then alternating timed rounds."""
    contestants, left_out = _contestants(dataset, options)
    base = Job(str(dataset.folder), rank=options.rank, regularization=options.regularization, threads=options.threads)
    entries = []
    for peer in contestants:
        say(f"als: {dataset.title}: error of {peer.key}")
        try:
            entries.append(Entry(peer, base, options))
        except processes.Failed as failure:
            left_out.append(f"{peer.key} failed: {failure}")
    target = options.target or default_target(entries)
    for entry in entries:
        say(f"als: {dataset.title}: iterations needed by {entry.peer.key}")
        entry.find(target)
        entry.widen()
    for turn in range(options.repeat):
        for entry in entries:
            say(f"als: {dataset.title}: round {turn + 1} of {options.repeat}, {entry.peer.key}")
            entry.time()
    return _section(dataset, options, entries, target, left_out)


def default_target(entries):
    """What every exact ALS reached at its last iteration, with 0.1 % to spare: no contestant sets it alone."""
    finals = [entry.final for entry in entries if entry.peer.comparable and entry.final is not None]
    return 1.001 * max(finals) if finals else None


class Entry:
    """One contestant on one data set."""

    def __init__(self, peer, base, options):
        self.peer, self.base, self.options = peer, base, options
        self.last = options.iterations if peer.comparable else options.epochs
        self.errors = {}  # held-out RMSE after so many iterations
        self.reached = None  # the least number of iterations seen at or below the target
        self.low, self.high = options.span
        self.first, self.full, self.to_target, self.memory = [], [], [], []
        if peer.name == "gradus":
            self.errors = dict(peer.trace(self._job(self.last), options.timeout))
            # The full fit's error by the program's own evaluation, as a user would ask for it.
            self.last = max(self.errors)
            self.errors[self.last] = peer.run(self._job(self.last, score=True), options.timeout).rmse
        elif peer.explicit:
            self._error(self.last)

    @property
    def final(self):
        return self.errors.get(self.last)

    def find(self, target):
        """The least number of iterations that reaches the target: restarts at 1, 2, 4, …, then bisection."""
        if target is None or not self.peer.explicit:
            return
        if self.peer.name == "gradus":
            self.reached = min((at for at, error in self.errors.items() if error <= target), default=None)
            return
        low, high = 0, 1
        while high < self.last and self._error(high) > target:
            low, high = high, min(2 * high, self.last)
        if self._error(high) > target:
            return
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._error(middle) <= target else (middle, high)
        self.reached = high

    def time(self):
        """One round of timed fits."""
        if self.peer.has_clock:
            result = self._run(self.last if self.peer.explicit else self.high)
            (self.low, first, _), (self.high, full, _) = result.trace[0], result.trace[-1]
            self.to_target.append(self.reached and result.seconds_at(self.reached))
        else:
            runs = {count: self._run(count) for count in sorted({self.low, self.high, self.reached or self.high})}
            result, first, full = runs[self.high], runs[self.low].seconds, runs[self.high].seconds
            self.to_target.append(self.reached and runs[self.reached].seconds)
        self.memory.append(result.memory)
        self.first.append(first)
        self.full.append(full)

    def widen(self):
        """Doubles the higher count until the difference stands out of the noise of starting a fit."""
        if self.peer.has_clock:
            return
        first = self._run(self.low).seconds
        while self.high < WIDEST and self._run(self.high).seconds - first < self.options.least:
            self.high *= 2

    def per_iteration(self, of):
        """Seconds an iteration by the median or the best times; none when noise has eaten the difference."""
        if not self.full or self.high == self.low:
            return None
        seconds = (of(self.full) - of(self.first)) / (self.high - self.low)
        return seconds if seconds > 0 else None

    def set_up(self):
        seconds = self.per_iteration(median)
        return None if seconds is None else max(0.0, median(self.first) - self.low * seconds)

    def _run(self, iterations):
        return self.peer.run(self._job(iterations), self.options.timeout)

    def _error(self, iterations):
        if iterations not in self.errors:
            self.errors[iterations] = self.peer.run(self._job(iterations, score=True), self.options.timeout).rmse
        return self.errors[iterations]

    def _job(self, iterations, score=False):
        return Job(**{**vars(self.base), "iterations": iterations, "score": score})


def _contestants(dataset, options):
    chosen, left_out = [], []
    for peer in [*peers.PEERS, *peers.MORE]:
        if peer.key not in options.peers:
            continue
        if peer.name == "gradus" and not options.gradus:
            left_out.append(f"{peer.key}: does not build")
        elif peer.largest and dataset.meta["train"] > peer.largest and not options.slow:
            left_out.append(f"{peer.key}: far too slow for this size (`--slow` runs it)")
        else:
            chosen.append(peer)
    return chosen, left_out


def _section(dataset, options, entries, target, left_out):
    gradus = next((entry for entry in entries if entry.peer.key == "gradus"), None)
    base_iteration = gradus.per_iteration(median) if gradus else None
    base_target = median(gradus.to_target) if gradus else None
    goal = f"s to RMSE ≤ {target:.4f}" if target else "s to target"
    section = Section(
        f"ALS, rank {options.rank}, {dataset.describe()}",
        ["peer", "solver", "s/iteration (median)", "best", "÷ gradus", "set-up s", "RMSE", goal, "÷ gradus"]
        + ["MiB above import", "remarks"],
    )
    for entry in entries:
        seconds, reaching = entry.per_iteration(median), median(entry.to_target)
        unit = "" if entry.peer.iteration == "iteration" else f" / {entry.peer.iteration}"
        section.rows.append(
            [
                entry.peer.name,
                entry.peer.solver,
                number(seconds) + unit,
                number(entry.per_iteration(best)),
                ratio(seconds, base_iteration) if entry.peer.comparable else "–",
                number(entry.set_up()),
                f"{rmse(entry.final)} ({entry.last})" if entry.final is not None else "n/a",
                _reaching(entry, reaching, target),
                ratio(reaching, base_target),
                mebibytes(median(entry.memory)),
                entry.peer.note,
            ]
        )
    section.notes = [
        f"{options.threads} threads, λ = {options.regularization} scaled by counts, {options.repeat} alternating "
        "rounds; in brackets the iterations or epochs used",
        "gradus takes λ in units of the noise about the biases (0.6 to 1 star), and has a penalty of its own on biases: its "
        "objective is near that of the peers, not the same",
        "without a clock of their own, peers are fitted with two iteration counts and differenced, at least "
        f"{options.least:g} s apart; their time to the target is that of a fresh fit with the fewest iterations that "
        "reach it (found by restarts)",
        *left_out,
    ]
    return section


def _reaching(entry, seconds, target):
    if not entry.peer.explicit or target is None:
        return "n/a"
    return f"{number(seconds)} ({entry.reached})" if entry.reached else f"not in {entry.last}"
