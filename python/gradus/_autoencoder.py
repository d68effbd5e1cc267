"""The linear autoencoder: its matrices, and the angles to the principal components."""

from __future__ import annotations

import numpy as np

from gradus._transform import Transformer


class Autoencoder(Transformer):
    """A transformer that makes codes of samples, and samples of codes."""

    def _read_coefficients(self) -> None:
        dtype = np.float32 if self._single else np.float64
        self.encoder_ = np.ascontiguousarray(self._tensor("encoder").T.astype(dtype))
        self.decoder_ = np.ascontiguousarray(self._tensor("decoder").T.astype(dtype))
        self.mean_ = self._tensor("mean").astype(dtype, copy=False)
        self.angles_ = self._tensor("angles")
        self.n_components_ = len(self.encoder_)
