"""libmf: parallel SGD on blocks of the matrix, without biases."""

from peers.base import Peer


class Libmf(Peer):
    name = "libmf"
    iteration = "epoch"
    comparable = False
    note = "no biases; not deterministic with several threads"

    def __init__(self, key="libmf", non_negative=False):
        self.key, self.non_negative = key, non_negative
        self.solver = "non-negative factors, SGD" if non_negative else "SGD"

    def load_library(self):
        from libmf import mf

        self.library = mf

    def prepare(self, ratings, job):
        # The binding passes ids as f32, exact below 2^24.
        if max(job.meta["users"], job.meta["items"]) >= 1 << 24:
            raise ValueError("libmf's binding cannot number more than 2^24 users or items")
        return _rows(ratings.users, ratings.items, ratings.values)

    def fit(self, triples, job):
        # A step of SGD pays the penalty once for each rating: λ is count-scaled by nature. The L1 default is put off.
        self.model = self.library.MF(
            k=job.rank,
            nr_iters=job.iterations,
            nr_threads=job.threads,
            lambda_p1=0.0,
            lambda_q1=0.0,
            lambda_p2=job.regularization,
            lambda_q2=job.regularization,
            do_nmf=self.non_negative,
            quiet=True,
        )
        self.model.fit(triples)
        return []

    def predict(self, users, items):
        import numpy

        # `fit` of the binding reads its array by rows, but `predict` reads it by columns (`X[i]`, `X[i + n]`): given
        # rows it mixes up the pairs without complaint (RMSE 1.44 instead of 0.95 on ML-100K).
        return self.model.predict(numpy.asfortranarray(_rows(users, items)))


def _rows(*columns):
    """One f32 row a rating."""
    import numpy

    return numpy.ascontiguousarray(numpy.stack(columns, axis=1), dtype=numpy.float32)
