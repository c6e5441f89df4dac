"""A transformer described by its weights and the shape of its attention, before any cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight of a model: a matrix, or a vector such as a bias."""

    name: str
    elements: int
    """Number of elements of all experts."""
    size: int
    """Bytes of all experts."""
    width: int = 0
    """Outputs of a matrix for a token; 0 for a vector, whose work is not counted."""
    stage: int = 0
    """Place in its block: weights of a stage use the outputs of the previous stage."""


@dataclass(frozen=True, slots=True)
class Attention:
    """The shape of the attention of a block."""

    heads: int
    """Query heads."""
    key: int
    """Elements of a query and of a key of a head."""
    value: int
    """Elements of a value of a head."""
    cached: int
    """Elements of a token in the KV cache."""
    window: int | None = None
    """Maximum number of tokens that a token attends to; None without a sliding window."""
    latent: tuple[int, int] | None = None
    """Elements of a key and of a value in decoding with a compressed cache (multi-head latent attention)."""


@dataclass(frozen=True, slots=True)
class Block:
    """A layer of a transformer: attention and a feed-forward network."""

    attention: tuple[Weight, ...]
    ffn: tuple[Weight, ...]
    """The feed-forward network; in a mixture of experts, the router and the shared experts."""
    experts: tuple[Weight, ...] = ()
    """The routed experts of a mixture of experts."""
    shape: Attention | None = None
    """None if the block has no attention, or the shape is unknown."""
    guessed: bool = False
    """Whether no rule of costs covers the block, such as a state-space layer; only its bytes count."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """All weights."""
        return self.attention + self.ffn + self.experts


@dataclass(frozen=True, slots=True)
class Transformer:
    """A language model."""

    name: str
    hidden: int
    """Elements of a token between layers."""
    vocabulary: int
    embedding: tuple[Weight, ...]
    """The first weight is the table of the vocabulary."""
    blocks: tuple[Block, ...]
    head: tuple[Weight, ...]
    """The last normalisation and the output matrix."""
    experts: int = 0
    """Routed experts of a mixture of experts."""
    active: int = 0
    """Routed experts that a token uses."""
    tied: bool = False
    """Whether the output matrix is the table of the vocabulary."""
    causal: bool = True
    """Whether a token attends to previous tokens only and the model generates text."""
    longest: int | None = None
    """Tokens of the longest context that the model supports."""
    activation: int = 2
    """Bytes of an element of an activation and of the KV cache."""
    precision: str = "fp16"
    """Number format of the work."""
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        """Number of all parameters."""
        weights = [*self.embedding, *self.head, *(weight for block in self.blocks for weight in block.weights)]
        return sum(weight.elements for weight in weights)
