"""Small GGUF files, and configurations of published models with their numbers of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, quant_shape_to_byte_shape

HIDDEN, INNER, HEADS, GROUPS, VOCABULARY = 256, 512, 8, 2, 320
KEYS = GROUPS * HIDDEN // HEADS

Tensors = dict[str, tuple[Sequence[int], str]]
"""Shape (outputs x inputs, as NumPy has it) and type by name."""


def block(index: int) -> Tensors:
    """A dense block of Llama."""
    shapes: Tensors = {
        "attn_norm.weight": ([HIDDEN], "F32"),
        "attn_q.weight": ([HIDDEN, HIDDEN], "Q4_K"),
        "attn_k.weight": ([KEYS, HIDDEN], "Q4_K"),
        "attn_v.weight": ([KEYS, HIDDEN], "Q6_K"),
        "attn_output.weight": ([HIDDEN, HIDDEN], "Q4_K"),
        "ffn_norm.weight": ([HIDDEN], "F32"),
        "ffn_gate.weight": ([INNER, HIDDEN], "Q4_K"),
        "ffn_up.weight": ([INNER, HIDDEN], "Q4_K"),
        "ffn_down.weight": ([HIDDEN, INNER], "Q6_K"),
    }
    return {f"blk.{index}.{name}": entry for name, entry in shapes.items()}


def sparse_block(index: int, experts: int, inner: int = 256) -> Tensors:
    """A block with a mixture of experts and a shared expert."""
    dense = block(index)
    shapes: Tensors = {
        "ffn_gate_inp.weight": ([experts, HIDDEN], "F32"),
        "ffn_gate_exps.weight": ([experts, inner, HIDDEN], "Q4_K"),
        "ffn_up_exps.weight": ([experts, inner, HIDDEN], "Q4_K"),
        "ffn_down_exps.weight": ([experts, HIDDEN, inner], "Q6_K"),
        "ffn_gate_shexp.weight": ([inner, HIDDEN], "Q8_0"),
        "ffn_up_shexp.weight": ([inner, HIDDEN], "Q8_0"),
        "ffn_down_shexp.weight": ([HIDDEN, inner], "Q8_0"),
    }
    kept = {name: entry for name, entry in dense.items() if "ffn_" not in name or "ffn_norm" in name}
    return kept | {f"blk.{index}.{name}": entry for name, entry in shapes.items()}


def dense(blocks: int = 2, *, tied: bool = False) -> Tensors:
    """The tensors of a dense model."""
    found: Tensors = {"token_embd.weight": ([VOCABULARY, HIDDEN], "Q4_K")}
    for index in range(blocks):
        found |= block(index)
    found |= {"rope_freqs.weight": ([16], "F32"), "output_norm.weight": ([HIDDEN], "F32")}
    return found if tied else found | {"output.weight": ([VOCABULARY, HIDDEN], "Q6_K")}


def sparse(blocks: int = 3, experts: int = 8) -> Tensors:
    """The tensors of a mixture of experts whose first block is dense."""
    found = dense(1)
    for index in range(1, blocks):
        found |= sparse_block(index, experts)
    return found


def write_gguf(
    path: Path,
    tensors: Tensors,
    architecture: str = "llama",
    *,
    keys: dict[str, Any] | None = None,
    usual: bool = True,
    **options: Any,
) -> Path:
    """Write a GGUF file with zeros as data, by the writer of llama.cpp.

    `usual` adds the keys of a Llama with as many blocks as there are. `keys` adds or replaces keys below the
    architecture; None removes one.
    """
    writer = GGUFWriter(path, architecture, **options)
    writer.add_name("tiny")
    writer.add_token_list([f"token{k}" for k in range(VOCABULARY)])
    blocks = {name.split(".")[1] for name in tensors if name.startswith("blk.")}
    stated: dict[str, Any] = {
        "block_count": len(blocks),
        "context_length": 2048,
        "embedding_length": HIDDEN,
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
        "attention.head_count_kv": GROUPS,
    }
    for key, value in ((stated if usual else {}) | (keys or {})).items():
        name = f"{architecture}.{key}"
        if isinstance(value, list):
            writer.add_array(name, value)
        elif isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        elif value is not None:
            writer.add_uint32(name, value)
    for name, (shape, type) in tensors.items():
        kind = GGMLQuantizationType[type]
        if type in ("F32", "F16"):
            writer.add_tensor(name, np.zeros(shape, dtype=np.float32 if type == "F32" else np.float16))
        else:
            data = np.zeros(quant_shape_to_byte_shape(shape, kind), dtype=np.uint8)
            writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def configuration(
    type: str, hidden: int, inner: int, layers: int, heads: int, groups: int, vocabulary: int, context: int, **more: Any
) -> dict[str, Any]:
    """A `config.json` with the keys of Llama."""
    return {
        "model_type": type,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "vocab_size": vocabulary,
        "max_position_embeddings": context,
        "torch_dtype": "bfloat16",
    } | more


_MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
LLAMA_8B = configuration("llama", 4096, 14336, 32, 32, 8, 128256, 131072, tie_word_embeddings=False)
MISTRAL_7B = configuration("mistral", 4096, 14336, 32, 32, 8, 32000, 32768, sliding_window=4096)
MIXTRAL = configuration("mixtral", 4096, 14336, 32, 32, 8, 32000, 32768, num_local_experts=8, num_experts_per_tok=2)
DEEPSEEK_V3 = configuration(
    "deepseek_v3", 7168, 18432, 61, 128, 128, 129280, 163840, **_MLA, moe_intermediate_size=2048, n_routed_experts=256,
    n_shared_experts=1, num_experts_per_tok=8, first_k_dense_replace=3, moe_layer_freq=1, q_lora_rank=1536,
)  # fmt: skip
FALCON_7B: dict[str, Any] = {
    "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "num_kv_heads": 71,
    "vocab_size": 65024, "multi_query": True, "parallel_attn": True, "new_decoder_architecture": False, "bias": False,
    "alibi": False, "torch_dtype": "bfloat16",
}  # fmt: skip
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "falcon-7b": (FALCON_7B, 6_921_720_704),
    "falcon-40b": (
        FALCON_7B | {
            "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8,
            "new_decoder_architecture": True,
        },
        41_303_293_952,
    ),
    "falcon-rw-1b": (
        FALCON_7B | {
            "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "num_kv_heads": None,
            "vocab_size": 50304, "multi_query": False, "parallel_attn": False, "bias": True, "alibi": True,
        },
        1_311_625_216,
    ),
    "persimmon-8b": (
        {
            "model_type": "persimmon", "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 36,
            "num_attention_heads": 64, "vocab_size": 262144, "qk_layernorm": True,
        },
        9_397_175_296,
    ),
    "LFM2-1.2B": (
        {
            "model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
            "num_key_value_heads": 8, "vocab_size": 65536, "block_ff_dim": 12288, "block_auto_adjust_ff_dim": True,
            "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, "conv_L_cache": 3, "conv_bias": False,
            "full_attn_idxs": [2, 5, 8, 10, 12, 14],
        },
        1_170_340_608,
    ),
    "Llama-3.1-8B": (LLAMA_8B, 8_030_261_248),
    "Llama-3.2-1B": (
        configuration("llama", 2048, 8192, 16, 32, 8, 128256, 131072, tie_word_embeddings=True, head_dim=64),
        1_235_814_400,
    ),
    "Mistral-7B-v0.1": (MISTRAL_7B, 7_241_732_096),
    "Qwen2-7B": (configuration("qwen2", 3584, 18944, 28, 28, 4, 152064, 131072), 7_615_616_512),
    "Qwen3-8B": (configuration("qwen3", 4096, 12288, 36, 32, 8, 151936, 40960, head_dim=128), 8_190_735_360),
    "Mixtral-8x7B-v0.1": (MIXTRAL, 46_702_792_704),
    "Qwen3-30B-A3B": (
        configuration(
            "qwen3_moe", 2048, 6144, 48, 32, 4, 151936, 40960, head_dim=128, moe_intermediate_size=768, num_experts=128,
            num_experts_per_tok=8, decoder_sparse_step=1, mlp_only_layers=[],
        ),
        30_532_122_624,
    ),
    "Qwen1.5-MoE-A2.7B": (
        configuration(
            "qwen2_moe", 2048, 5632, 24, 16, 16, 151936, 8192, moe_intermediate_size=1408, num_experts=60,
            shared_expert_intermediate_size=5632, num_experts_per_tok=4, decoder_sparse_step=1,
        ),
        14_315_784_192,
    ),
    "DeepSeek-V2-Lite": (
        configuration(
            "deepseek_v2", 2048, 10944, 27, 16, 16, 102400, 163840, **_MLA, moe_intermediate_size=1408,
            n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6, first_k_dense_replace=1, q_lora_rank=None,
        ),
        15_706_484_224,
    ),
    "DeepSeek-V3": (DEEPSEEK_V3, 671_026_404_352),
    "gpt-oss-20b": (
        configuration(
            "gpt_oss", 2880, 2880, 24, 64, 8, 201088, 131072, head_dim=64, num_local_experts=32, num_experts_per_tok=4,
            attention_bias=True, sliding_window=128, tie_word_embeddings=False,
        ),
        20_914_757_184,
    ),
    "gemma-2-2b": (
        configuration("gemma2", 2304, 9216, 26, 8, 4, 256000, 8192, head_dim=256, sliding_window=4096),
        2_614_341_888,
    ),
    "phi-2": (configuration("phi", 2560, 10240, 32, 32, 32, 51200, 2048), 2_779_683_840),
    "Phi-3-mini-4k": (configuration("phi3", 3072, 8192, 32, 32, 32, 32064, 4096, sliding_window=2047), 3_821_079_552),
    "gpt2": (
        {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257},
        124_439_808,
    ),
    "opt-125m": (
        {
            "model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12, "vocab_size": 50272,
            "num_attention_heads": 12, "max_position_embeddings": 2048, "word_embed_proj_dim": 768,
        },
        125_239_296,
    ),
    "bloom-560m": (
        {"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250880},
        559_214_592,
    ),
    "pythia-160m": (configuration("gpt_neox", 768, 3072, 12, 12, 12, 50304, 2048), 162_322_944),
    "bert-base-uncased": (configuration("bert", 768, 3072, 12, 12, 12, 30522, 512, type_vocab_size=2), 109_482_240),
    "roberta-base": (configuration("roberta", 768, 3072, 12, 12, 12, 50265, 514, type_vocab_size=1), 124_645_632),
}  # fmt: skip
"""Configurations of Hugging Face models, and the numbers of parameters that their pages or files state."""
