"""Small and large PyTorch models for tests; import it after `pytest.importorskip("torch")`."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F  # noqa: N812 - the name that PyTorch documents
from torch import Tensor, nn


class Mlp(nn.Module):
    """Linear layers with ReLU between them."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(n, m) for n, m in pairwise(sizes))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)


class Twice(nn.Module):
    """A layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.layer(x))


class ConvNet(nn.Module):
    """Two residual blocks of convolutions, with operators in place, pooling and a classifier."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(ConvBlock(width), ConvBlock(width))
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.pool(self.stem(x)))
        return self.head(x.mean((2, 3)))


class ConvBlock(nn.Module):
    """Convolutions around a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(self.relu(self.norm(self.conv1(x))))


class Attention(nn.Module):
    """Attention of grouped queries, with rotary positions."""

    def __init__(self, size: int, heads: int, key_heads: int) -> None:
        super().__init__()
        self.heads, self.key_heads, self.head_size = heads, key_heads, size // heads
        self.q = nn.Linear(size, size, bias=False)
        self.k = nn.Linear(size, key_heads * self.head_size, bias=False)
        self.v = nn.Linear(size, key_heads * self.head_size, bias=False)
        self.o = nn.Linear(size, size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, size = x.shape
        q = rotated(self.q(x).view(batch, length, self.heads, self.head_size).transpose(1, 2), cos, sin)
        k = rotated(self.k(x).view(batch, length, self.key_heads, self.head_size).transpose(1, 2), cos, sin)
        v = self.v(x).view(batch, length, self.key_heads, self.head_size).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.key_heads)
        return self.o(y.transpose(1, 2).reshape(batch, length, size))


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class FeedForward(nn.Module):
    """A gated feed-forward network."""

    def __init__(self, size: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Linear(size, inner, bias=False)
        self.up = nn.Linear(size, inner, bias=False)
        self.down = nn.Linear(inner, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    """A layer of a Llama-shaped model."""

    def __init__(self, size: int, heads: int, key_heads: int, inner: int) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(size)
        self.attention = Attention(size, heads, key_heads)
        self.norm2 = nn.RMSNorm(size)
        self.mlp = FeedForward(size, inner)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class Llama(nn.Module):
    """A Llama-shaped model; the defaults have 8 billion parameters, as Llama 3 8B."""

    def __init__(
        self,
        layers: int = 32,
        size: int = 4096,
        heads: int = 32,
        key_heads: int = 8,
        inner: int = 14336,
        vocabulary: int = 128256,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.layers = nn.ModuleList(Layer(size, heads, key_heads, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(size)
        self.head = nn.Linear(size, vocabulary, bias=False)
        self.head_size = size // heads

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        frequency = 1 / (500000 ** (torch.arange(0, self.head_size, 2, device=ids.device) / self.head_size))
        angle = torch.outer(torch.arange(ids.shape[1], device=ids.device), frequency)
        angle = torch.cat((angle, angle), -1)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


def small_llama(layers: int = 3) -> Llama:
    """A model of the same shape that runs within milliseconds."""
    torch.manual_seed(0)
    return Llama(layers, 32, 4, 2, 64, 50).eval()
