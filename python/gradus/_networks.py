"""Networks: their weights in PyTorch's names and layouts; autoencoders."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from gradus import _gradus
from gradus._base import Estimator
from gradus._features import Classifier, Regressor
from gradus._report import Report
from gradus._transform import Transformer

#: Tensors of the model file that are no weights of layers.
_NOT_LAYERS = ("scaler.", "target.", "inputs.", "progress.")


class WithWeights(Estimator):
    """The methods of models whose weights can be exchanged with PyTorch."""

    def state_dict(self) -> dict[str, np.ndarray]:
        """The weights of the layers by the names that PyTorch has for them: ``hidden.0.weight``, outputs × inputs, ….

        ``{name: torch.from_numpy(array) for name, array in model.state_dict().items()}`` is what a module of PyTorch with these
        layers takes.
        """
        found = {}
        for name in self._fitted.tensors():
            dtype, _, _ = self._fitted.tensor(name)
            if dtype == "float32" and not name.startswith(_NOT_LAYERS):
                found[name] = self._tensor(name)
        return found

    def load_state_dict(self, weights: Mapping[str, Any]) -> Any:
        """Takes weights by name; those that are not given stay as they are.

        Parameters
        ----------
        weights : mapping of names to arrays or tensors
            Each of the shape that `state_dict` has; the counters of batch normalisation are left out.

        Returns
        -------
        self
        """
        arrays = []
        for name, value in weights.items():
            if str(name).endswith("num_batches_tracked"):
                continue
            value = value.detach().cpu().numpy() if hasattr(value, "detach") else value
            arrays.append((str(name), np.ascontiguousarray(value, dtype=np.float32)))
        self.model_ = _gradus.with_weights(self._fitted, arrays)
        self.report_ = Report._of(self.model_)
        return self


class NetworkClassifier(WithWeights, Classifier):
    """A network that predicts classes."""


class NetworkRegressor(WithWeights, Regressor):
    """A network that predicts numbers."""


def checked_shape(given: Any) -> tuple[int, int, int]:
    """Height, width and channels of the parameter ``image_shape``."""
    shape = tuple(given) if isinstance(given, (tuple, list, np.ndarray)) else ()
    if len(shape) not in (2, 3) or not all(isinstance(side, (int, np.integer)) and side > 0 for side in shape):
        raise ValueError(f"parameter `image_shape` = {given!r}: must be height and width, or height, width and channels")
    return (int(shape[0]), int(shape[1]), int(shape[2]) if len(shape) == 3 else 1)


class NetworkAutoencoder(WithWeights, Transformer):
    """A network that makes codes of samples, and samples of codes."""

    #: Height and width, and channels, of rows that are images.
    image_shape: Any

    def _features(self, X: Any, *, reset: bool, y: Any = None, **checks: Any) -> tuple[Any, Any, bool]:
        if self.image_shape is None and (reset or self._fitted.image_shape is None):
            return super()._features(X, reset=reset, y=y, **checks)
        shape = self._fitted.image_shape if self.image_shape is None else checked_shape(self.image_shape)
        array = np.asarray(X)
        if array.ndim in (3, 4):
            found = array.shape[1:] + (1,) * (4 - array.ndim)
            if found != tuple(shape):
                sides = " × ".join(map(str, found))
                raise ValueError(f"X has images of {sides}, and parameter `image_shape` says {' × '.join(map(str, shape))}")
            array = array.reshape(len(array), -1)
        features, y, single = super()._features(array, reset=reset, y=y, **checks)
        return (features.of_images(*shape) if reset else features), y, single

    def reconstruct(self, X: Any) -> np.ndarray:
        """The samples as they come back from their codes.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array, samples × features
        """
        return self.inverse_transform(self.transform(X))

    def reconstruction_errors(self, X: Any) -> np.ndarray:
        """The mean squared error of the reconstruction of each sample, in standard deviations of the features: large of samples that
        are unlike those of training.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features

        Returns
        -------
        array of samples
        """
        return self._of_features(X, "reconstruction_errors")

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the root of the mean of `reconstruction_errors`: the larger, the better.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features
        y : ignored
        """
        return -float(np.sqrt(np.mean(self.reconstruction_errors(X), dtype=np.float64)))
