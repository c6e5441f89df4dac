"""Weights of the families of transformers in Hugging Face's library, from the numbers of a configuration.

Each family states how its layers differ from those of Llama: biases, normalisations, gates, experts. The counts of
parameters equal those of the models that the library builds (`AutoModelForCausalLM`, or `AutoModel` for encoders).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Switch = bool | str
"""Whether a part is there: a constant, or the key of the configuration that states it."""


@dataclass(frozen=True, slots=True)
class Family:
    """What the layers of a family consist of."""

    defaults: Mapping[str, int | bool | None] = field(default_factory=dict)
    """Values of keys that the configuration need not state."""
    norm: int = 1
    """Vectors of a normalisation: 1 (RMS), 2 (with bias), or 0."""
    norms: int = 2
    """Normalisations of a layer, without those of queries and keys."""
    last_norm: Switch = True
    """Whether a normalisation follows the last layer."""
    query_norm: Literal["head", "full"] | None = None
    """Normalisation of queries and keys: over the elements of a head, or of all heads."""
    attention_bias: Switch = False
    """Whether the matrices of the attention have biases."""
    output_bias: Switch | None = None
    """Whether its output matrix has one; None for the same as the others."""
    ffn_bias: Switch = False
    head_bias: Switch = False
    gated: bool = True
    """Whether the feed-forward network has a gate: three matrices, not two."""
    tied: bool = False
    """Default of `tie_word_embeddings`."""
    positions: int | None = None
    """Rows of the table of positions beyond `max_position_embeddings`; None without a table."""
    embedding_norm: bool = False
    segments: bool = False
    """Whether the input has a table of segments (`type_vocab_size`)."""
    encoder: bool = False
    """Whether the model is an encoder with a pooler, and no output matrix."""
    experts: Literal["mixtral", "qwen", "deepseek", "gpt_oss"] | None = None
    """The form of a mixture of experts."""
    sinks: bool = False
    """Whether each head has a weight for no token (attention sinks)."""
    latent: bool = False
    """Whether the attention has a compressed cache (multi-head latent attention)."""
    window: Literal["none", "stated", "qwen"] = "none"
    """Layers with a sliding window without `layer_types`: none, all if the configuration states one, Qwen's rule."""
    period: int | None = None
    """Each n-th layer has no sliding window, the others have one."""


_BERT = Family(
    norm=2,
    last_norm=False,
    attention_bias=True,
    ffn_bias=True,
    gated=False,
    tied=True,
    positions=0,
    embedding_norm=True,
    segments=True,
    encoder=True,
)

FAMILIES: Mapping[str, Family] = {
    "bert": _BERT,
    "bloom": Family(
        norm=2, attention_bias=True, ffn_bias=True, gated=False, tied=True, embedding_norm=True,
    ),
    "cohere": Family(norms=1, tied=True, attention_bias="attention_bias"),
    "deepseek_v2": Family(experts="deepseek", latent=True, attention_bias="attention_bias"),
    "deepseek_v3": Family(experts="deepseek", latent=True, attention_bias="attention_bias"),
    "gemma": Family(tied=True, attention_bias="attention_bias"),
    "gemma2": Family(tied=True, norms=4, period=2, attention_bias="attention_bias"),
    "gemma3_text": Family(
        tied=True, norms=4, query_norm="head", period=6, attention_bias="attention_bias"
    ),
    "gpt2": Family(norm=2, attention_bias=True, ffn_bias=True, gated=False, tied=True, positions=0),
    "gpt_neox": Family(
        defaults={"attention_bias": True},
        norm=2, attention_bias="attention_bias", ffn_bias=True, gated=False,
    ),
    "gpt_oss": Family(experts="gpt_oss", sinks=True, attention_bias="attention_bias", period=2),
    "granite": Family(attention_bias="attention_bias", ffn_bias="mlp_bias"),
    "llama": Family(attention_bias="attention_bias", ffn_bias="mlp_bias"),
    "mistral": Family(window="stated"),
    "mixtral": Family(experts="mixtral", window="stated"),
    "nemotron": Family(norm=2, attention_bias="attention_bias", ffn_bias="mlp_bias", gated=False),
    "olmo": Family(norm=0, attention_bias="attention_bias"),
    "olmo2": Family(query_norm="full", attention_bias="attention_bias"),
    "olmoe": Family(query_norm="full", attention_bias="attention_bias", experts="mixtral"),
    "opt": Family(
        norm=2, attention_bias="enable_bias", ffn_bias="enable_bias", gated=False, tied=True,
        positions=2, last_norm="do_layer_norm_before",
        defaults={"enable_bias": True, "do_layer_norm_before": True},
    ),
    "phi": Family(norm=2, norms=1, attention_bias=True, ffn_bias=True, head_bias=True, gated=False),
    "phi3": Family(window="stated"),
    "qwen2": Family(attention_bias=True, output_bias=False, window="qwen"),
    "qwen2_moe": Family(
        attention_bias="qkv_bias", output_bias=False, window="qwen", experts="qwen",
        defaults={"qkv_bias": True},
    ),
    "qwen3": Family(
        query_norm="head", attention_bias="attention_bias", window="qwen",
        defaults={"head_dim": 128},
    ),
    "qwen3_moe": Family(
        query_norm="head", attention_bias="attention_bias", window="qwen", experts="qwen",
    ),
    "roberta": _BERT,
    "smollm3": Family(attention_bias="attention_bias", ffn_bias="mlp_bias", tied=True),
    "starcoder2": Family(
        norm=2, attention_bias="use_bias", ffn_bias="use_bias", gated=False, tied=True,
        window="stated", defaults={"use_bias": True},
    ),
    "xlm-roberta": _BERT,
}  # fmt: skip
"""Families by `model_type`."""

ENCODER_DECODERS = ("bart", "longt5", "m2m_100", "marian", "mbart", "mt5", "pegasus", "t5", "umt5", "whisper")
"""Values of `model_type` with an encoder and a decoder, which are not supported."""
