"""Classifiers of images, given as arrays."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from gradus import _gradus
from gradus._networks import WithWeights, checked_shape


class ImageClassifier(ClassifierMixin, WithWeights):
    """A model that predicts classes of images.

    Images are arrays of images × height × width, with × channels behind it where a pixel has several numbers, or rows of
    their numbers, pixel by pixel. Arrays of ``uint8`` have values from 0 (black) to 255 (white); others are taken as they are.
    """

    #: Height and width, and channels, of rows.
    image_shape: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Rows of any length are no images, which scikit-learn's checks of two axes would fit.
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: Any, y: Any) -> Any:
        """Learns the classes of images.

        Parameters
        ----------
        X : array, images × height × width (× channels), or images × numbers
            The images: ``uint8`` from 0 (black) to 255, or other numbers, taken as they are.
        y : array
            The class of each image: numbers or words.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None: {type(self).__name__} learns from it")
        images = self._as_images(X, None)
        y = column_or_1d(np.asarray(y), warn=True)
        check_classification_targets(y)
        if len(y) != len(images):
            raise ValueError(f"X has {len(images)} images and y {len(y)} classes")
        classes = np.unique(y)
        if classes.size < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, "
                f"but the data contains only one class: {classes[0]!r}"
            )
        by_name = {_name(one): one for one in classes.tolist()}
        if len(by_name) < classes.size:
            raise ValueError("y: two classes are written the same")
        pixels = images if images.dtype == np.uint8 else images.astype(np.float32)
        data = _gradus.Images(np.ascontiguousarray(pixels), [_name(one) for one in y.tolist()])
        self._fit_by(_gradus.fit_images, self._kind, json.dumps(self._record()), data, warm=self._warm())
        self.image_shape_ = images.shape[1:]
        self.n_features_in_ = int(np.prod(self.image_shape_))
        self._read_classes(by_name, classes)
        return self

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        names = _gradus.document_labels(model)
        self.image_shape_ = tuple(model.image_shape)
        self.n_features_in_ = model.n_features
        whole = all(name.lstrip("-").isdigit() for name in names)
        by_name = {name: int(name) if whole else name for name in names}
        self._read_classes(by_name, np.unique(np.array(list(by_name.values()))))

    def _read_classes(self, by_name: dict[str, Any], classes: np.ndarray) -> None:
        self.classes_ = classes
        names = _gradus.document_labels(self.model_)
        #: The place of each class among those of the model.
        self._order = np.array([names.index(_name(one)) for one in classes.tolist()])
        self._of_unit_ = self._unit_pixels()

    def _unit_pixels(self) -> bool:
        """Whether the pixels of training were from 0 to 1: bytes are divided by 255 then."""
        centre, factor = self._tensor("scaler.centre"), self._tensor("scaler.factor")
        assert centre is not None and factor is not None
        deviations = 1.0 / factor[factor > 0]
        return bool(centre.min() >= 0 and centre.max() <= 1 and (deviations <= 0.51).all())

    def _as_images(self, X: Any, shape: tuple[int, ...] | None) -> np.ndarray:
        """Images as an array of four axes; of this shape, if it is given."""
        array = np.asarray(X)
        if array.dtype.kind == "O":
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError("X: images must be of one size, and numbers") from error
        if array.dtype.kind not in "fiub":
            raise ValueError(f"X is an array of {array.dtype}; images are numbers")
        if array.ndim not in (2, 3, 4):
            raise ValueError(
                f"Expected an array of images × height × width (× channels), or images × numbers; got one of shape {array.shape}. "
                "Reshape your data"
            )
        if len(array) == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required")
        if array.ndim == 2:
            of_rows = shape if shape is not None else self._shape_of_rows(array.shape[1])
            if math.prod(of_rows) != array.shape[1]:
                raise ValueError(
                    f"X has {array.shape[1]} features, but {type(self).__name__} is expecting {math.prod(of_rows)} features as "
                    f"input: images of {' × '.join(map(str, of_rows))}"
                )
            array = array.reshape(len(array), *of_rows)
        if array.ndim == 3:
            array = array[..., np.newaxis]
        if shape is not None and array.shape[1:] != shape:
            raise ValueError(
                f"X has images of {' × '.join(map(str, array.shape[1:]))}, but {type(self).__name__} was fitted to images of "
                f"{' × '.join(map(str, shape))}"
            )
        if array.shape[3] > 4:
            raise ValueError(f"X has {array.shape[3]} channels in its last axis, more than 4")
        return array

    def _shape_of_rows(self, n: int) -> tuple[int, int, int]:
        given = self.image_shape
        if given is not None:
            return checked_shape(given)
        side = math.isqrt(n)
        if side * side == n:
            return (side, side, 1)
        side = math.isqrt(n // 3)
        if n % 3 == 0 and side * side == n // 3:
            return (side, side, 3)
        raise ValueError(
            f"X has {n} numbers in a row, which are no square image: name parameter `image_shape`, height and width (and channels)"
        )

    def _pixels(self, X: Any) -> np.ndarray:
        """Images as rows in the units of training."""
        _ = self._fitted
        images = self._as_images(X, self.image_shape_)
        rows = images.reshape(len(images), -1)
        if rows.dtype == np.uint8:
            return rows.astype(np.float32) / np.float32(255) if self._of_unit_ else rows.astype(np.float32)
        rows = rows.astype(np.float32, copy=False)
        if not np.isfinite(rows).all():
            raise ValueError("X: a pixel is not a finite number")
        if self._of_unit_ and rows.max() > 2:
            raise ValueError(
                f"X has values up to {rows.max():g}, and the images of training had pixels from 0 to 1: give such, or uint8"
            )
        return np.ascontiguousarray(rows)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``.

        Parameters
        ----------
        X : array of images, as `fit` takes them

        Returns
        -------
        array, images × classes
        """
        model, pixels = self._fitted, self._pixels(X)
        return model.probabilities_of(pixels)[:, self._order]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : array of images, as `fit` takes them
        """
        return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """The logits of the classes; for two classes that of the second minus that of the first.

        Parameters
        ----------
        X : array of images, as `fit` takes them
        """
        found = self._fitted.scores_of(self._pixels(X))
        if found.shape[1] == 1:
            return found[:, 0] if self._order[1] == 1 else -found[:, 0]
        return found[:, self._order]

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each image.

        Parameters
        ----------
        X : array of images, as `fit` takes them
        """
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]


class PatchClassifier(ImageClassifier):
    """A classifier of images by attention between their patches."""

    def attention(self, X: Any) -> np.ndarray:
        """How much the class token attends to each patch, in each block and head: where the network looks.

        Parameters
        ----------
        X : array of images, as `fit` takes them

        Returns
        -------
        array, images × blocks × heads × rows of patches × columns of patches
        """
        return _gradus.attention_maps(self._fitted, _gradus.Features.dense(self._pixels(X)))


def _name(value: Any) -> str:
    """A class as the model file holds it."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
