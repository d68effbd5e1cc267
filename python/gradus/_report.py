"""The report of a fit."""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Report:
    """The training report of a model.

    Attributes
    ----------
    iterations : int
        Iterations done, over all restarts.
    stop_reason : str
        ``converged``, ``no_improvement``, ``max_iterations``, ``solved`` (in closed form), ``stalled``
        (rounding allows no more progress) or
        ``interrupted``.
    objective : float
        The objective of the model kept.
    validation : float or None
        The score on held-out data, if there were any.
    metric : str
        The metric of that score.
    seconds : float
        Wall time of the fit; 0 in a model that was loaded from a file.
    certificate : dict or None
        A bound on the distance from the optimum: name, value and tolerance.
    chosen : list of dict
        The values chosen for parameters that were left out: ``parameter``, ``value`` and ``reason``.
    notes : list of str
        Remarks that are no errors.
    cautions : list of str
        The notes that say why the result may not be what was wanted; `fit` warns of them.
    trace : list of dict
        The course of the fit: ``iteration``, ``objective``, ``validation``.
    baselines : list of dict
        The held-out score of simpler models.
    """

    model: str
    iterations: int
    stop_reason: str
    objective: float
    validation: float | None = None
    metric: str = ""
    seconds: float = 0.0
    seed: int = 0
    best: int = 0
    higher_is_better: bool = False
    certificate: dict[str, Any] | None = None
    chosen: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)
    baselines: list[dict[str, Any]] = field(default_factory=list)
    _page: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def _of(cls, model: Any) -> Report:
        fields = json.loads(model.report)
        known = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        # JSON has no word for what is not a number, and what overflowed is not one.
        if known.get("objective") is None:
            known["objective"] = math.nan
        certificate = fields.get("certificate")
        if certificate is not None:
            certificate = {key: math.nan if value is None else value for key, value in certificate.items()}
        known["certificate"] = certificate
        for point in known.get("trace", []):
            if point["objective"] is None:
                point["objective"] = math.nan
        return cls(model=model.kind, _page=model.page, **known)

    @property
    def best_iterations(self) -> int:
        """Iterations of the start that the model was taken from; `iterations` counts those of all starts."""
        if not self.trace:
            return self.iterations
        kept = self.trace[min(self.best, len(self.trace) - 1)].get("restart", 0)
        return sum(1 for point in self.trace if point.get("restart", 0) == kept)

    @property
    def converged(self) -> bool:
        """Whether the algorithm got as near to the solution as it was asked to."""
        if self.certificate is not None:
            return bool(self.certificate["value"] <= self.certificate["tolerance"])
        return self.stop_reason in ("converged", "solved", "no_improvement")

    def plot(self, ax: Any = None) -> Any:
        """Draws objective and held-out score over the iterations with matplotlib; gives the axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("plot() needs matplotlib: pip install matplotlib") from error
        if ax is None:
            _, ax = plt.subplots()
        steps = range(1, len(self.trace) + 1)
        ax.plot(steps, [point["objective"] for point in self.trace], label="objective")
        ax.set_xlabel("iteration")
        ax.set_ylabel("objective")
        ax.set_title(f"{self.model}: {self.stop_reason.replace('_', ' ')}")
        held_out = [point["validation"] for point in self.trace]
        if any(score is not None for score in held_out):
            other = ax.twinx()
            other.plot(steps, held_out, color="tab:orange", label=f"held-out {self.metric}")
            other.set_ylabel(f"held-out {self.metric}")
        return ax

    def to_html(self, title: str | None = None) -> str:
        """The page that ``gradus report`` writes: one HTML file that needs nothing else."""
        return self._page(title or self.model)

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {
            "model": self.model,
            "iterations": self.iterations,
            "ended": self.stop_reason.replace("_", " "),
            "objective": f"{self.objective:.6g}",
        }
        if self.validation is not None:
            rows[f"held-out {self.metric}"] = f"{self.validation:.6g}"
        if self.certificate is not None:
            rows[self.certificate["name"]] = (
                f"{self.certificate['value']:.2e} (asked for {self.certificate['tolerance']:.2e})"
            )
        if self.seconds:
            rows["seconds"] = f"{self.seconds:.3g}"
        for choice in self.chosen:
            rows[f"{choice['parameter']} (chosen)"] = f"{choice['value']:.6g}: {choice['reason']}"
        if self.notes:
            rows["notes"] = "; ".join(self.notes)
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(str(name))}</th>"
            f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table>{cells}</table>{self._curve()}"

    def _curve(self) -> str:
        """The objective over the iterations as a small picture."""
        values = [point["objective"] for point in self.trace]
        if len(values) < 2:
            return ""
        low, high = min(values), max(values)
        span = (high - low) or 1.0
        points = " ".join(
            f"{10 + 300 * at / (len(values) - 1):.1f},{10 + 80 * (high - value) / span:.1f}"
            for at, value in enumerate(values)
        )
        return (
            "<svg width='320' height='100' role='img' aria-label='objective over iterations'>"
            f"<polyline points='{points}' fill='none' stroke='#3465a4' stroke-width='2'/></svg>"
        )
