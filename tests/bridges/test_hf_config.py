"""`placeopt import config.json`: numbers of parameters, costs computed by hand, and mistakes."""

from __future__ import annotations

import importlib.util
import json
import logging
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from broken import broken_files, check_import
from commandline import run
from language_models import DEEPSEEK_V3, LLAMA_8B, MISTRAL_7B, MIXTRAL, PUBLISHED, configuration

import placeopt as po
from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.json_file import JsonFile
from placeopt.bridges.importers.language_models.configuration import Configuration
from placeopt.bridges.importers.language_models.families import FAMILIES, Family
from placeopt.bridges.importers.language_models.hf_config import transformer
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import DocumentError, UsageError
from placeopt.io.compiler import compile_spec


def written(folder: Path, data: Any) -> Path:
    path = folder / "config.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
    return path


def imported(folder: Path, data: Any, **options: Any) -> Imported:
    return import_file(written(folder, data), options=ImportOptions(**options))


def tasks(folder: Path, data: Any, **options: Any) -> dict[str, Any]:
    document = imported(folder, data, **options).document
    compile_spec(document)
    found: dict[str, Any] = document["tasks"]
    return found


class TestParameters:
    @pytest.mark.parametrize("name", PUBLISHED)
    def test_equal_the_published_number(self, tmp_path: Path, name: str) -> None:
        config, parameters = PUBLISHED[name]
        assert transformer(JsonFile(written(tmp_path, config), "")).parameters == parameters

    @pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("torch", "transformers"))), reason="needs pip install torch transformers"
    )
    @pytest.mark.parametrize("flipped", [False, True])
    @pytest.mark.parametrize("name", FAMILIES)
    def test_equal_those_of_transformers(self, tmp_path: Path, name: str, flipped: bool) -> None:
        import torch
        from transformers import CONFIG_MAPPING, AutoModel, AutoModelForCausalLM

        config = SMALL | MORE.get(name, {})
        config = {key: value for key, value in config.items() if key not in LESS.get(name, ())}
        known = FAMILIES[name]
        family = known if isinstance(known, Family) else known(Configuration(JsonFile(written(tmp_path, config), "")))
        if flipped:  # the other value of each switch
            switches = (family.attention_bias, family.ffn_bias)
            config |= {key: not family.defaults.get(key, False) for key in switches if isinstance(key, str)}
            config["tie_word_embeddings"] = not family.tied
        logging.disable(logging.WARNING)
        try:
            made = CONFIG_MAPPING[name](**config)
            with torch.device("meta"):
                model = (AutoModel if family.encoder else AutoModelForCausalLM).from_config(made)
        finally:
            logging.disable(logging.NOTSET)
        file = JsonFile(written(tmp_path, made.to_json_string()), "")
        assert transformer(file).parameters == model.num_parameters()


SMALL = {
    "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 160,
    "intermediate_size": 96, "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_DEEPSEEK = {
    "kv_lora_rank": 24, "q_lora_rank": 40, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 12,
    "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 2, "moe_intermediate_size": 20,
    "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1,
}  # fmt: skip
_QWEN = {"moe_intermediate_size": 40, "num_experts": 6, "num_experts_per_tok": 2}
MORE: dict[str, dict[str, Any]] = {
    "bloom": {"n_layer": 4, "n_head": 4},
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK | {"q_lora_rank": None, "first_k_dense_replace": 2},
    "gemma": {"head_dim": 32},
    "gemma2": {"head_dim": 32},
    "gemma3_text": {"head_dim": 32},
    "gpt2": {"n_embd": 64, "n_layer": 4, "n_head": 4, "n_positions": 128},
    "gpt_oss": {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2},
    "lfm2": {"intermediate_size": 700, "full_attn_idxs": [1, 3], "block_multiple_of": 32},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "olmoe": {"num_experts": 4, "num_experts_per_tok": 2},
    "opt": {"ffn_dim": 96, "word_embed_proj_dim": 48},
    "qwen2_moe": _QWEN | {"shared_expert_intermediate_size": 56, "decoder_sparse_step": 2},
    "qwen3": {"head_dim": 32},
    "qwen3_moe": _QWEN | {"head_dim": 32, "mlp_only_layers": [1]},
}
_OLD = (
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "max_position_embeddings",
)
LESS: dict[str, tuple[str, ...]] = {
    "bert": ("num_key_value_heads",),
    "bloom": _OLD,
    "gpt2": (*_OLD, "hidden_size"),
    "falcon": ("num_key_value_heads", "intermediate_size"),
    "gpt_neox": ("num_key_value_heads",),
    "persimmon": ("num_key_value_heads",),
    "opt": ("num_key_value_heads",),
    "roberta": ("num_key_value_heads",),
    "xlm-roberta": ("num_key_value_heads",),
}


class TestCosts:
    def test_decoding_takes_two_flop_for_each_parameter_and_the_attention(self, tmp_path: Path) -> None:
        found = tasks(tmp_path, LLAMA_8B, context=1000, batch=3)
        matrices = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
        assert found["layers.7"]["flops"] == 3 * (2 * matrices + 4 * 4096 * 1000)
        assert found["head"]["flops"] == 3 * 2 * 4096 * 128256
        assert "flops" not in found["embedding"]
        assert len(found) == 34
        assert found["layers.7"]["after"] == ["layers.6"]

    def test_a_tied_output_matrix_has_the_size_of_the_table(self, tmp_path: Path) -> None:
        """The table of OPT-350m is narrower than its hidden state."""
        config = {
            "model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24, "vocab_size": 50272,
            "num_attention_heads": 16, "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
        }  # fmt: skip
        assert tasks(tmp_path, config)["head"]["flops"] == 2 * (1024 * 512 + 512 * 50272)

    def test_a_prompt_attends_to_previous_tokens_and_needs_one_output(self, tmp_path: Path) -> None:
        found = tasks(tmp_path, LLAMA_8B, context=1000, batch=3, phase="prefill", level="part")
        pairs = 1000 * 1001 // 2
        assert found["layers.7.attention"]["flops"] == 3 * (
            2 * 1000 * (2 * 4096 * 4096 + 2 * 4096 * 1024) + 4 * 4096 * pairs
        )
        assert found["layers.7.ffn"]["flops"] == 3 * 2 * 1000 * 3 * 4096 * 14336
        assert found["head"]["flops"] == 3 * 2 * 4096 * 128256
        assert found["layers.7.ffn"]["output"] == 3 * 1000 * 4096 * 2

    def test_a_token_has_128_kib_in_the_cache_of_llama_8b(self, tmp_path: Path) -> None:
        """2 (key and value) x 32 layers x 8 heads x 128 elements x 2 bytes."""
        resident = [
            sum(task["memory"]["resident"] for task in tasks(tmp_path, LLAMA_8B, context=context).values())
            for context in (1, 2)
        ]
        assert resident[1] - resident[0] == 128 * 1024
        assert resident[0] - 128 * 1024 == 2 * 8_030_261_248

    def test_decoding_reads_the_weights_and_the_cache(self, tmp_path: Path) -> None:
        found = tasks(tmp_path, LLAMA_8B, context=1000, level="part")["layers.0.attention"]
        weights = 2 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 4096)
        activations = 2 * (8192 + 8192 + 5120 + 5120)
        assert found["bytes"] == weights + 1000 * 4096 + activations
        assert found["memory"]["resident"] == weights + 1000 * 4096

    def test_a_sliding_window_limits_the_cache(self, tmp_path: Path) -> None:
        for context in (4096, 8192):
            found = tasks(tmp_path, MISTRAL_7B, context=context, level="part")["layers.0.attention"]
            weights = 2 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 4096)
            assert found["memory"]["resident"] == weights + 4096 * 4096

    def test_every_second_layer_of_gemma_2_has_a_window(self, tmp_path: Path) -> None:
        config, _ = PUBLISHED["gemma-2-2b"]
        found = tasks(tmp_path, config, context=8192)
        cached = [found[f"layers.{index}"]["memory"]["resident"] for index in range(26)]
        assert {a - b for a, b in zip(cached[1::2], cached[::2], strict=True)} == {4096 * 2 * 4 * 256 * 2}

    def test_a_prompt_with_a_window(self, tmp_path: Path) -> None:
        small = configuration("mistral", 8, 16, 1, 1, 1, 10, 100, sliding_window=4)
        found = tasks(tmp_path, small, context=10, phase="prefill", level="part")["layers.0.attention"]
        pairs = 1 + 2 + 3 + 4 * 7
        assert found["flops"] == 2 * 10 * 4 * 64 + 2 * (8 + 8) * pairs

    def test_the_cache_of_deepseek_is_compressed(self, tmp_path: Path) -> None:
        one, two = (tasks(tmp_path, DEEPSEEK_V3, context=c, level="part")["layers.0.attention"] for c in (1, 2))
        assert two["memory"]["resident"] - one["memory"]["resident"] == (512 + 64) * 2
        assert two["flops"] - one["flops"] == 2 * 128 * (576 + 512)

    def test_an_encoder_has_no_cache_and_attends_to_all_tokens(self, tmp_path: Path) -> None:
        config, parameters = PUBLISHED["bert-base-uncased"]
        found = tasks(tmp_path, config, precision="fp32", context=128, level="part")
        assert sum(task["memory"]["resident"] for task in found.values()) == 4 * parameters
        assert found["layers.0.attention"]["flops"] == 2 * 128 * 4 * 768 * 768 + 4 * 768 * 128 * 128


class TestExperts:
    MATRICES = 3 * 4096 * 14336

    def test_a_token_uses_two_of_eight(self, tmp_path: Path) -> None:
        found = tasks(tmp_path, MIXTRAL, level="part", context=100)["layers.5.experts"]
        assert found["flops"] == 2 * 2 * self.MATRICES
        assert found["memory"]["resident"] == 2 * 8 * self.MATRICES
        assert found["bytes"] == 2 * 2 * self.MATRICES + 2 * 2 * (3 * (4096 + 14336))
        assert found["after"] == ["layers.5.ffn"]

    def test_several_tokens_read_the_expected_share(self, tmp_path: Path) -> None:
        found = tasks(tmp_path, MIXTRAL, level="part", context=100, batch=4)["layers.5.experts"]
        weights = found["bytes"] - 4 * 2 * 2 * (3 * (4096 + 14336))
        assert weights == round(2 * 8 * self.MATRICES * (1 - 0.75**4))

    def test_each_expert_as_a_task(self, tmp_path: Path) -> None:
        part = tasks(tmp_path, MIXTRAL, level="part", context=100, phase="prefill")
        found = tasks(tmp_path, MIXTRAL, level="expert", context=100, phase="prefill")
        each = [found[f"layers.5.experts.{k}"] for k in range(8)]
        whole = part["layers.5.experts"]
        assert sum(task["flops"] for task in each) == whole["flops"]
        assert sum(task["memory"]["resident"] for task in each) == whole["memory"]["resident"]
        assert sum(task["output"] for task in each) == 2 * whole["output"]  # two results for each token
        assert found["layers.6.attention"]["after"] == ["layers.5.ffn", *(f"layers.5.experts.{k}" for k in range(8))]

    def test_a_layer_holds_its_experts(self, tmp_path: Path) -> None:
        part = tasks(tmp_path, MIXTRAL, level="part")
        whole = tasks(tmp_path, MIXTRAL)["layers.5"]
        parts = [task for name, task in part.items() if name.startswith("layers.5.")]
        assert whole["flops"] == sum(task["flops"] for task in parts)
        assert whole["bytes"] == sum(task["bytes"] for task in parts)
        assert whole["memory"]["resident"] == sum(task["memory"]["resident"] for task in parts)

    def test_the_first_layers_of_deepseek_are_dense(self, tmp_path: Path) -> None:
        found = tasks(tmp_path, DEEPSEEK_V3, level="part")
        assert [index for index in range(61) if f"layers.{index}.experts" not in found] == [0, 1, 2]

    def test_the_level_needs_experts(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="--level expert needs a mixture of experts"):
            imported(tmp_path, LLAMA_8B, level="expert")


class TestFormats:
    def layer(self, folder: Path, quantised: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        config = LLAMA_8B if quantised is None else LLAMA_8B | {"quantization_config": quantised}
        found: dict[str, Any] = tasks(folder, config, level="part", **options)["layers.0.ffn"]
        return found

    @pytest.mark.parametrize(
        ("quantised", "bits"),
        [
            ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
            ({"quant_method": "awq", "bits": 4, "group_size": 64}, 4 + 20 / 64),
            ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8),
            ({"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False}, 4.5),
            ({"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": True}, 8),
            ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8),
            (
                {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4}}}},
                4,
            ),
            (
                {
                    "quant_method": "compressed-tensors",
                    "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 128}}},
                },
                4 + 20 / 128,
            ),
        ],
    )
    def test_quantised_weights_take_fewer_bytes(self, tmp_path: Path, quantised: dict[str, Any], bits: float) -> None:
        matrices = 4096 * 14336 * bits / 8
        assert self.layer(tmp_path, quantised)["memory"]["resident"] == 3 * matrices + 2 * 4096

    def test_embedding_and_output_are_not_quantised(self, tmp_path: Path) -> None:
        found = tasks(tmp_path, LLAMA_8B | {"quantization_config": {"bits": 4, "group_size": 128}})
        assert found["embedding"]["memory"]["resident"] == 2 * 4096 * 128256
        assert found["head"]["memory"]["resident"] == 2 * (4096 * 128256 + 4096)

    def test_mxfp4_quantises_routed_experts_only(self, tmp_path: Path) -> None:
        """17 bytes for 32 elements; the files of gpt-oss-20b have 13.76 GB."""
        config, parameters = PUBLISHED["gpt-oss-20b"]
        found = tasks(tmp_path, config | {"quantization_config": {"quant_method": "mxfp4"}}, context=1)
        routed = 24 * 32 * 3 * 2880 * 2880
        cache = 24 * 2 * 8 * 64 * 2
        resident = sum(task["memory"]["resident"] for task in found.values())
        assert resident - cache == routed * 17 // 32 + 2 * (parameters - routed)
        assert round(resident / 10**9, 2) == 13.76

    def test_an_unknown_quantisation_is_noted(self, tmp_path: Path) -> None:
        config = LLAMA_8B | {"quantization_config": {"quant_method": "odd"}}
        assert (
            "the quantisation odd states no number of bits; weights are counted in bf16"
            in imported(tmp_path, config).notes
        )

    @pytest.mark.parametrize(
        ("precision", "size", "work"),
        [("fp32", 4, "fp32"), ("fp16", 2, "fp16"), ("fp8", 1, "fp8"), ("int8", 1, "int8"), ("int4", 0.5, "fp16")],
    )
    def test_the_precision_replaces_the_format(self, tmp_path: Path, precision: str, size: float, work: str) -> None:
        found = self.layer(tmp_path, precision=precision)
        assert found["precision"] == work
        assert found["memory"]["resident"] == 3 * 4096 * 14336 * size + 4096 * max(size, 2)

    def test_the_format_of_the_file(self, tmp_path: Path) -> None:
        assert self.layer(tmp_path)["precision"] == "bf16"
        without = {key: value for key, value in LLAMA_8B.items() if key != "torch_dtype"}
        assert any("the file states no number format" in note for note in imported(tmp_path, without).notes)
        odd = LLAMA_8B | {"torch_dtype": "float12"}
        assert any("'float12' is not known" in note for note in imported(tmp_path, odd).notes)

    def test_an_unknown_precision_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="precision fp61 is not a number format of this import; known are "):
            imported(tmp_path, LLAMA_8B, precision="fp61")


class TestOptions:
    def test_the_context_is_4096_tokens_or_that_of_the_model(self, tmp_path: Path) -> None:
        assert "the context is 4,096 tokens; --context states another" in imported(tmp_path, LLAMA_8B).notes
        config, _ = PUBLISHED["gpt2"]
        assert "the context is 1,024 tokens; --context states another" in imported(tmp_path, config).notes
        assert any("longer than the 1,024 tokens" in n for n in imported(tmp_path, config, context=2000).notes)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"level": "layers"}, "--level layers is not a level of this format; did you mean layer"),
            ({"level": "tensor"}, "--level tensor is not a level of this format; known are layer, part, expert"),
            ({"phase": "decoding"}, "--phase decoding is not a phase; did you mean decode"),
        ],
    )
    def test_wrong_options_are_rejected(self, tmp_path: Path, options: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            imported(tmp_path, LLAMA_8B, **options)

    @pytest.mark.parametrize(
        ("batch", "message"),
        [
            (2**31, r'config\.json: tasks\."layers\.0"\.memory\.resident: \d+ is more than 2\^60 bytes'),
            (2**22, r"config\.json: tasks: the memory of all tasks adds up to"),
        ],
    )
    def test_costs_out_of_range_are_rejected(self, tmp_path: Path, batch: int, message: str) -> None:
        with pytest.raises(DocumentError, match=message):
            imported(tmp_path, LLAMA_8B, batch=batch, context=batch)

    def test_an_encoder_does_not_decode(self, tmp_path: Path) -> None:
        config, _ = PUBLISHED["bert-base-uncased"]
        with pytest.raises(UsageError, match="--phase decode needs a model that generates text"):
            imported(tmp_path, config, phase="decode")

    def test_the_command_line_imports_for_devices_of_the_catalogue(self, tmp_path: Path) -> None:
        path = written(tmp_path, LLAMA_8B | {"_name_or_path": "meta-llama/Llama-3.1-8B"})
        done = run("import", path, "--devices", "a100-40gb:2", "--level", "part", "--context", 8192, "--batch", 2)
        assert done.code == 0, done.err
        assert "name: Llama-3.1-8B\n" in done.out
        both = run("import", path, "--devices", "a100-40gb", "--devices", "xeon-core:2", "--context", "8k")
        assert both.err == "placeopt: --context is 8k; expected a whole number, such as 8192\n"
        both = run("import", path, "--devices", "a100-40gb", "--devices", "xeon-core:2")
        assert "  a100-40gb: {like: a100-40gb}\n  xeon-core: {like: xeon-core, count: 2}\n" in both.out
        assert "8,030,261,248 parameters; decode with batch 2 and a context of 8,192 tokens" in done.out

    def test_a_model_too_large_for_its_devices_is_a_problem_to_explain(self, tmp_path: Path) -> None:
        file, problem = written(tmp_path, LLAMA_8B), tmp_path / "problem.yaml"
        done = run("import", file, "--devices", "rtx-3060", "--out", problem)
        lacking = "all tasks together need 15.46 GiB of resident memory, and all devices have 12 GiB"
        assert done.code == 0
        assert f"note: no plan is feasible: {lacking}; more or larger devices, memory tiers, or" in done.err
        for command in ("solve", "explain", "whatif", "inspect"):
            found = run(command, problem, *(() if command == "inspect" else ("--time-limit", "1s")))
            assert lacking in " ".join((found.out + found.err).split())
            assert found.code == (0 if command == "inspect" else 1)


class TestForms:
    def test_a_table_for_input_and_output_is_there_once(self, tmp_path: Path) -> None:
        config, parameters = PUBLISHED["Llama-3.2-1B"]
        found = tasks(tmp_path, config, context=1)
        assert found["embedding"]["colocate"] == found["head"]["colocate"]
        cache = 16 * 2 * 8 * 64 * 2
        assert sum(task["memory"]["resident"] for task in found.values()) == 2 * parameters + cache
        assert found["head"]["bytes"] > 2 * 2048 * 128256

    def test_an_unknown_type_is_read_like_llama(self, tmp_path: Path) -> None:
        result = imported(tmp_path, LLAMA_8B | {"model_type": "llama9"})
        assert any("the model type llama9 is not known" in note for note in result.notes)
        assert result.document["tasks"] == imported(tmp_path, LLAMA_8B).document["tasks"]

    def test_an_unknown_type_with_other_keys_than_llama_is_rejected(self, tmp_path: Path) -> None:
        more = {"model_type": "llama9", "ssm_state": 16, "multi_query": True, "attn_dropout": 0.1, "bias": False}
        with pytest.raises(
            DocumentError,
            match="model_type: the model type llama9 is not known, and these keys may change its sizes: "
            "ssm_state, multi_query; expected a known type, or keys of Llama",
        ):
            imported(tmp_path, LLAMA_8B | more)

    def test_an_encoder_decoder_is_rejected_before_its_keys_are_read(self, tmp_path: Path) -> None:
        for kind in ("t5", "whisper"):
            with pytest.raises(DocumentError, match=f"{kind} is an encoder-decoder, which is not supported") as found:
                imported(tmp_path, {"model_type": kind, "d_model": 512})
            assert len(found.value.issues) == 1

    def test_the_cache_of_falcon_and_of_lfm2(self, tmp_path: Path) -> None:
        """Falcon-7B has one key and value of 64 elements for all heads, LFM2 no cache in its convolutions."""

        def cache(name: str) -> int:
            shapes = [block.shape for block in transformer(JsonFile(written(tmp_path, PUBLISHED[name][0]), "")).blocks]
            return sum(shape.cached for shape in shapes if shape is not None)

        assert cache("falcon-7b") == 32 * 2 * 64
        assert cache("falcon-40b") == 60 * 2 * 8 * 64
        assert cache("LFM2-1.2B") == 6 * 2 * 8 * 64

    def test_the_language_model_of_a_model_for_images(self, tmp_path: Path) -> None:
        outer = {key: LLAMA_8B[key] for key in ("torch_dtype", "tie_word_embeddings")}
        inner = {key: value for key, value in LLAMA_8B.items() if key not in outer}
        result = imported(tmp_path, {"model_type": "llava", "text_config": inner, "vision_config": {}} | outer)
        assert any("only the language model (text_config)" in note for note in result.notes)
        assert result.document["tasks"] == imported(tmp_path, LLAMA_8B).document["tasks"]

    def test_same_file_same_document(self, tmp_path: Path) -> None:
        assert imported(tmp_path, DEEPSEEK_V3) == imported(tmp_path, DEEPSEEK_V3)


def test_the_documentation_lists_all_families() -> None:
    page = (Path(__file__).parents[2] / "docs" / "language-models.md").read_text()
    listed = page.partition("values of `model_type`: ")[2].partition(".")[0]
    assert listed.replace("\n", " ") == ", ".join(f"`{name}`" for name in FAMILIES)


class TestMistakes:
    @pytest.mark.parametrize(
        ("data", "message"),
        [
            ({"model_type": "llama"}, r"hidden_size or n_embd or n_embed or d_model is missing"),
            ({"model_type": "llama"}, r"vocab_size is missing; expected a positive whole number"),
            (LLAMA_8B | {"hidden_size": -1}, r"config.json:3:17: hidden_size: -1 is not a size"),
            (LLAMA_8B | {"hidden_size": "4096"}, r'hidden_size: "4096" is not a size'),
            (LLAMA_8B | {"num_attention_heads": 5000}, r"num_attention_heads: 5000 is more than the hidden size 4096"),
            (
                LLAMA_8B | {"num_attention_heads": 31},
                r":6:25: num_attention_heads: 31 does not divide the hidden size 4096, and head_dim is missing",
            ),
            (PUBLISHED["gpt2"][0] | {"n_head": 7}, r":\d+:\d+: n_head: 7 does not divide the hidden size 768"),
            (LLAMA_8B | {"num_key_value_heads": 5}, r"num_key_value_heads: 5 does not divide the 32 attention heads"),
            (LLAMA_8B | {"num_key_value_heads": 64}, r"num_key_value_heads: 64 does not divide the 32 attention heads"),
            (LLAMA_8B | {"num_hidden_layers": 0}, r":\d+:\d+: num_hidden_layers: 0 is not a size"),
            (LLAMA_8B | {"tie_word_embeddings": 1}, r"tie_word_embeddings: 1 is not true or false"),
            (LLAMA_8B | {"num_hidden_layers": 10**6}, r"num_hidden_layers: 1,000,000 layers are too many"),
            (LLAMA_8B | {"model_type": "t5"}, r"model_type: t5 is an encoder-decoder"),
            (
                LLAMA_8B | {"model_type": "odd", "num_experts": 8},
                r"model_type: a mixture of experts of an unknown form",
            ),
            (MIXTRAL | {"num_experts_per_tok": 9}, r"num_experts_per_tok: 9 is more than the 8 experts"),
            (DEEPSEEK_V3 | {"kv_lora_rank": None}, r"kv_lora_rank is missing"),
            ('{"model_type": "llama", "hidden_size": }', r"config.json:1:40: "),
        ],
    )
    def test_are_located(self, tmp_path: Path, data: Any, message: str) -> None:
        with pytest.raises(DocumentError, match=message):
            imported(tmp_path, data)

    def test_all_are_reported_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(DocumentError, match="hidden_size") as found:
            imported(tmp_path, {"model_type": "gemma", "vocab_size": 0.5, "num_hidden_layers": True})
        assert len(found.value.issues) == 5

    @pytest.mark.parametrize(
        "config", [LLAMA_8B, MIXTRAL, DEEPSEEK_V3, PUBLISHED["gpt2"][0]], ids=itemgetter("model_type")
    )
    def test_broken_files_end_with_a_located_error_or_a_problem(self, tmp_path: Path, config: dict[str, Any]) -> None:
        valid = json.dumps(config, indent=1).encode()
        outcomes = [
            check_import(tmp_path / f"{name}.json", content, "hf-config") for name, content in broken_files(valid, 50)
        ]
        assert sum(isinstance(outcome, DocumentError) for outcome in outcomes) >= 10


GPUS: dict[str, Any] = {"devices": {"gpu": {"like": "rtx-4090", "count": 4}}}


class TestTensorParallelism:
    def divided(self, folder: Path, data: Any, **options: Any) -> dict[str, Any]:
        """The modes of each task."""
        found = tasks(folder, data, network=GPUS, **options)
        return {name: task["modes"] for name, task in found.items() if "modes" in task}

    def test_the_members_of_a_team_divide_weights_and_sum_up_outputs(self, tmp_path: Path) -> None:
        alone = tasks(tmp_path, LLAMA_8B, level="part")
        modes = self.divided(tmp_path, LLAMA_8B, level="part", tensor_parallel=(1, 4))
        assert modes.keys() == alone.keys()
        assert all(each["tp1"] == {} and each["tp4"]["team"] == {"*": 4} for each in modes.values())
        attention, memory = modes["layers.0.attention"]["tp4"], alone["layers.0.attention"]["memory"]
        assert attention["shards"] == memory["resident"] + memory["scratch"]  # 8 key-value heads, two for each GPU
        assert attention["all_reduce"] == modes["layers.0.ffn"]["tp4"]["all_reduce"] == 2 * LLAMA_8B["hidden_size"]
        assert modes["head"]["tp4"]["all_gather"] == 2 * LLAMA_8B["vocab_size"]

    def test_a_layer_sums_up_twice(self, tmp_path: Path) -> None:
        modes = self.divided(tmp_path, LLAMA_8B, tensor_parallel=(2,))
        assert modes["layers.3"]["tp2"]["all_reduce"] == [2 * LLAMA_8B["hidden_size"]] * 2

    def test_more_devices_than_key_value_heads_hold_copies_of_the_cache(self, tmp_path: Path) -> None:
        few = {**LLAMA_8B, "num_key_value_heads": 2}
        modes = self.divided(tmp_path, few, level="part", context=64, tensor_parallel=(2, 4))["layers.0.attention"]
        cache = 2 * 2 * 128 * 64 * 2
        assert modes["tp4"]["memory"]["resident"] == cache // 2
        assert modes["tp2"]["memory"]["resident"] == 0
        assert modes["tp2"]["shards"] == modes["tp4"]["shards"] + cache
        latent = self.divided(tmp_path, DEEPSEEK_V3, level="part", context=64, tensor_parallel=(2,))
        assert latent["layers.0.attention"]["tp2"]["memory"]["resident"] == (512 + 64) * 64 * 2

    def test_a_plan_is_proved(self, tmp_path: Path) -> None:
        small = {**LLAMA_8B, "num_hidden_layers": 2}
        found = imported(tmp_path, small, network=GPUS, tensor_parallel=(1, 2, 4))
        assert any("memory_model sum" in note for note in found.notes)
        problem = compile_spec(found.document)
        assert problem.has_modes
        assert problem.n_devices == 4 + 4 + 6 + 1
        assert po.solve(problem, "cp-sat", workers=1, time_limit=60).termination is po.Termination.OPTIMAL

    def test_stages_of_a_pipeline_run_on_teams(self, tmp_path: Path) -> None:
        small = {**LLAMA_8B, "num_hidden_layers": 2}
        found = imported(tmp_path, small, network=GPUS, tensor_parallel=(1, 2), objective="period")
        problem = compile_spec(found.document)
        assert problem.pipeline is not None
        assert problem.pipeline.machines is not None
        result = po.solve(problem, "cp-sat", workers=1, time_limit=2)
        assert result.feasible

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"tensor_parallel": (8,)}, "a team of 8 is larger than the network, which has 4 devices"),
            ({"tensor_parallel": (2,), "level": "expert"}, "expected level layer or part, not expert"),
            ({"tensor_parallel": (0,)}, "expected numbers of devices such as 1, 2, 4"),
        ],
    )
    def test_what_is_not_possible(self, tmp_path: Path, options: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            imported(tmp_path, MIXTRAL, network=GPUS, **options)

    def test_the_command(self, tmp_path: Path) -> None:
        file = written(tmp_path, {**LLAMA_8B, "num_hidden_layers": 2})
        problem, plan = tmp_path / "problem.yaml", tmp_path / "plan.json"
        run("import", file, "--devices", "rtx-4090:2", "--tensor-parallel", "1,2", "--out", problem)
        run("solve", problem, "--solver", "heft", "--out", plan)
        for target in ("vllm", "llama.cpp"):
            wrong = run("export", problem, plan, "--to", target)
            assert "modes or in teams of devices, which the format cannot express" in wrong.err
        assert "expected one such as 1,2,4" in run("import", file, "--tensor-parallel", "1;2").err
        assert "takes no --tensor-parallel" in run("import", file, "--format", "stg", "--tensor-parallel", "2").err


class TestServing:
    def test_layers_of_a_dense_model(self, tmp_path: Path) -> None:
        """Eight heads of 128 keys and values in bf16; two FLOP for each weight of a matrix, and attention."""
        found = imported(tmp_path, LLAMA_8B, serve=True, network="l4:2", context=1024)
        serving = found.document["serving"]
        first, middle, last = serving["layers"]
        attention, feed_forward = 2 * 4096 * 4096 + 2 * 4096 * 1024, 3 * 4096 * 14336
        assert (first["count"], middle["count"], last["count"]) == (1, 30, 1)
        assert middle["cache"] == 2 * 8 * 128 * 2
        assert middle["flops"] == 2 * (attention + feed_forward) + 2 * 1024 * 32 * (128 + 128)
        assert middle["weights"] == 2 * (attention + feed_forward + 2 * 4096)
        assert first["weights"] == middle["weights"]
        assert first["tables"] == 2 * 128256 * 4096  # a token needs one row
        assert last["weights"] - middle["weights"] == 2 * (128256 * 4096 + 4096)
        assert last["flops"] - middle["flops"] == 2 * 128256 * 4096
        assert serving["activation"] == 2 * 4096
        assert any("no memory is reserved" in note for note in found.notes)
        problem = po.load_serving(found.document)
        assert (problem.layers, problem.n_nodes) == (32, 2)
        assert po.solve_serving(problem, time_limit=1).rate > 0

    def test_a_token_uses_some_experts(self, tmp_path: Path) -> None:
        layers = imported(tmp_path, MIXTRAL, serve=True, context=1).document["serving"]["layers"]
        experts = 3 * 4096 * 14336
        assert layers[1]["weights"] > 2 * 8 * experts
        assert 2 * 2 * experts < layers[1]["flops"] < 2 * 3 * experts

    def test_devices_that_do_not_hold_the_model(self, tmp_path: Path) -> None:
        file = written(tmp_path, LLAMA_8B)
        small = run("import", file, "--serve", "--devices", "rtx-4060", "--out", tmp_path / "small.yaml")
        assert small.code == 0
        assert "note: no plan exists: the layers need 15.46 GiB for their weights and one request, and all" in small.err
        enough = run("import", file, "--serve", "--devices", "l4", "--out", tmp_path / "enough.yaml")
        assert "no plan exists" not in enough.err
        unknown = run("import", file, "--serve", "--out", tmp_path / "unknown.yaml")
        assert unknown.code == 0
        assert "note: solve needs a change: devices.xeon-core: lacks memory" in unknown.err

    @pytest.mark.parametrize("options", [{"level": "layer"}, {"phase": "decode"}, {"objective": "period"}])
    def test_options_of_tasks_are_refused(self, options: dict[str, Any], tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="exclude each other"):
            imported(tmp_path, LLAMA_8B, serve=True, **options)
