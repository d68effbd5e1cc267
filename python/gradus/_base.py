"""Shared parts of every estimator: parameters, the report, files, pickles."""

from __future__ import annotations

import copy
import importlib
import json
import math
import os
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from gradus import _gradus
from gradus._report import Report

#: Every kind of model, as the registry describes it, by name.
DESCRIBED: dict[str, dict[str, Any]] = {model["name"]: model for model in json.loads(_gradus.describe())}


_PACKAGE = str(Path(__file__).resolve().parent)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns, pointing at the line outside of the package that called into it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class Estimator(BaseEstimator):
    """The base of all estimators."""

    #: The name in the registry.
    _kind: ClassVar[str]

    # Parameters.

    def _record(self) -> dict[str, Any]:
        """The parameters as the model file holds them, checked for their types."""
        record = {}
        for spec in DESCRIBED[self._kind]["params"]:
            if spec["name"] == "seed":
                record["seed"] = _seed(self.random_state)
                continue
            record[spec["name"]] = _value(spec, self._given(spec["name"]))
        return record

    def _given(self, name: str) -> Any:
        """A parameter, as the model file can hold it."""
        return getattr(self, name)

    def _params_of(self, record: dict[str, Any]) -> dict[str, Any]:
        """The parameters of the constructor for those of a model file."""
        params = {}
        for spec in DESCRIBED[self._kind]["params"]:
            name = "random_state" if spec["name"] == "seed" else spec["name"]
            value = record.get(spec["name"], spec["default"])
            params[name] = None if value == "none" and isinstance(spec["kind"], list) else value
        return params

    # Fitting.

    def _progress(self) -> Any:
        """Returns the display of iterations: a line on the terminal that is written over, or cell output."""
        if not self.verbose:
            return None
        return _Progress(type(self).__name__)

    def _warm(self) -> Any:
        """The model to start from: that of the fit before, with `warm_start`."""
        if not getattr(self, "warm_start", False):
            return None
        return self.__dict__.get("model_")

    def _fit_by(self, fit: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Fits the model by a function of the extension, shows its progress, and takes what it gives."""
        progress = self._progress()
        model = fit(*arguments, progress=progress, **options)
        if progress is not None:
            progress.done()
        self._take(model)

    def _take(self, model: Any) -> None:
        """Takes what a fit gave, and passes on what is worth knowing as warnings."""
        self.model_ = model
        self.report_ = Report._of(model)
        self.n_iter_ = max(1, self.report_.best_iterations)
        report = self.report_
        if report.certificate is not None and not report.converged:
            certificate = report.certificate
            # More iterations do not help where rounding allows no more progress.
            advice = "scale the features or raise tol" if report.stop_reason == "stalled" else "raise max_iter or tol"
            warn(
                f"{type(self).__name__} stopped before it converged: {certificate['name']} "
                f"{certificate['value']:.2e}, asked for {certificate['tolerance']:.2e}; {advice}",
                ConvergenceWarning,
            )
        for caution in report.cautions:
            warn(f"{type(self).__name__}: {caution}")

    @property
    def _fitted(self) -> Any:
        try:
            return self.__dict__["model_"]
        except KeyError:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate "
                "arguments before using this estimator."
            ) from None

    # Files.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, which Python, Rust and the command line can open."""
        self._fitted.save(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Opens a model file of this kind; `gradus.load` opens one of any kind."""
        loaded = load(path)
        if not isinstance(loaded, cls):
            raise ValueError(
                f"{os.fspath(path)}: holds a model `{loaded._kind}`, not `{cls._kind}`"
            )
        return loaded

    def _adopt(self, model: Any) -> None:
        """Sets what a fit would have set, from a model that was loaded."""
        self.model_ = model
        self.report_ = Report._of(model)
        self.n_iter_ = max(1, self.report_.best_iterations)

    def _tensor(self, name: str) -> np.ndarray | None:
        found = self._fitted.tensor(name)
        if found is None:
            return None
        dtype, shape, data = found
        return np.frombuffer(data, dtype=dtype).reshape(shape).copy()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "model_" in state:
            # So that a copy goes its own way when one of the two takes in new ratings.
            state["model_"] = copy.copy(state["model_"])
        # Made anew from the model, whose page it can draw.
        state.pop("report_", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "model_" in self.__dict__:
            self.report_ = Report._of(self.model_)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"parameter `random_state` = {random_state}: must be at least 0")
        return int(random_state)
    if random_state is None or isinstance(random_state, np.random.RandomState):
        source = random_state if random_state is not None else np.random.mtrand._rand
        return int(source.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**31 - 1))
    raise TypeError(
        f"parameter `random_state` = {random_state!r}: must be an integer of at least 0, "
        "a numpy generator, or None for one drawn at random"
    )


def _value(spec: dict[str, Any], value: Any) -> Any:
    """A parameter as JSON has it.

    Raises TypeError for a type that cannot be right; the ranges are checked where the model is.
    """
    kind = spec["kind"]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        if spec["optional"]:
            return None
        if isinstance(kind, list) and any(word == "none" for word, _ in kind):
            return "none"
        if kind == "list[str]":
            return []
    elif kind == "list[str]":
        words = [value] if isinstance(value, str) else value
        if isinstance(words, (list, tuple, set, frozenset)) and all(isinstance(word, str) for word in words):
            # The order of a set is none.
            return sorted(words) if isinstance(words, (set, frozenset)) else list(words)
    elif kind == "bool":
        if isinstance(value, bool):
            return value
    elif kind == "int":
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
    elif kind == "float":
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise ValueError(f"parameter `{spec['name']}` = {value}: {spec['rule']}")
            return float(value)
    elif kind in ("list[float]", "list[int]"):
        # An array, too; text is a sequence of no numbers.
        if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1:
            numbers = [number.item() if isinstance(number, np.generic) else number for number in value]
            if all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
                if not all(map(math.isfinite, numbers)):
                    raise ValueError(f"parameter `{spec['name']}` = {numbers}: {spec['rule']}")
                if kind == "list[float]":
                    return [float(number) for number in numbers]
                if all(number == int(number) for number in numbers):
                    return [int(number) for number in numbers]
    elif isinstance(value, str):
        return value
    raise TypeError(f"parameter `{spec['name']}` = {value!r}: {spec['rule']}")


class _Progress:
    """Shows the steps of a fit: one line, written over."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(
        self,
        iteration: int,
        max_iterations: int,
        objective: float,
        validation: float | None,
        metric: str,
        seconds: float,
    ) -> None:
        held_out = "" if validation is None else f"  held-out {metric} {validation:.5g}"
        line = f"{self.name} {iteration}/{max_iterations}  objective {objective:.6g}{held_out}  {seconds:.1f} s"
        print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        print(file=sys.stderr, flush=True)


def _classes() -> dict[str, type[Estimator]]:
    # Here and not above: the family modules need this one.
    found = {
        name: getattr(importlib.import_module(f"gradus.{model['family']}"), model["class"], None)
        for name, model in DESCRIBED.items()
    }
    return {name: kind for name, kind in found.items() if kind is not None}


def models() -> dict[str, type[Estimator]]:
    """Every estimator by the name it has on the command line. Networks of images and texts have no class in Python; what learns
    from groups as well is in `gradus.audit`.

    >>> import gradus
    >>> gradus.models()["ridge"]
    <class 'gradus.linear.Ridge'>
    """
    return {name: kind for name, kind in _classes().items() if DESCRIBED[name]["family"] != "audit"}


def load(path: str | os.PathLike[str]) -> Any:
    """Opens a model file of any kind, written by Python, Rust or the command line.

    >>> import gradus, tempfile, os
    >>> from gradus.linear import Ridge
    >>> file = os.path.join(tempfile.mkdtemp(), "m.gradus")
    >>> Ridge(regularization=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).save(file)
    >>> gradus.load(file)
    Ridge(regularization=0.1)
    """
    model = _gradus.Model.load(os.fspath(path))
    kind = _classes().get(model.kind)
    if kind is None:
        raise ValueError(
            f"{os.fspath(path)} holds a model `{model.kind}`, which has no class in Python: use it from the command line or from Rust"
        )
    estimator = kind()
    estimator.set_params(**estimator._params_of(json.loads(model.params)))
    estimator._adopt(model)
    return estimator
