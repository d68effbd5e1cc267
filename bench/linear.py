"""Linear models in a worker process: the data, the peers' fits, and the judge of all solutions."""

import json
import time
from pathlib import Path

# Each contestant is brought to this gap, in units of the objective of no coefficients.
GAP = 1e-7


def make_linear(folder, kind, n, d, nnz=None, seed=7):
    """Writes features and target once for all: `.npy`/`.npz` for the peers, `.bin`/`.svm` for gradus."""
    import numpy
    import scipy.sparse

    random = numpy.random.default_rng(seed)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "dense":
        # Neighbours correlate by a half, means differ, a fifth of the features matters.
        base = random.standard_normal((n, d))
        x = base.copy()
        x[:, 1:] = 0.5 * base[:, :-1] + numpy.sqrt(0.75) * base[:, 1:]
        x += random.uniform(-2, 2, d)
        w = numpy.zeros(d)
        w[random.choice(d, d // 5, replace=False)] = random.standard_normal(d // 5)
        y = x @ w + 2 * random.standard_normal(n)
        numpy.save(folder / "x.npy", x)
        numpy.c_[x, y].astype("<f8").tofile(folder / "data.bin")
    else:
        # Words of a text: frequencies by a power law, tf-idf, rows of length 1.
        p = 1 / (numpy.arange(d) + 10.0)
        columns = random.choice(d, round(nnz * 1.04), p=p / p.sum())
        rows = random.integers(0, n, len(columns))
        x = scipy.sparse.coo_matrix((numpy.ones(len(columns)), (rows, columns)), (n, d)).tocsr()
        x.sum_duplicates()
        frequency = numpy.bincount(x.indices, minlength=d)
        x.data = (1 + numpy.log(x.data)) * (numpy.log((1 + n) / (1 + frequency)) + 1)[x.indices]
        norms = numpy.sqrt(numpy.asarray(x.multiply(x).sum(1)).ravel())
        x = (scipy.sparse.diags(1 / numpy.maximum(norms, 1e-300)) @ x).tocsr()
        w = numpy.zeros(d)
        matter = random.choice(min(d, 5000), min(d // 10, 500), replace=False)
        w[matter] = 5 * random.standard_normal(len(matter))
        y = x @ w
        y += 0.5 * y.std() * random.standard_normal(n)
        scipy.sparse.save_npz(folder / "x.npz", x)
        with (folder / "data.svm").open("w") as file:
            for row in range(n):
                part = slice(x.indptr[row], x.indptr[row + 1])
                entries = sorted(zip(x.indices[part].tolist(), x.data[part].tolist()))
                file.write(repr(float(y[row])) + "".join(f" {c + 1}:{v!r}" for c, v in entries) + "\n")
    numpy.save(folder / "y.npy", y)
    q = x.T @ (y - y.mean()) - numpy.asarray(x.mean(0)).ravel() * (y - y.mean()).sum()
    meta = {"n": n, "d": d, "nnz": int(x.nnz) if kind == "sparse" else n * d, "largest": float(abs(q).max() / n)}
    (folder / "meta.json").write_text(json.dumps({"kind": kind, **meta}))
    return meta


def _open(folder):
    import numpy
    import scipy.sparse

    folder = Path(folder)
    meta = json.loads((folder / "meta.json").read_text())
    y = numpy.load(folder / "y.npy")
    if meta["kind"] == "dense":
        # The order that scikit-learn, celer and skglm want: they would copy any other.
        return numpy.asfortranarray(numpy.load(folder / "x.npy")), y, meta
    return scipy.sparse.load_npz(folder / "x.npz").tocsc(), y, meta


def fit_linear(peer, folder, l1_ratio, lambdas, solution, threads):
    """Fits one peer for one penalty or a path of them; the clock covers the fit alone."""
    import numpy
    from scipy.sparse import csr_matrix

    x, y, meta = _open(folder)
    fit = PEERS[peer]
    # Compiles what is compiled when first used; a tenth of the rows is enough for that.
    if peer != "sklearn":
        few = max(meta["n"] // 100, 50)
        fit(x[:few].copy(order="F") if meta["kind"] == "dense" else x[:few].tocsc(), y[:few], l1_ratio, lambdas[:1])
    started = time.perf_counter()
    coefficients = fit(x, y, l1_ratio, lambdas)
    seconds = time.perf_counter() - started
    numpy.savez(solution, **_parts(csr_matrix(coefficients)))
    return {"seconds": seconds}


def _parts(w):
    return {"indptr": w.indptr, "indices": w.indices, "values": w.data, "shape": w.shape}


def _sklearn(x, y, l1_ratio, lambdas):
    import numpy
    from sklearn.linear_model import ElasticNet, Lasso, enet_path

    # Its gap is a share of ‖y‖², without the half.
    options = {"tol": GAP / 2, "max_iter": 1_000_000}
    if len(lambdas) == 1:
        model = Lasso(lambdas[0], **options) if l1_ratio == 1 else ElasticNet(lambdas[0], l1_ratio=l1_ratio, **options)
        return model.fit(x, y).coef_[None, :]
    # The path functions do not centre; as LassoCV does, dense features are centred before.
    y = y - y.mean()
    if isinstance(x, numpy.ndarray):
        x = x - x.mean(0)
        return enet_path(x, y, l1_ratio=l1_ratio, alphas=lambdas, **options)[1].T
    # Sparse features are centred as the estimator does, warm from one penalty to the next.
    model = ElasticNet(l1_ratio=l1_ratio, warm_start=True, **options)
    return numpy.array([model.set_params(alpha=a).fit(x, y).coef_.copy() for a in lambdas])


def _celer(x, y, l1_ratio, lambdas):
    import numpy
    from celer import ElasticNet, Lasso

    # Its gap is a share of ‖y‖²/n.
    options = {"tol": GAP / 2, "warm_start": True, "max_iter": 1000}
    model = Lasso(**options) if l1_ratio == 1 else ElasticNet(l1_ratio=l1_ratio, **options)
    return numpy.array([model.set_params(alpha=a).fit(x, y).coef_.copy() for a in lambdas])


def _skglm(x, y, l1_ratio, lambdas):
    import numpy
    from skglm import ElasticNet, Lasso

    # It stops by the violation of the optimality conditions, not by the gap.
    options = {"tol": 1e-4 * float(lambdas[-1]), "warm_start": True, "max_iter": 1000}
    model = Lasso(**options) if l1_ratio == 1 else ElasticNet(l1_ratio=l1_ratio, **options)
    return numpy.array([model.set_params(alpha=a).fit(x, y).coef_.copy() for a in lambdas])


PEERS = {"sklearn": _sklearn, "celer": _celer, "skglm": _skglm}


def judge_linear(folder, l1_ratio, lambdas, solutions):
    """For each solution: its largest gap and excess over the best, in units of the objective of none; non-zeros."""
    import numpy
    from scipy.sparse import csr_matrix

    x, y, meta = _open(folder)
    n = meta["n"]
    y = y - y.mean()
    unit = 0.5 * (y @ y) / n
    means = numpy.asarray(x.mean(0)).ravel()
    objectives, found = {}, {}
    for name, path in solutions.items():
        if path.endswith(".npz"):
            parts = numpy.load(path)
            parts = [parts[key] for key in ("values", "indices", "indptr", "shape")]
        else:
            # As `lasso_time` writes it: rows, entries, then starts, features and values.
            data = numpy.fromfile(path, "<f8")
            rows, entries = int(data[0]), int(data[1])
            starts, indices, values = numpy.split(data[2:], [rows + 1, rows + 1 + entries])
            parts = [values, indices.astype(numpy.int64), starts.astype(numpy.int64), (rows, meta["d"])]
        w = csr_matrix((parts[0], parts[1], parts[2]), shape=tuple(parts[3]))
        gaps, objectives[name] = [], []
        for at, alpha in enumerate(lambdas):
            beta = w[at].toarray().ravel()
            a, b = alpha * l1_ratio, alpha * (1 - l1_ratio)
            r = y - x @ beta + means @ beta
            c = (x.T @ r - means * r.sum()) / n - b * beta
            whole = (r @ r) / n + b * (beta @ beta)
            shrink = min(max(1 + beta @ c / whole, 0), a / max(abs(c).max(), 1e-300))
            gap = 0.5 * (1 - shrink) ** 2 * whole + (a * abs(beta) - shrink * beta * c).sum()
            gaps.append(gap / unit)
            penalty = a * abs(beta).sum() + 0.5 * b * (beta @ beta)
            objectives[name].append(0.5 * (r @ r) / n + penalty)
        found[name] = {"gap": max(gaps), "nonzeros": int(w[len(lambdas) - 1].count_nonzero())}
    best = numpy.min(list(objectives.values()), axis=0)
    for name in found:
        found[name]["excess"] = float(numpy.max(numpy.array(objectives[name]) / best - 1))
    return found
