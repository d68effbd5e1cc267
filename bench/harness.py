"""The command line of `bench/run`. Standard library only: a heavy parent would hide its children's peak memory."""

import argparse
import os
import re
import shlex

import datasets
import peers
import processes
import report
import selftest
from progress import say
from suites import als, bayes, cold, completion, curve, defaults, fairness, fasttext, formats, glm, glove, gmm, grid, ials, implicit, kmeans, lda, linear, load
from suites import metrics, mlp, nmf, nn, pca, python, quality, robustness, sentences, stream, svdpp, svm, svmgrid, text, texts, top, versions, words

SUITES = {
    "als": als,
    "load": load,
    "quality": quality,
    "defaults": defaults,
    "svdpp": svdpp,
    "implicit": implicit,
    "ials": ials,
    "bayes": bayes,
    "cold": cold,
    "curve": curve,
    "metrics": metrics,
    "linear": linear,
    "glm": glm,
    "grid": grid,
    "top": top,
    "svm": svm,
    "svmgrid": svmgrid,
    "pca": pca,
    "gmm": gmm,
    "python": python,
    "text": text,
    "texts": texts,
    "glove": glove,
    "kmeans": kmeans,
    "nmf": nmf,
    "nn": nn,
    "mlp": mlp,
    "robustness": robustness,
    "completion": completion,
    "lda": lda,
    "words": words,
    "fasttext": fasttext,
    "sentences": sentences,
    "fairness": fairness,
    "formats": formats,
    "stream": stream,
    "versions": versions,
}


def options(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/run",
        description="Benchmarks of gradus beside its Python peers.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("suite", choices=[*SUITES, "all", "selftest"], help="which tables")
    parser.add_argument("--record", action="store_true", help="append the tables to bench/RESULTS.md")
    parser.add_argument("--repeat", type=int, default=3, help="alternating rounds")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of each contestant")
    parser.add_argument("--peers", type=_list, default=[peer.key for peer in peers.PEERS], help="als: who takes part")
    parser.add_argument("--data", type=_list, default=list(als.DATA), help="als, quality, svdpp, top, nmf, completion: which data sets")
    parser.add_argument("--ranking", type=_list, default=list(implicit.DATA), help="implicit: which data sets")
    parser.add_argument("--sets", type=_list, default=list(defaults.DATA), help="defaults: which data sets")
    parser.add_argument("--tables", type=_list, default=list(cold.PARTS), help="cold: which tables")
    parser.add_argument("--rank", type=int, default=64, help="als, curve, top: factors")
    units = "als, curve: λ, scaled by counts; gradus takes it in units of the noise"
    parser.add_argument("--regularization", type=float, default=0.05, help=units)
    parser.add_argument("--iterations", type=int, default=10, help="als, top: ALS iterations of a full fit")
    parser.add_argument("--epochs", type=int, default=20, help="als: SGD epochs of a full fit")
    parser.add_argument("--span", type=_span, default=(1, 4), help="two iteration counts to difference, 'low,high'")
    parser.add_argument("--least", type=float, default=0.5, help="als: seconds that the difference must at least be")
    parser.add_argument("--target", type=float, help="als: held-out RMSE to reach (default: see bench/README.md)")
    parser.add_argument("--sizes", type=_sizes, default=[1, 3, 10, 30], help="curve: millions of ratings")
    parser.add_argument("--megabytes", type=float, help="words, glove: so much of the text (default: all of it)")
    parser.add_argument("--seeds", type=int, default=5, help="words, lda: fits behind each score")
    parser.add_argument("--full", action="store_true", help="grid: two million rows as well")
    parser.add_argument("--slow", action="store_true", help="also peers on data that takes them very long")
    parser.add_argument("--images", type=int, default=1000, help="robustness: images that are attacked")
    parser.add_argument("--part", type=re.compile, help="pca, nmf, kmeans, gmm, lda, nn, robustness, text, texts, fasttext, words, sentences: only rows that this regular expression finds in 'table: row'")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds after which one fit is stopped")
    chosen = parser.parse_args(arguments)
    known = {peer.key for peer in [*peers.PEERS, *peers.MORE]}
    lists = [("--peers", chosen.peers, known), ("--data", chosen.data, set(als.DATA))]
    lists += [("--ranking", chosen.ranking, set(implicit.DATA)), ("--sets", chosen.sets, set(defaults.DATA))]
    lists += [("--tables", chosen.tables, set(cold.PARTS))]
    for name, values, allowed in lists:
        wrong = [value for value in values if value not in allowed]
        if wrong:
            parser.error(f"{name}: {', '.join(wrong)} unknown; there are {', '.join(sorted(allowed))}")
    return chosen


def main(arguments):
    chosen = options(arguments)
    say(f"data folder: {'found' if datasets.DATA.exists() else 'absent, real data sets are skipped'}")
    load = report.busy()
    if load > report.QUIET:
        say(f"load average {load:.2f}: other work is running, so times mean little")
    chosen.gradus = gradus_builds()
    if chosen.suite == "selftest":
        return selftest.run(chosen)
    sections = []
    try:
        for name, suite in SUITES.items():
            if chosen.suite in (name, "all"):
                for section in suite.run(chosen):
                    print(section.markdown(), flush=True)
                    sections.append(section)
    finally:
        # What was measured before an interruption is still a result.
        if chosen.record and sections:
            report.record("bench/run " + shlex.join(arguments), sections, load)
    return 0 if sections else 1


def gradus_builds():
    """Whether gradus can take part; synthetic data needs it as well."""
    try:
        say("building gradus")
        peers.by_key("gradus").build()
    except processes.Failed as failure:
        say(f"gradus is left out, and so is synthetic data: {failure}")
        return False
    return True


def _list(text):
    return [part for part in text.split(",") if part]


def _span(text):
    low, high = (int(part) for part in text.split(","))
    if not 1 <= low < high:
        raise argparse.ArgumentTypeError("needs 1 ≤ low < high")
    return low, high


def _sizes(text):
    return [float(part) for part in text.split(",")]
