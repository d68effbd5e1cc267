"""myFM: Bayesian factorisation machines by Gibbs sampling, one thread."""

from peers.base import Peer


class Myfm(Peer):
    key = "myfm"
    name = "myFM"
    solver = "Gibbs, one coordinate at a time"
    note = "one thread only"

    def load_library(self):
        import myfm
        import scipy.sparse  # noqa: F401

        self.library = myfm

    def prepare(self, ratings, job):
        """Users and items as relation blocks, its fastest form; each with its list where lists count."""
        import numpy
        from scipy.sparse import csr_matrix, diags, hstack, identity

        shape = job.meta["users"], job.meta["items"]
        rated = csr_matrix((numpy.ones(len(ratings.values)), (ratings.users, ratings.items)), shape=shape)

        def scaled(lists):
            counts = numpy.asarray(lists.sum(axis=1)).ravel()
            return diags(numpy.maximum(counts, 1) ** -0.5) @ lists

        users, items = identity(shape[0], format="csr"), identity(shape[1], format="csr")
        self.groups = list(shape)
        if job.implicit:
            users = hstack([users, scaled(rated)]).tocsr()
            items = hstack([items, scaled(rated.T.tocsr())]).tocsr()
            self.groups = [shape[0], shape[1], shape[1], shape[0]]
        self.blocks = users, items
        return self._pairs(ratings.users, ratings.items), ratings.values.astype(float)

    def fit(self, prepared, job):
        pairs, values = prepared
        self.model = self.library.MyFMRegressor(rank=job.rank, random_seed=job.seed)
        # It predicts with every draw it keeps; a tenth is its burn-in, as in its own examples.
        kept = max(1, job.iterations - job.iterations // 10)
        self.model.fit(
            None, values, X_rel=pairs, n_iter=job.iterations, n_kept_samples=kept, group_shapes=self.groups
        )
        return []

    def predict(self, users, items):
        return self.model.predict(None, self._pairs(users, items))

    def _pairs(self, users, items):
        of_user, of_item = self.blocks
        block = self.library.RelationBlock
        return [block(users.tolist(), of_user), block(items.tolist(), of_item)]
