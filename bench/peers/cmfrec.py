"""cmfrec: collective matrix factorisation, here its explicit ALS without side information but who rated what."""

from peers.base import Peer


class Cmfrec(Peer):
    name = "cmfrec"

    def __init__(self, key, use_cg, implicit=False):
        self.key = key
        self.use_cg = use_cg
        self.implicit = implicit
        self.solver = "ALS, CG (3 steps)" if use_cg else "ALS, Cholesky"
        if not use_cg:
            self.note = "its RMSE varies from run to run with several threads"
        else:
            self.note = "its last iteration is Cholesky, as by default (`finalize_chol`)"

    def load_library(self):
        import cmfrec
        import scipy.sparse  # noqa: F401

        self.library = cmfrec

    def prepare(self, ratings, job):
        import numpy
        from scipy.sparse import coo_matrix

        self.known_users, self.known_items = numpy.unique(ratings.users), numpy.unique(ratings.items)
        shape = (job.meta["users"], job.meta["items"])
        return coo_matrix((ratings.values, (ratings.users, ratings.items)), shape=shape)

    def fit(self, matrix, job):
        if job.defaults:
            self.model = self.library.CMF(nthreads=job.threads, verbose=False)
        else:
            self.model = self.library.CMF(
                k=job.rank,
                lambda_=job.regularization,
                scale_lam=job.scaling == "count",
                method="als",
                use_cg=self.use_cg,
                niter=job.iterations,
                user_bias=True,
                item_bias=True,
                add_implicit_features=self.implicit,
                use_float=True,
                precompute_for_predictions=False,
                random_state=job.seed,
                nthreads=job.threads,
                verbose=False,
            )
        self.model.fit(matrix)
        return []

    def predict(self, users, items):
        import numpy

        # A matrix keeps re-indexing out of the timed fit, but then rows and columns without ratings get arbitrary
        # biases (items of ML-100K 1.0 too high). For those, what cmfrec predicts when fitted on a data frame: what is
        # known of mean and biases.
        model, predicted = self.model, self.model.predict(users, items)
        known_user, known_item = numpy.isin(users, self.known_users), numpy.isin(items, self.known_items)
        biases = numpy.where(known_user, model.user_bias_[users], 0)
        biases = biases + numpy.where(known_item, model.item_bias_[items], 0)
        return numpy.where(known_user & known_item, predicted, model.glob_mean_ + biases)
