"""implicit: ALS of the implicit-feedback objective, the only one that it has."""

import time

from peers.base import Peer


class Implicit(Peer):
    name = "implicit"
    explicit = False
    has_clock = True
    note = "other objective, same solver class; RMSE n/a"

    def __init__(self, key, use_cg):
        self.key = key
        self.use_cg = use_cg
        self.solver = "iALS, CG (3 steps)" if use_cg else "iALS, Cholesky"

    def load_library(self):
        from implicit.cpu.als import AlternatingLeastSquares

        self.library = AlternatingLeastSquares

    def prepare(self, ratings, job):
        from scipy.sparse import csr_matrix

        shape = (job.meta["users"], job.meta["items"])
        return csr_matrix((ratings.values, (ratings.users, ratings.items)), shape=shape)

    def fit(self, matrix, job):
        model = self.library(
            factors=job.rank,
            regularization=job.regularization,
            use_cg=self.use_cg,
            iterations=job.iterations,
            num_threads=job.threads,
            random_state=job.seed,
        )
        clock, started = [], time.perf_counter()
        model.fit(
            matrix,
            show_progress=False,
            callback=lambda iteration, _seconds, _loss: clock.append((iteration + 1, time.perf_counter() - started)),
        )
        return clock
