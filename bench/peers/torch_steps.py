"""Times steps of training by PyTorch: `torch_steps.py mlp|cnn|gpt|gpt-large|unet THREADS SECONDS [cpu|cuda]` prints JSON. The networks are those of `suites/nn.py`."""

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


class Residual(nn.Module):
    def __init__(self, inputs, outputs, embedded):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, inputs), nn.GroupNorm(8, outputs)])
        self.convs = nn.ModuleList([nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)])
        self.time = nn.Linear(embedded, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, embedded):
        h = self.convs[0](functional.silu(self.norms[0](x)))
        h = h + self.time(embedded)[:, :, None, None]
        return self.shortcut(x) + self.convs[1](functional.silu(self.norms[1](h)))


class Places(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(8, channels)
        self.inputs, self.output = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x):
        n, channels, height, width = x.shape
        h = self.norm(x).flatten(2).transpose(1, 2)
        parts = self.inputs(h).split(channels, dim=2)
        q, k, v = (part.view(n, -1, self.heads, channels // self.heads).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, -1, channels)
        return x + self.output(y).transpose(1, 2).view(n, channels, height, width)


class Unet(nn.Module):
    """The network of `gradus fit diffusion` on images of 28 × 28 with its defaults: 32, 64 and 128 channels, one block at each size."""

    def __init__(self, channels=(32, 64, 128), heads=4):
        super().__init__()
        embedded, last = 4 * channels[0], channels[-1]
        self.frequencies = channels[0]
        self.time = nn.Sequential(nn.Linear(channels[0], embedded), nn.SiLU(), nn.Linear(embedded, embedded))
        self.input = nn.Conv2d(1, channels[0], 3, padding=1)
        self.down, self.halved, self.up, self.doubled = (nn.ModuleList() for _ in range(4))
        now = channels[0]
        for at, outputs in enumerate(channels):
            self.down.append(Residual(now, outputs, embedded))
            now = outputs
            self.halved.append(nn.Conv2d(now, now, 2, stride=2) if at + 1 < len(channels) else nn.Identity())
        self.places = nn.ModuleList(Places(last, heads) for _ in range(3))
        self.middle = nn.ModuleList([Residual(last, last, embedded), Residual(last, last, embedded)])
        for at, outputs in reversed(list(enumerate(channels))):
            self.up.append(Residual(now + outputs, outputs, embedded))
            now = outputs
            self.doubled.append(nn.Conv2d(now, now, 3, padding=1) if at > 0 else nn.Identity())
        self.norm, self.output = nn.GroupNorm(8, now), nn.Conv2d(now, 1, 3, padding=1)

    def forward(self, given):
        x, times = given
        half = self.frequencies // 2
        angles = times[:, None] * 1000 * torch.exp(-torch.arange(half, device=x.device) / half * 9.2103)
        embedded = functional.silu(self.time(torch.cat([angles.sin(), angles.cos()], dim=1)))
        x, kept = self.input(x), []
        for at, (block, halved) in enumerate(zip(self.down, self.halved)):
            x = block(x, embedded)
            x = self.places[0](x) if at + 1 == len(self.down) else x
            kept.append(x)
            x = halved(x)
        x = self.middle[1](self.places[1](self.middle[0](x, embedded)), embedded)
        for at, (block, doubled) in enumerate(zip(self.up, self.doubled)):
            x = block(torch.cat([x, kept.pop()], dim=1), embedded)
            x = self.places[2](x) if at == 0 else x
            if at + 1 < len(self.up):
                x = doubled(functional.interpolate(x, size=kept[-1].shape[2:], mode="nearest"))
        return self.output(functional.silu(self.norm(x)))


class Inputs(tuple):
    """Noisy images and their times, moved together."""

    def to(self, device):
        return Inputs(one.to(device) for one in self)


def unet():
    return Unet(), Inputs([torch.randn(32, 1, 28, 28), torch.rand(32)]), torch.randn(32, 1, 28, 28)


def main(name, threads, seconds, device="cpu"):
    torch.manual_seed(1)
    # Single precision throughout, as on the other side.
    torch.backends.cudnn.allow_tf32 = False
    torch.set_num_threads(int(threads))
    network, x, y = {"mlp": mlp, "cnn": cnn, "gpt": gpt, "gpt-large": gpt_large, "unet": unet}[name]()
    measured = functional.mse_loss if name == "unet" else functional.cross_entropy
    network, x, y = network.to(device), x.to(device), y.to(device)
    # The fused step is several times faster than the default one.
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.01, fused=True)

    def step():
        loss = measured(network(x), y)
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
