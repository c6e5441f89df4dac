"""Weights of the families of transformers in Hugging Face's library, from the numbers of a configuration.

Each family states how its layers differ from those of Llama: biases, normalisations, gates, experts. The counts of
parameters equal those of the models that the library builds (`AutoModelForCausalLM`, or `AutoModel` for encoders).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from placeopt.bridges.importers.language_models.configuration import NAMES, Configuration

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
    one_key: bool = False
    """Whether all heads share a key and a value, whatever the configuration states."""
    convolutions: frozenset[int] = frozenset()
    """Layers with a short convolution in place of attention (LFM2)."""
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


def _falcon(config: Configuration) -> Family:
    """`modeling_falcon.py`: attention beside the feed-forward network, with one normalisation or two before them."""
    new = config.flag("new_decoder_architecture", False)
    parallel = new or config.flag("parallel_attn", True)
    stated = config.optional("num_ln_in_parallel_attn") or (2 if new else 1)
    return Family(
        norm=2,
        norms=stated if parallel else 2,
        attention_bias="bias",
        ffn_bias="bias",
        gated=False,
        tied=True,
        one_key=not new and config.flag("multi_query", True),
    )


def _lfm2(config: Configuration) -> Family:
    """`modeling_lfm2.py`: layers without attention have a gated short convolution."""
    layers = range(config.optional("num_hidden_layers") or 0)
    kinds, attention = config.values("layer_types"), config.values("full_attn_idxs") or [*layers]
    conv = [kinds[k] == "conv" for k in layers] if len(kinds) == len(layers) else [k not in attention for k in layers]
    return Family(
        defaults={"block_auto_adjust_ff_dim": True, "conv_L_cache": 3, "block_multiple_of": 256},
        query_norm="head",
        tied=True,
        convolutions=frozenset(k for k in layers if conv[k]),
    )


def _persimmon(config: Configuration) -> Family:
    normed = config.flag("qk_layernorm", True)
    query_norm: Literal["head"] | None = "head" if normed else None
    return Family(norm=2, query_norm=query_norm, attention_bias=True, ffn_bias=True, gated=False)


FAMILIES: Mapping[str, Family | Callable[[Configuration], Family]] = {
    "bert": _BERT,
    "bloom": Family(
        norm=2, attention_bias=True, ffn_bias=True, gated=False, tied=True, embedding_norm=True,
    ),
    "cohere": Family(norms=1, tied=True, attention_bias="attention_bias"),
    "deepseek_v2": Family(experts="deepseek", latent=True, attention_bias="attention_bias"),
    "deepseek_v3": Family(experts="deepseek", latent=True, attention_bias="attention_bias"),
    "falcon": _falcon,
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
    "lfm2": _lfm2,
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
    "persimmon": _persimmon,
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
"""Families by `model_type`; a function makes a family from the configuration."""

_OF_LLAMA = frozenset(
    {name for names in NAMES.values() for name in names}
    | set(
        """
        attention_bias attention_dropout auto_map architectures classifier_dropout dtype gradient_checkpointing head_dim
        hidden_act hidden_activation hidden_dropout id2label initializer_range is_decoder is_encoder_decoder label2id
        language layer_types max_window_layers mlp_bias model_type num_key_value_heads pretraining_tp problem_type
        quantization_config rms_norm_eps rope_parameters rope_scaling rope_theta sliding_window task_specific_params
        tie_word_embeddings tokenizer_class torch_dtype transformers_version use_cache use_sliding_window vocab_size
        """.split()  # noqa: SIM905
    )
)
"""Keys of Llama's configurations, and others that change no size."""
_WITHOUT_SIZE = re.compile(r"_.*|.*(_token_ids?|_dropout|_pdrop|_eps|_epsilon|_theta|_coef|_softcapping|_base)|rope_.*")


def unlike_llama(config: Configuration) -> list[str]:
    """The keys of a configuration that Llama's does not have, so that its sizes may be others."""
    return [key for key in config.stated() if key not in _OF_LLAMA and not _WITHOUT_SIZE.fullmatch(key)]


ENCODER_DECODERS = ("bart", "longt5", "m2m_100", "marian", "mbart", "mt5", "pegasus", "t5", "umt5", "whisper")
"""Values of `model_type` with an encoder and a decoder, which are not supported."""
