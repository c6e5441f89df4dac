"""`placeopt import model.gguf`: tensors, blocks, costs computed by hand, and broken files."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broken import broken_files, check_import
from commandline import run
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFEndian, GGUFReader
from language_models import (
    GROUPS,
    HEADS,
    HIDDEN,
    INNER,
    KEYS,
    VOCABULARY,
    block,
    dense,
    sparse,
    write_gguf,
)

from placeopt.bridges import extras
from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.language_models.gguf_files import read_gguf
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import DocumentError, MissingExtraError, UsageError
from placeopt.io.compiler import compile_spec

SIZES = {kind.name: size for kind, size in GGML_QUANT_SIZES.items()}
MOE = {"expert_count": 8, "expert_used_count": 2}


def size(elements: int, type: str) -> int:
    """Bytes of a tensor by hand: blocks of 256 elements take 144 bytes in Q4_K and 210 in Q6_K."""
    return elements * {"Q4_K": 144, "Q6_K": 210, "Q8_0": 272, "F32": 1024, "F16": 512}[type] // 256


def imported(path: Path, **options: Any) -> Imported:
    return import_file(path, options=ImportOptions(**options))


def tasks(path: Path, **options: Any) -> dict[str, Any]:
    document = imported(path, **options).document
    compile_spec(document)
    found: dict[str, Any] = document["tasks"]
    return found


ATTENTION = (
    size(HIDDEN * HIDDEN, "Q4_K") * 2 + size(KEYS * HIDDEN, "Q4_K") + size(KEYS * HIDDEN, "Q6_K") + size(HIDDEN, "F32")
)
CACHE = 2 * KEYS * 2
"""Bytes of a token in the cache of a block: key and value in 16 bits."""


class TestHeader:
    @pytest.mark.parametrize("options", [{}, {"endianess": GGUFEndian.BIG}])
    def test_equals_that_of_the_reader_of_llama_cpp(self, tmp_path: Path, options: dict[str, Any]) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", sparse(), keys=MOE, **options)
        ours, theirs = read_gguf(path), GGUFReader(path)
        assert [(t.name, t.shape, t.size, t.elements) for t in ours.tensors] == [
            (t.name, tuple(t.shape.tolist()), t.n_bytes, t.n_elements) for t in theirs.tensors
        ]
        for key, value in ours.metadata.items():
            if isinstance(value, int | str):
                field = theirs.get_field(key)
                assert field is not None
                assert field.contents() == value

    @pytest.mark.parametrize("type", sorted(SIZES))
    def test_every_type_has_its_size(self, tmp_path: Path, type: str) -> None:
        """Written by hand, since the writer takes only some types."""
        elements, bytes_ = SIZES[type]
        name = b"t.weight"
        data = struct.pack("<4sIQQ", b"GGUF", 3, 1, 0) + struct.pack("<Q", len(name)) + name
        data += struct.pack("<IQQIQ", 2, elements, 3, GGMLQuantizationType[type].value, 0)
        data += bytes(-len(data) % 32) + bytes(3 * bytes_)
        path = tmp_path / "one.gguf"
        path.write_bytes(data)
        (tensor,) = read_gguf(path).tensors
        assert (tensor.size, tensor.elements) == (3 * bytes_, 3 * elements)
        path.write_bytes(data[:-1])
        with pytest.raises(
            DocumentError, match=r"at byte \d+: the tensor t\.weight: ends at byte \d+, but the file has"
        ):
            read_gguf(path)

    def test_a_large_vocabulary_is_skipped(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", dense())
        tokens = read_gguf(path).metadata["tokenizer.ggml.tokens"]
        assert tokens.length == VOCABULARY

    def test_split_files_are_one_model(self, tmp_path: Path) -> None:
        whole = tasks(write_gguf(tmp_path / "tiny.gguf", dense(4)))
        write_gguf(tmp_path / "part.gguf", dense(4), split_max_tensors=10)
        parts = sorted(tmp_path.glob("part-*.gguf"))
        assert len(parts) == 4
        for part in parts:
            assert tasks(part) == whole
        parts[2].unlink()
        with pytest.raises(DocumentError, match=r"part-00003-of-00004.gguf: no such file; part-00001-of-00004.gguf is"):
            imported(parts[0])
        renamed = parts[0].rename(tmp_path / "renamed.gguf")
        with pytest.raises(DocumentError, match="is one of 4 files, but is not named like one: NAME-00001-of-00004"):
            imported(renamed)

    def test_a_tensor_in_two_files_is_an_error(self, tmp_path: Path) -> None:
        write_gguf(tmp_path / "part.gguf", dense(4), split_max_tensors=20)
        first, second = sorted(tmp_path.glob("part-*.gguf"))
        second.write_bytes(first.read_bytes())
        with pytest.raises(
            DocumentError, match=r"part-00002-of-00002.gguf: the tensor token_embd.weight is in an earl"
        ):
            imported(first)

    def test_the_package_is_needed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        path = write_gguf(tmp_path / "tiny.gguf", dense())
        monkeypatch.setattr(extras, "import_module", missing)
        with pytest.raises(MissingExtraError, match=r"GGUF files need gguf: pip install 'placeopt\[gguf\]'"):
            imported(path)


class TestDense:
    def test_layers(self, tmp_path: Path) -> None:
        found = tasks(write_gguf(tmp_path / "tiny.gguf", dense()), context=100)
        assert list(found) == ["embedding", "layers.0", "layers.1", "head"]
        network = 2 * size(INNER * HIDDEN, "Q4_K") + size(INNER * HIDDEN, "Q6_K") + size(HIDDEN, "F32")
        assert found["layers.1"]["memory"]["resident"] == ATTENTION + network + 100 * CACHE
        assert found["layers.0"]["memory"]["resident"] == ATTENTION + network + 100 * CACHE + 64  # rope_freqs
        assert found["embedding"]["memory"]["resident"] == size(VOCABULARY * HIDDEN, "Q4_K")
        assert found["embedding"]["bytes"] == 144 + 2 * HIDDEN
        assert found["head"]["memory"]["resident"] == size(VOCABULARY * HIDDEN, "Q6_K") + 4 * HIDDEN

    def test_parts(self, tmp_path: Path) -> None:
        found = tasks(write_gguf(tmp_path / "tiny.gguf", dense()), context=100, level="part", batch=2)
        matrices = 2 * HIDDEN * HIDDEN + 2 * KEYS * HIDDEN
        task = found["layers.1.attention"]
        assert task["flops"] == 2 * (2 * matrices + 4 * HIDDEN * 100)
        assert task["bytes"] == ATTENTION + 2 * 100 * CACHE + 2 * 2 * (4 * HIDDEN + 2 * HIDDEN + 2 * KEYS)
        assert task["memory"]["resident"] == ATTENTION + 2 * 100 * CACHE
        assert task["output"] == 2 * 2 * HIDDEN
        assert found["layers.1.ffn"]["flops"] == 2 * 2 * 3 * HIDDEN * INNER
        assert found["layers.1.ffn"]["after"] == ["layers.1.attention"]

    def test_each_tensor_of_a_block_is_a_task(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", dense())
        found, parts = tasks(path, level="tensor"), tasks(path, level="part")
        outside = {"embedding", "head", "layers.0.attention", "layers.1.attention", "rope_freqs.weight"}
        assert set(found) == {*block(0), *block(1)} | outside
        for level in (tasks(path), parts):
            assert sum(task.get("flops", 0) for task in found.values()) == sum(
                task.get("flops", 0) for task in level.values()
            )
            assert sum(task["memory"]["resident"] for task in found.values()) == sum(
                task["memory"]["resident"] for task in level.values()
            )
        assert found["blk.1.ffn_down.weight"]["after"] == ["blk.1.ffn_gate.weight", "blk.1.ffn_up.weight"]
        assert found["layers.1.attention"]["after"] == [f"blk.1.attn_{each}.weight" for each in "qkv"]
        assert found["layers.1.attention"]["memory"]["resident"] == 2048 * CACHE

    def test_a_tied_model_has_one_table(self, tmp_path: Path) -> None:
        found = tasks(write_gguf(tmp_path / "tiny.gguf", dense(tied=True)))
        assert found["head"]["colocate"] == found["embedding"]["colocate"]
        assert found["head"]["memory"]["resident"] == 4 * HIDDEN
        assert found["head"]["flops"] == 2 * HIDDEN * VOCABULARY
        assert found["head"]["bytes"] > size(VOCABULARY * HIDDEN, "Q4_K")

    def test_the_context_is_that_of_the_model_at_most(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", dense())
        assert "the context is 2,048 tokens; --context states another" in imported(path).notes
        assert any("longer than the 2,048 tokens" in note for note in imported(path, context=4096).notes)

    def test_the_command_line_recognises_the_format(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "without-ending", dense())
        done = run("import", path, "--phase", "prefill")
        assert done.code == 0, done.err
        assert "name: tiny\n" in done.out
        assert "prefill with batch 1 and a context of 2,048 tokens" in done.out


class TestExperts:
    def test_a_token_uses_two_of_eight(self, tmp_path: Path) -> None:
        found = tasks(write_gguf(tmp_path / "tiny.gguf", sparse(), keys=MOE), level="part", context=1)
        task = found["layers.1.experts"]
        matrices = 3 * HIDDEN * 256
        total = 8 * (2 * size(HIDDEN * 256, "Q4_K") + size(HIDDEN * 256, "Q6_K"))
        assert task["flops"] == 2 * 2 * matrices
        assert task["memory"]["resident"] == total
        assert task["bytes"] == total // 4 + 2 * 2 * 3 * (HIDDEN + 256)
        shared = 3 * size(256 * HIDDEN, "Q8_0") + size(8 * HIDDEN, "F32") + size(HIDDEN, "F32")
        assert found["layers.1.ffn"]["memory"]["resident"] == shared
        assert found["layers.2.attention"]["after"] == ["layers.1.ffn", "layers.1.experts"]
        assert "layers.0.experts" not in found

    def test_experts_in_tensors_of_their_own(self, tmp_path: Path) -> None:
        """As in the first files of Mixtral."""
        tensors = dense(1)
        for expert in range(8):
            for name in ("gate", "up", "down"):
                tensors[f"blk.0.ffn_{name}.{expert}.weight"] = ([HIDDEN, HIDDEN], "Q4_K")
        tensors = {name: entry for name, entry in tensors.items() if name.count(".") > 2 or "ffn_" not in name}
        tensors = {name: entry for name, entry in tensors.items() if name not in block(0) or "ffn" not in name}
        tensors["blk.0.ffn_gate_inp.weight"] = ([8, HIDDEN], "F32")
        found = tasks(write_gguf(tmp_path / "tiny.gguf", tensors, keys=MOE), level="part")["layers.0.experts"]
        assert found["flops"] == 2 * 2 * 3 * HIDDEN * HIDDEN
        assert found["memory"]["resident"] == 24 * size(HIDDEN * HIDDEN, "Q4_K")

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({}, "expert_count and .expert_used_count are null and null"),
            ({"expert_count": 8, "expert_used_count": 9}, "are 8 and 9"),
            ({"expert_count": 4, "expert_used_count": 2}, "expert_count is 4, but a tensor holds 8 experts"),
        ],
    )
    def test_their_numbers_are_checked(self, tmp_path: Path, keys: dict[str, Any], message: str) -> None:
        with pytest.raises(DocumentError, match=message):
            imported(write_gguf(tmp_path / "tiny.gguf", sparse(), keys=keys))


class TestForms:
    def test_an_unknown_architecture_is_read_by_its_tensors(self, tmp_path: Path) -> None:
        path = write_gguf(tmp_path / "odd.gguf", dense(), "hydra", usual=False)
        result = imported(path, context=100)
        assert any("the architecture hydra is not known" in note for note in result.notes)
        assert any("the shape of the attention follows from the tensors" in note for note in result.notes)
        known = write_gguf(tmp_path / "tiny.gguf", dense())
        assert result.document["tasks"] == tasks(known, context=100)

    def test_queries_keys_and_values_in_one_tensor(self, tmp_path: Path) -> None:
        tensors = {name: entry for name, entry in dense(1).items() if "attn_k" not in name and "attn_v" not in name}
        del tensors["blk.0.attn_q.weight"]
        tensors["blk.0.attn_qkv.weight"] = ([HIDDEN + 2 * KEYS, HIDDEN], "Q4_K")
        for usual in (True, False):
            path = write_gguf(tmp_path / f"{usual}.gguf", tensors, "llama", usual=usual)
            one, two = (tasks(path, level="part", context=c)["layers.0.attention"] for c in (1, 2))
            assert two["memory"]["resident"] - one["memory"]["resident"] == CACHE
            assert two["flops"] - one["flops"] == 4 * HIDDEN

    def test_a_compressed_cache(self, tmp_path: Path) -> None:
        tensors = {name: entry for name, entry in dense(1).items() if ".attn_q" not in name and ".attn_k" not in name}
        del tensors["blk.0.attn_v.weight"]
        tensors |= {
            "blk.0.attn_q_a.weight": ([128, HIDDEN], "F16"),
            "blk.0.attn_q_a_norm.weight": ([128], "F32"),
            "blk.0.attn_q_b.weight": ([HEADS * 48, 128], "F16"),
            "blk.0.attn_kv_a_mqa.weight": ([80, HIDDEN], "F16"),
            "blk.0.attn_kv_a_norm.weight": ([64], "F32"),
            "blk.0.attn_k_b.weight": ([HEADS, 64, 32], "F16"),
            "blk.0.attn_v_b.weight": ([HEADS, 32, 64], "F16"),
        }
        keys = {
            "attention.head_count_kv": 1, "attention.key_length": 80, "attention.value_length": 64,
            "attention.key_length_mla": 48, "attention.value_length_mla": 32,
        }  # fmt: skip
        path = write_gguf(tmp_path / "tiny.gguf", tensors, "deepseek2", keys=keys)
        one, two = (tasks(path, level="part", context=c)["layers.0.attention"] for c in (1, 2))
        assert two["memory"]["resident"] - one["memory"]["resident"] == 80 * 2
        assert two["flops"] - one["flops"] == 2 * HEADS * (80 + 64)
        order = list(tasks(path, level="tensor"))
        assert order.index("blk.0.attn_q_a.weight") < order.index("blk.0.attn_q_b.weight")
        assert order.index("blk.0.attn_k_b.weight") < order.index("layers.0.attention")

    def test_numbers_of_heads_by_block(self, tmp_path: Path) -> None:
        keys = {"attention.head_count_kv": [1, 4], "attention.head_count": [8, 8]}
        path = write_gguf(tmp_path / "tiny.gguf", dense(), keys=keys)
        one, two = (tasks(path, context=c) for c in (1, 2))
        grown = [two[f"layers.{k}"]["memory"]["resident"] - one[f"layers.{k}"]["memory"]["resident"] for k in (0, 1)]
        assert grown == [2 * 32 * 2, 4 * 2 * 32 * 2]

    @pytest.mark.parametrize(
        ("architecture", "keys", "limited"),
        [
            ("gemma2", {}, [0, 2]),
            ("llama", {"attention.sliding_window_pattern": [False, True, True, False]}, [1, 2]),
            ("llama", {"attention.sliding_window_pattern": 3}, [0, 1, 3]),
            ("llama", {}, []),
        ],
    )
    def test_sliding_windows(self, tmp_path: Path, architecture: str, keys: dict[str, Any], limited: list[int]) -> None:
        window = {"attention.sliding_window": 10}
        path = write_gguf(tmp_path / "tiny.gguf", dense(4), architecture, keys=window | keys)
        found, short = tasks(path, context=100), tasks(path, context=10)
        same = [k for k in range(4) if found[f"layers.{k}"]["memory"] == short[f"layers.{k}"]["memory"]]
        assert same == limited
        known = any("blocks with a sliding window are not known" in note for note in imported(path).notes)
        assert known == (not limited)

    def test_a_state_space_block_counts_by_its_bytes(self, tmp_path: Path) -> None:
        tensors = dense(1)
        tensors |= {
            "blk.1.attn_norm.weight": ([HIDDEN], "F32"),
            "blk.1.ssm_in.weight": ([INNER, HIDDEN], "Q4_K"),
            "blk.1.ssm_a": ([INNER, 16], "F32"),
            "blk.1.ssm_out.weight": ([HIDDEN, INNER], "Q4_K"),
        }
        result = imported(write_gguf(tmp_path / "tiny.gguf", tensors, "jamba"))
        task = result.document["tasks"]["layers.1"]
        assert "flops" not in task
        assert task["memory"]["resident"] == 2 * size(INNER * HIDDEN, "Q4_K") + 4 * (HIDDEN + 16 * INNER)
        assert any("have no KV cache" in note for note in result.notes)
        assert any("no rule covers 1 operator (layer)" in note for note in result.notes)

    def test_an_encoder(self, tmp_path: Path) -> None:
        tensors = {name: entry for name, entry in dense().items() if not name.startswith("output")}
        tensors |= {"position_embd.weight": ([64, HIDDEN], "F32"), "token_embd_norm.weight": ([HIDDEN], "F32")}
        path = write_gguf(tmp_path / "tiny.gguf", tensors, "bert", keys={"attention.causal": False})
        result = imported(path, context=10)
        assert "prefill" in result.document["description"]
        assert "head" not in result.document["tasks"]
        with pytest.raises(UsageError, match="--phase decode needs a model that generates text"):
            imported(path, phase="decode")


class TestMistakes:
    @pytest.mark.parametrize(
        ("tensors", "keys", "message"),
        [
            (dense(0), {}, r"tiny.gguf: holds no language model; expected tensors token_embd.weight and blk.0"),
            (dense(), {"block_count": 3}, r"tiny.gguf: the model has 3 blocks, but there are no tensors of blk.2"),
            (dense(), {"block_count": 1}, r"the model has 1 block, but there are tensors of blk.1"),
            (dense(), {"attention.head_count": "8"}, r'llama.attention.head_count.*"8" is not a positive whole number'),
            (dense(), {"attention.head_count": [8]}, r"head_count.*a list is not a positive whole number"),
            (dense(), {"attention.head_count": 999}, r"999 heads are more than the 256 elements of a token"),
            ({**block(0), "output.weight": ([1, 256], "F32")}, {}, r"token_embd.weight is missing or is not a matrix"),
            ({"enc.blk.0.a": ([256], "F32")}, {}, r"the architecture llama is an encoder-decoder"),
        ],
    )
    def test_of_models(self, tmp_path: Path, tensors: Any, keys: dict[str, Any], message: str) -> None:
        with pytest.raises(DocumentError, match=message):
            imported(write_gguf(tmp_path / "tiny.gguf", tensors, keys=keys))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda data: b"GGUX" + data[4:], r"at byte 0: b'GGUX' is not the start of a GGUF file"),
            (lambda data: data[:4] + b"\1\0\0\0" + data[8:], r"at byte 4: the header: version 1 is not supported"),
            (lambda data: data[:8] + b"\xff" * 8 + data[16:], r"at byte 8: the header: 18,446,744,073,709,551,615 ten"),
            (lambda data: data[:16] + b"\xff" * 8 + data[24:], r"at byte 8: the header: 18,446,.* keys do not fit"),
            (lambda data: data[:24] + b"\xff" * 8 + data[32:], r"at byte 24: key 1 of \d+: a name of 18,4.* too long"),
            (lambda data: data[:600], r"at byte \d+: the key tokenizer.ggml.tokens: 320 texts do not fit in the file"),
            (lambda data: data[:0], r"at byte 0: b'' is not the start of a GGUF file"),
            (
                lambda data: data.replace(b"blk.1.ffn_up", b"blk.0.ffn_up"),
                r"the tensor blk.0.ffn_up.weight: is there tw",
            ),
            (
                lambda data: data.replace(b"llama.block_count\4\0\0\0\2", b"general.alignment\4\0\0\0\3"),
                r"at byte \d+: the key general.alignment: 3 is not an alignment; expected a power of two",
            ),
            (lambda data: data.replace(b"output_norm", b"output_n\xff\xffm"), r"is not UTF-8 text"),
        ],
    )
    def test_of_the_header_have_a_byte_offset(self, tmp_path: Path, change: Any, message: str) -> None:
        path = write_gguf(tmp_path / "tiny.gguf", dense())
        path.write_bytes(change(path.read_bytes()))
        with pytest.raises(DocumentError, match=message):
            import_file(path, "gguf")

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(DocumentError, match=r"none.gguf: no such file"):
            import_file(tmp_path / "none.gguf", "gguf")

    def test_broken_files_end_with_a_located_error_or_a_problem(self, tmp_path: Path) -> None:
        valid = write_gguf(tmp_path / "tiny.gguf", sparse(2), keys=MOE).read_bytes()
        header = valid.index(b"output.weight") + 50
        outcomes = [
            check_import(tmp_path / f"{name}.gguf", content + valid[header:], "gguf")
            for name, content in broken_files(valid[:header], 60)
        ]
        assert sum(isinstance(outcome, DocumentError) for outcome in outcomes) >= 30
        cut = [check_import(tmp_path / "cut.gguf", valid[:end], "gguf") for end in range(0, header, header // 20)]
        assert all(isinstance(outcome, DocumentError) for outcome in cut)


def output(program: str, seed: int = 0) -> str:
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def test_the_registries_do_not_load_the_package() -> None:
    program = (
        "import sys\nfrom placeopt.bridges.importers import registry\n"
        "from placeopt.bridges.exporters import registry\nprint('gguf' in sys.modules)"
    )
    assert output(program) == "False\n"


def test_the_document_does_not_depend_on_hashes(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", sparse(), keys=MOE)
    program = (
        "from placeopt.bridges.importers.registry import ImportOptions, import_file\n"
        f"print(import_file({str(path)!r}, options=ImportOptions(level='tensor')))"
    )
    assert output(program, seed=1) == output(program, seed=2)


def test_the_numbers_of_the_small_model() -> None:
    assert KEYS == GROUPS * 32
    assert HIDDEN // HEADS == 32
