"""AutoAttack or Square of torchattacks on a plain convolutional network in a model file of gradus; prints JSON.

torch_attacks.py MODEL ROWS IMAGES EPS THREADS ATTACK QUERIES
"""

import gzip
import json
import struct
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torchattacks
from torch import nn

#: Images that are attacked together.
BLOCK = 100


class Network(nn.Module):
    """The network of the file, with its scaling of pixels."""

    def __init__(self, path):
        super().__init__()
        raw = Path(path).read_bytes()
        length = struct.unpack("<Q", raw[:8])[0]
        header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]

        def tensor(name):
            start, end = header[name]["data_offsets"]
            kind = {"F32": np.float32, "F64": np.float64}[header[name]["dtype"]]
            return torch.tensor(np.frombuffer(data[start:end], kind).reshape(header[name]["shape"]).copy()).float()

        side = int(round(tensor("scaler.centre").numel() ** 0.5))
        self.centre, self.factor = (tensor(f"scaler.{part}").reshape(1, 1, side, side) for part in ("centre", "factor"))
        self.layers, self.norms = nn.ModuleList(), nn.ModuleList()
        stage = 0
        while f"features.{stage}.0.conv.weight" in header:
            weight = tensor(f"features.{stage}.0.conv.weight")
            layer = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2], padding=weight.shape[2] // 2, bias=False)
            layer.weight.data = weight
            norm = nn.BatchNorm2d(weight.shape[0])
            for part in ("weight", "bias", "running_mean", "running_var"):
                getattr(norm, part).data = tensor(f"features.{stage}.0.norm.{part}")
            self.layers.append(layer)
            self.norms.append(norm)
            stage += 1
        weight = tensor("fc.weight")
        self.output = nn.Linear(weight.shape[1], weight.shape[0])
        self.output.weight.data, self.output.bias.data = weight, tensor("fc.bias")

    def forward(self, x):
        x = (x - self.centre) * self.factor
        for at, (layer, norm) in enumerate(zip(self.layers, self.norms)):
            if at:
                x = torch.max_pool2d(x, 2)
            x = torch.relu(norm(layer(x)))
        return self.output(x.mean((2, 3)))


def main():
    model, rows, images, eps, threads, name, queries = sys.argv[1:]
    torch.set_num_threads(int(threads))
    network = Network(model).eval()
    for weight in network.parameters():
        weight.requires_grad_(False)
    rows = json.loads(Path(rows).read_text())["rows"]
    labels = images.replace("images-idx3", "labels-idx1")
    pixels = np.frombuffer(gzip.open(images).read()[16:], np.uint8).reshape(-1, 1, 28, 28)
    classes = np.frombuffer(gzip.open(labels).read()[8:], np.uint8)
    chosen = [row["row"] - 1 for row in rows]
    x, y = torch.tensor(pixels[chosen].copy()).float() / 255, torch.tensor(classes[chosen].astype(np.int64))
    with torch.no_grad():
        predicted = network(x).argmax(1).numpy()
    agreement = float(np.mean(predicted == np.array([row["predicted"] for row in rows])))
    if name == "square":
        # Rows that are wrong anyway take no queries, as in AutoAttack.
        right = predicted == y.numpy()
        attack = torchattacks.Square(network, norm="Linf", eps=float(eps), n_queries=int(queries), seed=0, loss="margin")
    else:
        right = np.ones(len(y), bool)
        attack = torchattacks.AutoAttack(network, norm="Linf", eps=float(eps), version="standard", n_classes=10, seed=0)
    places = np.flatnonzero(right)
    changed = x.clone()
    started = time.perf_counter()
    for at in range(0, len(places), BLOCK):
        some = places[at : at + BLOCK]
        changed[some] = attack(x[some], y[some])
        done = f"{min(at + BLOCK, len(places))} of {len(places)} images, {time.perf_counter() - started:.0f} s"
        print(f"torchattacks: {name}: {done}", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - started
    with torch.no_grad():
        robust = (network(changed).argmax(1) == y).float().mean().item()
    print(json.dumps({"agreement": agreement, "robust": robust, "seconds": seconds}))


if __name__ == "__main__":
    main()
