"""Robust accuracy of a network of gradus under its own ensemble of attacks, beside AutoAttack of torchattacks on the same images."""

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

#: The radii in linf.
RADII = (0.05, 0.1)
#: Images that are attacked.
IMAGES = 1000
#: Epochs of the network.
EPOCHS = 3


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
    yield table(python, folder, options)


def table(python, folder, options):
    columns = ["radius", "threads", "images", "clean", "robust, gradus", "robust, AutoAttack", "gradus, s", "AutoAttack, s", "gradus ÷ AutoAttack"]
    section = Section("Attacks beside AutoAttack", columns)
    work = ROOT / "bench" / "work"
    work.mkdir(exist_ok=True)
    gradus = Gradus()
    gradus.build()
    program = gradus.binary
    model = work / "robustness-cnn.gradus"
    train, test = (folder / f"{part}-images-idx3-ubyte.gz" for part in ("train", "t10k"))
    words = ["fit", "cnn", train, "--architecture", "plain", "--channels", "16,32", "--max-iter", EPOCHS, "-o", model]
    if not model.exists():
        processes.run([program, *words, "-q"], timeout=options.timeout)
    threads = options.threads
    for eps in RADII:
        if not wanted(options, "robustness", f"linf {eps}"):
            continue
        say(f"robustness: linf {eps}: gradus")
        audit = ["audit", "robustness", model, test, "--eps", eps, "--curve", eps, "--samples", IMAGES, "--threads", threads]
        ours = json.loads(processes.run([program, *audit, "--json", "-q"], timeout=options.timeout).stdout)
        rows = work / "robustness-rows.json"
        rows.write_text(json.dumps({"rows": ours["rows"]}))
        say(f"robustness: linf {eps}: AutoAttack")
        theirs = json.loads(processes.run([python, SCRIPT, model, rows, test, eps, threads], timeout=options.timeout).stdout)
        seconds = sum(attack["seconds"] for attack in ours["attacks"])
        section.rows.append(
            [
                f"{eps}",
                f"{threads}",
                f"{IMAGES}",
                f"{ours['accuracy']['value']:.4f}",
                f"{ours['robust']['value']:.4f}",
                f"{theirs['robust']:.4f}",
                f"{seconds:.1f}",
                f"{theirs['seconds']:.1f}",
                ratio(seconds, theirs["seconds"]),
            ]
        )
        if theirs["agreement"] < 1.0:
            say(f"robustness: the exported network agrees on {theirs['agreement']:.4f} of the images only")
    section.notes = [
        "a convolutional network (3 × 3, 16 and 32 channels) fitted to MNIST by gradus, exported to PyTorch by its weights; the same test "
        "images; both ensembles are APGD-CE, targeted APGD-DLR, targeted FAB and Square (100 steps, 9 targets, 5,000 queries), "
        "AutoAttack is that of torchattacks",
    ]
    return section
