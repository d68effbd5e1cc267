"""All peers, in the order of the tables."""

from peers.cmfrec import Cmfrec
from peers.gradus import Gradus
from peers.implicit import Implicit
from peers.libmf import Libmf
from peers.myfm import Myfm
from peers.surprise import Surprise

PEERS = [
    Gradus(),
    Cmfrec("cmfrec-cholesky", use_cg=False),
    Cmfrec("cmfrec-cg", use_cg=True),
    Implicit("implicit-cholesky", use_cg=False),
    Implicit("implicit-cg", use_cg=True),
    Libmf(),
    Surprise("surprise-svd", "SVD", largest=2_000_000),
    # Each of its steps walks all ratings of the user: an epoch grows with the square of the ratings a user has.
    Surprise("surprise-svdpp", "SVDpp", largest=200_000),
    Surprise("surprise-baseline", "BaselineOnly", largest=2_000_000),
]

# Of other models than that of the als suite; other suites name them.
MORE = [
    Gradus("gradus-sgd", "sgd", "SGD, biases", "epoch"),
    Gradus("gradus-svdpp", "svdpp", "SVD++, ALS and CG"),
    Gradus("gradus-bayes", "bayes", "Gibbs sampling"),
    Gradus("gradus-nmf", "nmfratings", "non-negative factors, coordinate descent"),
    Libmf("libmf-nmf", non_negative=True),
    Surprise("surprise-nmf", "NMF", largest=2_000_000),
    Myfm(),
    Cmfrec("cmfrec-implicit", use_cg=True, implicit=True),
]


def by_key(key):
    return next(peer for peer in [*PEERS, *MORE] if peer.key == key)
