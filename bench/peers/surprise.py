"""Surprise: SGD in Cython, one thread, one rating after the other."""

from peers.base import Peer


class Surprise(Peer):
    name = "Surprise"
    iteration = "epoch"
    comparable = False

    def __init__(self, key, algorithm, largest):
        self.key = key
        self.algorithm = algorithm
        self.largest = largest
        self.solver = {
            "SVD": "SVD, SGD",
            "SVDpp": "SVD++, SGD",
            "BaselineOnly": "biases only, ALS",
            "NMF": "non-negative factors, SGD",
        }[algorithm]
        self.note = "one thread only"
        if algorithm == "BaselineOnly":
            self.note += "; no factors: the floor to beat; its own regularisation"

    def load_library(self):
        import pandas
        import surprise

        self.library, self.pandas = surprise, pandas

    def prepare(self, ratings, job):
        frame = self.pandas.DataFrame({"user": ratings.users, "item": ratings.items, "rating": ratings.values})
        reader = self.library.Reader(rating_scale=(job.meta["low"], job.meta["high"]))
        return self.library.Dataset.load_from_df(frame, reader).build_full_trainset()

    def fit(self, trainset, job):
        algorithm = getattr(self.library, self.algorithm)
        if self.algorithm == "BaselineOnly":
            options = {} if job.defaults else {"bsl_options": {"method": "als", "n_epochs": job.iterations}}
            self.model = algorithm(verbose=False, **options)
        elif job.defaults:
            self.model = algorithm(random_state=job.seed)
        else:
            self.model = algorithm(
                n_factors=job.rank, n_epochs=job.iterations, reg_all=job.regularization, random_state=job.seed
            )
        self.model.fit(trainset)
        return []

    def predict(self, users, items):
        return [self.model.predict(user, item).est for user, item in zip(users.tolist(), items.tolist())]
