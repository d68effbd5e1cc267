"""Times steps of training by PyTorch: `torch_steps.py mlp|cnn|gpt|gpt-large THREADS SECONDS [cpu|cuda]` prints JSON. The networks are those of `suites/nn.py`."""

import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional


def mlp():
    network = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return network, torch.randn(256, 784), torch.randint(10, (256,))


def cnn():
    layers = []
    for at, (inputs, outputs) in enumerate([(1, 32), (32, 64), (64, 128)]):
        layers += [nn.MaxPool2d(2)] if at else []
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    return network, torch.randn(128, 1, 28, 28), torch.randint(10, (128,))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, length, width = x.shape
        parts = self.inputs(self.norms[0](x)).split(width, dim=2)
        q, k, v = (part.view(n, length, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(y.transpose(1, 2).reshape(n, length, width))
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    def __init__(self, vocabulary=65, context=64, width=128, heads=4, layers=4):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        x = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.output(self.norm(self.blocks(x))).flatten(0, 1)


def gpt():
    return Gpt(), torch.randint(65, (12, 64)), torch.randint(65, (12 * 64,))


def gpt_large():
    return Gpt(65, 256, 384, 6, 6), torch.randint(65, (16, 256)), torch.randint(65, (16 * 256,))


def main(name, threads, seconds, device="cpu"):
    torch.manual_seed(1)
    # Single precision throughout, as on the other side.
    torch.backends.cudnn.allow_tf32 = False
    torch.set_num_threads(int(threads))
    network, x, y = {"mlp": mlp, "cnn": cnn, "gpt": gpt, "gpt-large": gpt_large}[name]()
    network, x, y = network.to(device), x.to(device), y.to(device)
    # The fused step is several times faster than the default one.
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.01, fused=True)

    def step():
        loss = functional.cross_entropy(network(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(5):
        step()
    times, started, before = [], time.perf_counter(), time.process_time()
    while len(times) < 5 or time.perf_counter() - started < float(seconds):
        begun = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - begun)
    processor = (time.process_time() - before) / len(times)
    print(json.dumps({"seconds": statistics.median(times), "processor": processor, "steps": len(times), "loss": loss}))


main(*sys.argv[1:])
