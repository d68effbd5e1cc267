"""A step of training of small networks beside PyTorch on the CPU: same layers, batch and threads."""

import json
import os
import sys
from pathlib import Path

import processes
from peers.gradus import ROOT
from progress import say
from report import Section, median, ratio, wanted

EXAMPLE = ROOT / "target" / "release" / "examples" / "step_time"
SCRIPT = Path(__file__).resolve().parent.parent / "peers" / "torch_steps.py"

#: What the two programs build: `crates/gradus-nn/examples/step_time.rs` and `peers/torch_steps.py`.
NETWORKS = {
    "mlp": "perceptron 784-512-512-10, ReLU, batch 256",
    "cnn": "convolutions 3 × 3 of 32, 64, 128 channels, batch norm, 28 × 28, batch 128",
    "unet": "U-Net of diffusion, 32, 64, 128 channels, group norm, attention at 7 × 7, 28 × 28, batch 32",
    "gpt": "decoder, 4 layers, d = 128, 4 heads, 65 tokens, context 64, batch 12",
}
THREADS = (1, 2)
SECONDS = 3


def run(options):
    python = os.environ.get("TORCH_PYTHON", sys.executable)
    try:
        version = processes.run([python, "-c", "import torch; print(torch.__version__)"]).stdout.strip()
    except (processes.Failed, OSError):
        say("nn: skipped: TORCH_PYTHON must name a Python that has PyTorch")
        return
    manifest = ROOT / "Cargo.toml"
    processes.run(["cargo", "build", "--release", "--manifest-path", manifest, "-p", "gradus-nn", "--example", "step_time"])
    yield table(python, version, options)


def table(python, version, options):
    columns = ["network", "threads", "gradus, ms", "PyTorch, ms", "gradus ÷ PyTorch"]
    columns += ["gradus, processor ms", "PyTorch, processor ms", "gradus ÷ PyTorch"]
    section = Section("A step of training beside PyTorch", columns)
    for name, title in NETWORKS.items():
        for threads in THREADS:
            if not wanted(options, "nn", f"{title}, {threads}"):
                continue
            rounds = [[], []]
            for turn in range(options.repeat):
                say(f"nn: {name} on {threads} threads: round {turn + 1} of {options.repeat}")
                for which in (0, 1) if turn % 2 else (1, 0):
                    command = [[EXAMPLE], [python, SCRIPT]][which]
                    # Waiting threads of OpenMP spin; passive ones leave a busy machine to those that work.
                    environment = {"OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "passive")}
                    child = processes.run([*command, name, threads, SECONDS], environment, options.timeout)
                    rounds[which].append(json.loads(child.stdout))
            wall = [median(one["seconds"] for one in runs) for runs in rounds]
            processor = [median(one["processor"] for one in runs) for runs in rounds]
            row = [title, str(threads)]
            for ours, theirs in (wall, processor):
                row += [f"{1e3 * ours:.2f}", f"{1e3 * theirs:.2f}", ratio(ours, theirs)]
            section.rows.append(row)
    section.notes = [
        f"forward, backward and AdamW (PyTorch {version}, its fused step); the same batch at every step; medians of "
        f"{options.repeat} alternating processes of {SECONDS} s, each the median of its steps; processor time is the mean of all "
        "threads of a process together, which other work on the machine disturbs less",
    ]
    return section
