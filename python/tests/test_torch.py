"""Weights of networks in PyTorch, and of PyTorch in networks: the same logits. Skipped where PyTorch is not installed.

    target/python/bin/pip install torch --index-url https://download.pytorch.org/whl/cpu
    python/test python/tests/test_torch.py
"""

import numpy as np
import pytest

from gradus.nn import Cnn, Lm, Mlp

torch = pytest.importorskip("torch")
nn = torch.nn

RNG = np.random.default_rng(0)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def loaded(module, model):
    """The module with the weights of the model, all of them by name."""
    weights = {name: torch.from_numpy(array) for name, array in model.state_dict().items()}
    missing, unexpected = module.load_state_dict(weights, strict=False)
    assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing)
    return module.eval()


def scaled(model, X):
    """Features in the units of the network."""
    z = (X.astype(np.float32) - model._tensor("scaler.centre")) * model._tensor("scaler.factor")
    return torch.from_numpy(z)


class Perceptron(nn.Module):
    def __init__(self, sizes, classes, activation):
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.norm = nn.ModuleList(nn.BatchNorm1d(b) for b in sizes[1:])
        self.output = nn.Linear(sizes[-1], classes)
        self.activation = activation

    def forward(self, x):
        for hidden, norm in zip(self.hidden, self.norm):
            x = self.activation(norm(hidden(x)))
        return self.output(x)


@pytest.mark.parametrize("name", ["relu", "gelu", "tanh"])
def test_perceptrons(name):
    X, y = RNG.normal(size=(300, 5)) * [1, 10, 100, 0.1, 1], np.arange(300) % 3
    model = Mlp(hidden=(16, 8), norm="batch", activation=name, max_iter=5, random_state=0).fit(X, y)
    activation = {"relu": torch.relu, "gelu": nn.functional.gelu, "tanh": torch.tanh}[name]
    module = loaded(Perceptron([5, 16, 8], 3, activation), model)
    z = scaled(model, X)
    z = z / torch.sqrt(1 + (z / 3) ** 2)
    with torch.no_grad():
        np.testing.assert_allclose(model.decision_function(X), module(z).numpy(), **CLOSE)
        other = Perceptron([5, 16, 8], 3, activation).eval()
        model.load_state_dict(other.state_dict())
        np.testing.assert_allclose(model.decision_function(X), other(z).numpy(), **CLOSE)


class Residual(nn.Module):
    """A block of torchvision's ResNet."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        if inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class Convolutional(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, channels[0], 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels[0])
        inputs = channels[0]
        for at, outputs in enumerate(channels, 1):
            setattr(self, f"layer{at}", nn.Sequential(Residual(inputs, outputs)))
            inputs = outputs
        self.fc = nn.Linear(inputs, classes)
        self.stages = len(channels)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        for at in range(1, self.stages + 1):
            if min(x.shape[2:]) >= 4:
                x = nn.functional.max_pool2d(x, 2)
            x = getattr(self, f"layer{at}")(x)
        return self.fc(x.mean(dim=(2, 3)))


def test_convolutional_networks():
    X, y = RNG.random((150, 12, 10, 3)), np.arange(150) % 3
    model = Cnn(channels=(8, 16), max_iter=2, random_state=0).fit(X, y)
    module = loaded(Convolutional([8, 16], 3), model)
    z = scaled(model, X.reshape(150, -1)).reshape(150, 12, 10, 3).permute(0, 3, 1, 2)
    with torch.no_grad():
        np.testing.assert_allclose(model.decision_function(X), module(z).numpy(), **CLOSE)
        other = Convolutional([8, 16], 3).eval()
        model.load_state_dict(other.state_dict())
        np.testing.assert_allclose(model.decision_function(X), other(z).numpy(), **CLOSE)


class Decoder(nn.Module):
    def __init__(self, tokens, context, dimension, heads, layers):
        super().__init__()
        self.token_embedding = nn.Embedding(tokens, dimension)
        self.position_embedding = nn.Embedding(context, dimension)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dimension, heads, 4 * dimension, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dimension)

    def forward(self, tokens):
        n = tokens.shape[1]
        x = self.token_embedding(tokens) + self.position_embedding(torch.arange(n))
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.norm(x) @ self.token_embedding.weight.T


def test_language_models():
    model = Lm(layers=2, dimension=32, heads=4, context=16, max_iter=20, random_state=0).fit("to be or not to be. " * 30)
    tokens = model.encode("or not to be")
    assert model.decode(tokens) == "or not to be"
    n_tokens = len(model.state_dict()["token_embedding.weight"])
    module = loaded(Decoder(n_tokens, 16, 32, 4, 2), model)
    with torch.no_grad():
        theirs = module(torch.tensor([tokens]))[0].numpy()
        np.testing.assert_allclose(model.logits(tokens), theirs, **CLOSE)
        other = Decoder(n_tokens, 16, 32, 4, 2).eval()
        model.load_state_dict(other.state_dict())
        np.testing.assert_allclose(model.logits(tokens), other(torch.tensor([tokens]))[0].numpy(), **CLOSE)
