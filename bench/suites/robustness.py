"""Robust accuracy of networks of gradus under its own ensemble of attacks, beside AutoAttack of torchattacks on the same images; and its
Square attack beside that of torchattacks at equal queries."""

import json
import os
import sys
from pathlib import Path

import datasets
import processes
from peers.gradus import ROOT, Gradus
from progress import say
from report import Section, ratio, wanted

SCRIPT = Path(__file__).resolve().parent.parent / "peers" / "torch_attacks.py"

#: Parameters of the networks.
NETWORKS = {
    "standard": ["--max-iter", 3],
    "adversarial": ["--max-iter", 5, "--adversarial", 0.3, "--adversarial-steps", 1],
}
#: The networks and the radii in linf of the ensembles.
ENSEMBLES = (("standard", 0.05), ("standard", 0.1), ("adversarial", 0.1), ("adversarial", 0.3))
#: The networks, the radii and the queries of Square.
SQUARES = (("standard", 0.1, 1000), ("adversarial", 0.3, 1000))


def run(options):
    folder = datasets.DATA / "mnist"
    if not folder.is_dir():
        say("robustness: skipped: no MNIST in the data folder")
        return
    python = os.environ.get("TORCH_PYTHON", sys.executable)
    try:
        processes.run([python, "-c", "import torch, torchattacks"])
    except (processes.Failed, OSError):
        say("robustness: skipped: TORCH_PYTHON must name a Python that has PyTorch and torchattacks")
        return
    gradus = Gradus()
    gradus.build()
    suite = Suite(python, folder, gradus.binary, options)
    for make in (suite.ensembles, suite.squares):
        section = make()
        if section.rows:
            yield section


class Suite:
    def __init__(self, python, folder, program, options):
        self.python, self.program, self.options = python, program, options
        self.train, self.test = (folder / f"{part}-images-idx3-ubyte.gz" for part in ("train", "t10k"))
        self.work = ROOT / "bench" / "work"
        self.work.mkdir(exist_ok=True)

    def model(self, name):
        path = self.work / f"robustness-cnn-{name}.gradus"
        if not path.exists():
            say(f"robustness: fits the {name} network, which is kept")
            words = ["fit", "cnn", self.train, "--architecture", "plain", "--channels", "16,32", *NETWORKS[name]]
            processes.run([self.program, *words, "--threads", self.options.threads, "-o", path], timeout=self.options.timeout, show=True)
        return path

    def both(self, name, eps, attack, queries):
        """The audit of gradus, and what torchattacks found on the same images."""
        model, options = self.model(name), self.options
        say(f"robustness: {name}, linf {eps}: {attack} of gradus")
        words = ["audit", "robustness", model, self.test, "--eps", eps, "--curve", eps, "--samples", options.images, "--threads", options.threads]
        if attack == "square":
            words += ["--attacks", "square", "--queries", queries]
        ours = json.loads(processes.run([self.program, *words, "--json", "-q"], timeout=options.timeout).stdout)
        rows = self.work / "robustness-rows.json"
        rows.write_text(json.dumps({"rows": ours["rows"]}))
        say(f"robustness: {name}, linf {eps}: {attack} of torchattacks")
        words = [self.python, SCRIPT, model, rows, self.test, eps, options.threads, attack, queries]
        theirs = json.loads(processes.run(words, timeout=options.timeout, show=True).stdout)
        if theirs["agreement"] < 1.0:
            say(f"robustness: the exported network agrees on {theirs['agreement']:.4f} of the images only")
        seconds = sum(one["seconds"] for one in ours["attacks"])
        return [
            f"{options.threads}",
            f"{options.images}",
            f"{ours['accuracy']['value']:.4f}",
            f"{ours['robust']['value']:.4f}",
            f"{theirs['robust']:.4f}",
            f"{seconds:.1f}",
            f"{theirs['seconds']:.1f}",
            ratio(seconds, theirs["seconds"]),
        ]

    def ensembles(self):
        columns = ["network", "radius", "threads", "images", "clean", "robust, gradus", "robust, AutoAttack", "gradus, s", "AutoAttack, s", "gradus ÷ AutoAttack"]
        section = Section("Attacks beside AutoAttack", columns)
        for name, eps in ENSEMBLES:
            if wanted(self.options, "ensemble", f"{name} {eps}"):
                section.rows.append([name, f"{eps}", *self.both(name, eps, "ensemble", 0)])
        section.notes = [
            "convolutional networks (3 × 3, 16 and 32 channels) fitted to MNIST by gradus, `standard` for 3 epochs and `adversarial` for 5 against one "
            "gradient step within 0.3 in linf, exported to PyTorch by their weights; the same test images; both ensembles are APGD-CE, targeted "
            "APGD-DLR, targeted FAB and Square (100 steps, 9 targets, 5,000 queries), AutoAttack is that of torchattacks",
        ]
        return section

    def squares(self):
        columns = ["network", "radius", "queries", "threads", "images", "clean", "robust, gradus", "robust, torchattacks", "gradus, s", "torchattacks, s", "gradus ÷ torchattacks"]
        section = Section("Square beside that of torchattacks", columns)
        for name, eps, queries in SQUARES:
            if wanted(self.options, "square", f"{name} {eps}"):
                section.rows.append([name, f"{eps}", f"{queries:,}", *self.both(name, eps, "square", queries)])
        section.notes = ["the same networks and images; both attacks evaluate an image at most so many times"]
        return section
