"""Generative models: samples, densities, and images as rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import column_or_1d

from gradus import _gradus
from gradus._base import _seed
from gradus._features import _classes, _labels
from gradus._networks import WithWeights, checked_shape
from gradus._transform import Transformer, WithDensity, _Unsupervised


class Generative(WithWeights, _Unsupervised):
    """A model that draws samples like those it learned from.

    Images are arrays of images × height × width (× channels), or rows of their numbers with the parameter ``image_shape``; arrays of
    ``uint8`` have values from 0 (black) to 255 (white), others are taken as they are.
    """

    #: Height and width, and channels, of rows that are images.
    image_shape: Any

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fits the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features; or array, images × height × width (× channels)
            Columns of words in a data frame become a feature for each word.
        y : ignored

        Returns
        -------
        self
        """
        self._fitted_to(self._fit(X, None))
        return self

    def _as_rows(self, X: Any) -> tuple[Any, tuple[int, int, int] | None]:
        """Rows of numbers, and the shape of the images that they are, if they are images."""
        given = None if self.image_shape is None else checked_shape(self.image_shape)
        if not hasattr(X, "ndim") or X.ndim not in (3, 4):
            if isinstance(X, np.ndarray) and X.dtype == np.uint8 and given is not None:
                X = X / 255.0
            return X, given
        array = np.asarray(X)
        found = array.shape[1:] + (1,) * (4 - array.ndim)
        if given is not None and found != given:
            sides = " × ".join(map(str, found))
            raise ValueError(f"X has images of {sides}, and parameter `image_shape` says {' × '.join(map(str, given))}")
        if array.dtype == np.uint8:
            array = array / 255.0
        return array.reshape(len(array), -1), found

    def _features(self, X: Any, *, reset: bool, y: Any = None, **checks: Any) -> tuple[Any, Any, bool]:
        rows, shape = self._as_rows(X) if reset else (self._rows_like_those_of_fit(X), None)
        features, y, single = super()._features(rows, reset=reset, y=y, **checks)
        return (features.of_images(*shape) if reset and shape is not None else features), y, single

    def _of_features(self, X: Any, method: str) -> Any:
        rows = self._rows_like_those_of_fit(X) if isinstance(X, np.ndarray) else X
        return super()._of_features(rows, method)

    def _rows_like_those_of_fit(self, X: Any) -> Any:
        rows, shape = self._as_rows(X)
        known = self._fitted.image_shape
        if shape is not None and known is not None and tuple(known) != shape:
            sides = " × ".join(map(str, shape))
            raise ValueError(f"X has images of {sides}; those of `fit` had {' × '.join(map(str, known))}")
        return rows

    def sample(
        self,
        n_samples: int = 1,
        random_state: Any = None,
        *,
        temperature: float | None = None,
        steps: int | None = None,
        label: str | None = None,
        guidance: float | None = None,
        complete: Any = None,
        keep: float = 0.5,
    ) -> np.ndarray:
        """New samples.

        Parameters
        ----------
        n_samples : int, default 1
        random_state : int, numpy generator or None
        temperature : float, optional
            Divisor of the logits, or factor of the deviation of the noise: less than 1 prefers what is probable.
        steps : int, optional
            Number of steps from noise to data, of a model that takes steps.
        label : str, optional
            Class to draw from, of a model that learned classes.
        guidance : float, optional
            Strength of the guidance towards that class.
        complete : array, optional
            Samples that are begun, as in `fit`: the first part of each is kept, the rest is drawn.
        keep : float, default 0.5
            Share that is kept: the upper rows of images, the first columns of tables.

        Returns
        -------
        array, samples × features; or images × height × width (× channels)
        """
        model = self._fitted
        begun = None if complete is None else self._features(complete, reset=False)[0]
        seed = _seed(random_state)
        drawn = model.draw(n_samples, seed, temperature, steps, label, guidance, begun, keep)
        return self._as_images(drawn)

    def _as_images(self, rows: np.ndarray) -> np.ndarray:
        shape = self._fitted.image_shape
        if shape is None:
            return rows
        return rows.reshape(len(rows), *(shape if shape[2] > 1 else shape[:2]))


class NetworkDensity(WithDensity, DensityMixin, Generative):
    """A generative model with a density."""


class WithPaths:
    """The methods of generative models with codes."""

    def interpolate(self, n_paths: int = 1, n_steps: int = 9, random_state: Any = None) -> np.ndarray:
        """Samples along paths between two random codes each, one path after another.

        Parameters
        ----------
        n_paths : int, default 1
        n_steps : int, default 9
            The samples on a path, with both ends.
        random_state : int, numpy generator or None

        Returns
        -------
        array of ``n_paths * n_steps`` samples
        """
        return self._as_images(self._fitted.interpolate(n_paths, n_steps, _seed(random_state)))


class NetworkCodes(WithPaths, WithDensity, Generative, Transformer):
    """A generative model with codes, and a bound on the density."""


class NetworkGenerator(WithPaths, Generative):
    """A generative model without a density."""


class NetworkClassDensity(NetworkDensity):
    """A generative model with a bound on the density, which draws from classes if it learned some."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fits the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame, samples × features; or array, images × height × width (× channels)
            Columns of words in a data frame become a feature for each word.
        y : array of samples, optional
            The class of each, if samples of a class are to be drawn.

        Returns
        -------
        self
        """
        if y is None or not self.conditional:
            return super().fit(X)
        features, target, _ = self._features(X, reset=True, y=y)
        self.classes_, codes = _classes(column_or_1d(target, warn=True))
        labels, order = _labels(self.classes_)
        if order is not None:
            codes = np.argsort(order)[codes]
        self._fit_by(
            _gradus.fit,
            self._kind,
            json.dumps(self._record()),
            features,
            codes=codes.astype(np.uint32),
            classes=labels,
            warm=self._warm(),
        )
        self._fitted_to(features)
        return self
