"""PyTorch models as problems: tasks, costs, weights, modules, sizes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import placeopt as po

pytest.importorskip("torch", reason="PyTorch models need torch: pip install 'placeopt[torch]'")

import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from torch_models import ConvNet, Llama, Mlp, Twice, small_llama

from placeopt.bridges.costs.aten_rules import Meter
from placeopt.bridges.importers.imported import ImportOptions
from placeopt.bridges.importers.registry import import_file
from placeopt.bridges.pytorch.kernels import Kernel, KernelGraph, contracted
from placeopt.bridges.pytorch.kernels import Tensor as State

NETWORK = {
    "devices": {"gpu": {"count": 2, "speed": "1 TFLOP/s", "memory_bandwidth": "100 GB/s"}},
    "links": {"default": {"bandwidth": "10 GB/s", "latency": "1 us"}},
}
IDS = torch.zeros(2, 8, dtype=torch.long)


def tasks_of(model: nn.Module, *inputs: Tensor, **options: Any) -> dict[str, dict[str, Any]]:
    imported = po.from_torch(model, inputs, devices=NETWORK, **options)
    assert po.compile(imported.document).n_tasks == len(imported.document["tasks"])
    return imported.document["tasks"]


def total(tasks: dict[str, dict[str, Any]], key: str) -> int:
    return sum(task.get(key, 0) for task in tasks.values())


def resident(tasks: dict[str, dict[str, Any]]) -> int:
    return sum(task.get("memory", {}).get("resident", 0) for task in tasks.values())


def bytes_of(model: nn.Module) -> int:
    return sum(each.numel() * each.element_size() for each in (*model.parameters(), *model.buffers()))


def counted(model: nn.Module, *inputs: Tensor) -> int:
    """FLOP by the counter of PyTorch."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*inputs)
    return counter.get_total_flops()


class TestCosts:
    @pytest.mark.parametrize("name", ["mlp", "conv", "llama"])
    def test_flops_are_within_one_percent_of_the_counter_of_torch(self, name: str) -> None:
        with torch.device("meta"):
            model, inputs = {
                "mlp": lambda: (Mlp(512, 1024, 10), torch.zeros(16, 512)),
                "conv": lambda: (ConvNet(), torch.zeros(2, 3, 64, 64)),
                "llama": lambda: (Llama(2, 1024, 8, 2, 4096, 1000), torch.zeros(1, 64, dtype=torch.long)),
            }[name]()
            expected = counted(model.eval(), inputs)
            tasks = tasks_of(model, inputs)
        assert expected <= total(tasks, "flops") <= 1.01 * expected
        assert resident(tasks) == bytes_of(model) - 8 * sum("num_batches" in each for each, _ in model.named_buffers())

    def test_costs_of_a_linear_layer_by_hand(self) -> None:
        tasks = tasks_of(nn.Linear(4, 3), torch.zeros(2, 4))
        assert tasks == {
            "linear": {
                "op": "linear",
                "flops": 2 * 2 * 4 * 3,
                "bytes": 4 * (2 * 4 + 4 * 3 + 3 + 2 * 3),
                "precision": "fp32",
                "output": 4 * 2 * 3,
                "memory": {"resident": 4 * (4 * 3 + 3)},
            }
        }

    def test_views_are_no_tasks_and_copies_are(self) -> None:
        class Views(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                y = x.relu()
                free = y.view(8, 4).t().unsqueeze(0).expand(5, 4, 8).contiguous()  # only `contiguous` copies
                return free.reshape(5, 32) + y.reshape(1, 32)

        tasks = tasks_of(Views(), torch.zeros(4, 8))
        assert [task["op"] for task in tasks.values()] == ["relu", "contiguous", "add"]
        assert tasks["contiguous"]["bytes"] == 4 * (32 + 5 * 32)  # an expanded dimension is stored once
        assert list(tasks["add"]["after"]) == ["relu", "contiguous"]

    def test_a_table_is_not_read_as_a_whole(self) -> None:
        tasks = tasks_of(nn.Embedding(100_000, 16), IDS)
        assert tasks["embedding"]["bytes"] == 2 * 4 * 16 * 16 + 8 * 16

    @pytest.mark.parametrize(("kind", "precision"), [("bfloat16", "bf16"), ("float16", "fp16"), ("float64", "fp64")])
    def test_precision_is_the_type_of_the_tensors(self, kind: str, precision: str) -> None:
        model, x = nn.Linear(4, 4).to(getattr(torch, kind)), torch.zeros(2, 4, dtype=getattr(torch, kind))
        assert tasks_of(model, x)["linear"]["precision"] == precision

    def test_precision_replaces_fp32(self) -> None:
        assert tasks_of(nn.Linear(4, 4), torch.zeros(2, 4), precision="tf32")["linear"]["precision"] == "tf32"
        with pytest.raises(
            po.UsageError, match="precision tf23 is not a number format of this import; known are fp64, fp32, tf32"
        ):
            po.from_torch(nn.Linear(4, 4), (torch.zeros(2, 4),), precision="tf23")

    def test_operators_of_other_libraries_are_guessed(self) -> None:
        library = torch.library.Library("placeopt_test", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: 2 * x, "CompositeExplicitAutograd")
        torch.library.register_fake("placeopt_test::twice", torch.empty_like, lib=library)

        class Own(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return torch.ops.placeopt_test.twice(x).relu()

        imported = po.from_torch(Own(), (torch.zeros(1000),), devices=NETWORK)
        assert "bytes" in imported.document["tasks"]["twice"]
        assert any("no rule covers 1 operator (twice)" in note for note in imported.notes)

    @pytest.mark.parametrize(
        ("operation", "shapes", "flops"),
        [
            (torch.mv, [(5, 7), (7,)], 2 * 5 * 7),
            (torch.dot, [(7,), (7,)], 2 * 7),
            (torch.addmv, [(5,), (5, 7), (7,)], 2 * 5 * 7),
            (lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), [(1, 2, 3, 3)], 2 * 36 * 4 * 2),
            (lambda x: F.interpolate(x, scale_factor=2.0), [(1, 2, 3, 3)], 0),
            (lambda x: x.topk(4).values, [(3, 100)], 300 * 2),
            (lambda x: x.diff(), [(3, 4)], 9),
            (lambda x: x.isnan() & x.isinf(), [(3, 4)], 3 * 12),
            (lambda x: torch.stack((x, x.flip(0).roll(1))), [(3, 4)], 0),
        ],
    )
    def test_other_operators(self, operation: Any, shapes: list[tuple[int, ...]], flops: int) -> None:
        class Own(nn.Module):
            def forward(self, *given: Tensor) -> Tensor:
                return operation(*given)

        imported = po.from_torch(Own(), tuple(torch.zeros(*shape) for shape in shapes), devices=NETWORK)
        assert total(imported.document["tasks"], "flops") == flops
        assert not any("no rule covers" in note for note in imported.notes)

    def test_arguments_may_be_stated_by_name(self) -> None:
        data = torch.empty(2, 3, 8, 8, device="meta")
        for operator, size in (
            (torch.ops.aten.max_pool2d_with_indices.default, [2, 2]),
            (torch.ops.aten.topk.default, 3),
        ):
            name = operator._schema.arguments[1].name
            assert Meter().cost(operator, (data,), {name: size}) == Meter().cost(operator, (data, size), {})

    def test_work_without_a_rule_is_guessed(self) -> None:
        class Own(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return torch.linalg.inv(x).relu()

        imported = po.from_torch(Own(), (torch.zeros(50, 50),), devices=NETWORK)
        assert any("no rule covers 1 operator (linalg_inv" in note for note in imported.notes)

    def test_control_flow_is_one_task(self) -> None:
        class Branches(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.small, self.large = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 8))

            def forward(self, x: Tensor) -> Tensor:
                return torch.cond(x.sum() > 0, self.small, self.large, (x,)) + 1

        tasks = tasks_of(Branches(), torch.zeros(2, 8))
        assert [task["op"] for task in tasks.values()] == ["sum", "gt", "cond", "add"]
        assert tasks["cond"]["flops"] == 2 * 2 * 8 * 32 * 2  # the costlier branch

    def test_code_without_gradients_is_one_task(self) -> None:
        class Frozen(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

            def forward(self, x: Tensor) -> Tensor:
                with torch.no_grad():
                    y = self.b(self.a(x))
                return y + x

        tasks = tasks_of(Frozen(), torch.zeros(2, 8))
        assert total(tasks, "flops") == 2 * 2 * 2 * 8 * 8 + 2 * 8
        assert resident(tasks) == 2 * 4 * (64 + 8)

    def test_costs_out_of_range_are_rejected(self) -> None:
        with (
            torch.device("meta"),
            pytest.raises(po.DocumentError, match=r"tasks\.linear\.flops: \d+ is more than 2\^60"),
        ):
            po.from_torch(nn.Linear(2**20, 2**20), (torch.empty(2**30, 2**20),))


class TestGraph:
    def test_names_are_nodes_and_edges_follow_the_data(self) -> None:
        tasks = tasks_of(Mlp(4, 8, 2), torch.zeros(1, 4))
        assert {name: task.get("after", []) for name, task in tasks.items()} == {
            "linear": [], "relu": ["linear"], "linear_1": ["relu"],
        }  # fmt: skip

    def test_later_readers_depend_on_operators_in_place_and_these_on_earlier_readers(self) -> None:
        class InPlace(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                y = x.exp()
                early = y.cos()
                y.add_(1)
                return y.sin() + early

        imported = po.from_torch(InPlace(), (torch.zeros(100),), devices=NETWORK)
        tasks = imported.document["tasks"]
        assert tasks["add_"]["after"] == {"exp": None, "cos": 0}
        assert tasks["sin"]["after"] == ["add_"]

    def test_memory_that_is_read_by_an_older_name_keeps_its_tasks_together(self) -> None:
        class Alias(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                y = x.exp()
                y[0].add_(1)  # changes y through a view
                return y.sin()

        tasks = tasks_of(Alias(), torch.zeros(2, 100))
        assert tasks["sin"]["after"] == ["add_"]
        assert tasks["exp"]["colocate"] == tasks["add_"]["colocate"] == tasks["sin"]["colocate"] == "memory of exp"

    def test_an_edge_carries_the_results_that_its_consumer_reads(self) -> None:
        class Indices(nn.Module):
            def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
                values, places = x.max(1)
                return values.exp(), places + 1

        tasks = tasks_of(Indices(), torch.zeros(10, 20))
        assert tasks["max_1"]["output"] == 10 * (4 + 8)
        assert tasks["exp"]["after"] == {"max_1": 40}
        assert tasks["add"]["after"] == {"max_1": 80}

    def test_tied_weights_are_counted_once_and_colocated(self) -> None:
        class Tied(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embedding, self.head = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
                self.head.weight = self.embedding.weight

            def forward(self, ids: Tensor) -> Tensor:
                return self.head(self.embedding(ids).relu())

        with torch.device("meta"):
            imported = po.from_torch(Tied(), (IDS.to("meta"),), devices=NETWORK)
            copies = po.from_torch(Tied(), (IDS.to("meta"),), devices=NETWORK, shared="copy")
        tasks = imported.document["tasks"]
        assert resident(tasks) == 50 * 16 * 4
        assert tasks["embedding"]["colocate"] == tasks["linear"]["colocate"] == "embedding.weight"
        assert any("1 weight with several readers (embedding.weight)" in note for note in imported.notes)
        assert resident(copies.document["tasks"]) == 2 * 50 * 16 * 4
        assert "colocate" not in copies.document["tasks"]["linear"]
        assert any("together 3.125 KiB more" in note for note in copies.notes)
        assert set(imported.document["x-torch"]["weights"]) == {"embedding.weight", "head.weight"}

    def test_a_buffer_that_changes_stays_with_its_readers(self) -> None:
        class Cache(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("cache", torch.zeros(64, 8))

            def forward(self, x: Tensor) -> Tensor:
                self.cache[:2].copy_(x)
                return self.cache.exp()

        tasks = tasks_of(Cache(), torch.zeros(2, 8))
        assert resident(tasks) == 64 * 8 * 4
        assert tasks["copy_"]["bytes"] == 2 * 2 * 8 * 4
        assert tasks["copy_"]["colocate"] == tasks["exp"]["colocate"]
        assert "output" not in tasks["copy_"]

    def test_the_order_of_sets_decides_nothing(self) -> None:
        first, second = (po.from_torch(small_llama(2), (IDS,), devices=NETWORK, level="module") for _ in range(2))
        assert list(first.document["tasks"].items()) == list(second.document["tasks"].items())


class _Sharing(nn.Module):
    """Results in place, a view, a slice, two layouts of one tensor, and a result that is returned."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a = torch.softmax(x, 0)
        b = torch.tanh(torch.relu(a).view(-1))
        c = b.reshape(x.shape) + a
        d = c + c.T
        e = torch.neg(d[:2])
        return torch.exp(d), e * 2 + e.sum()


def test_results_that_may_take_the_memory_of_an_argument() -> None:
    tasks = tasks_of(_Sharing(), torch.ones(4, 4), addresses="64 B")
    shares = {name: task["in_place"] for name, task in tasks.items() if "in_place" in task}
    assert shares == {
        "relu": ["softmax"], "tanh": ["relu"], "add": ["tanh", "softmax"], "exp": ["add_1"], "mul": ["neg"],
        "add_2": ["mul"],
    }  # fmt: skip
    assert not any("in_place" in task for task in tasks_of(_Sharing(), torch.ones(4, 4)).values())


def test_returned_and_changed_tensors_keep_their_memory() -> None:
    class Returned(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            a = torch.neg(x)
            b = torch.neg(x).add_(1)
            return a.view(-1), torch.relu(a) + torch.exp(b)

    tasks = tasks_of(Returned(), torch.ones(4, 4), addresses="64 B")
    assert {name for name, task in tasks.items() if "in_place" in task} == {"add"}


class TestLevels:
    @pytest.mark.parametrize("level", ["module", 1, 2, 3, "2"])
    def test_costs_do_not_depend_on_the_level(self, level: str | int) -> None:
        fine, coarse = tasks_of(small_llama(), IDS), tasks_of(small_llama(), IDS, level=level)
        assert len(coarse) < len(fine)
        assert total(coarse, "flops") == total(fine, "flops")
        assert total(coarse, "bytes") == total(fine, "bytes")
        assert resident(coarse) == resident(fine)

    def test_tasks_are_modules(self) -> None:
        assert list(tasks_of(small_llama(2), IDS, level=2)) == [
            "embedding", "model", "layers.0", "layers.1", "norm", "head",
        ]  # fmt: skip
        tasks = tasks_of(small_llama(1), IDS, level="module")
        assert [name for name in tasks if "attention" in name] == [
            "layers.0.attention.q", "layers.0.attention.k", "layers.0.attention.v", "layers.0.attention",
            "layers.0.attention.o",
        ]  # fmt: skip
        assert "layers.0#2" in tasks  # the module adds before and after its feed-forward network

    def test_each_call_of_a_module_is_a_task(self) -> None:
        tasks = tasks_of(Twice(), torch.zeros(1, 4), level="module")
        assert list(tasks) == ["layer", "layer@1"]
        assert tasks["layer"]["colocate"] == tasks["layer@1"]["colocate"]

    def test_memory_inside_of_a_module_is_scratch(self) -> None:
        class Inner(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return torch.cat([x] * 10).exp().sum()

        tasks = tasks_of(Inner(), torch.zeros(100), level="module")
        assert tasks == {
            "model": {
                "op": "module",
                "flops": 1000 * 22 + 1000,
                "bytes": 4 * (10 * 100 + 1000 + 2 * 1000 + 1000 + 1),
                "precision": "fp32",
                "output": 4,
                "memory": {"scratch": 2 * 4000},
            }
        }

    @pytest.mark.parametrize("level", ["modul", 0, -1, 1.5, True, "0", None, "x" * 50])
    def test_a_wrong_level_is_a_usage_error(self, level: Any) -> None:
        with pytest.raises(po.UsageError, match="expected op, module, or a depth"):
            po.from_torch(Mlp(2, 2), (torch.zeros(1, 2),), level=level)

    @given(st.data())
    @settings(max_examples=60, deadline=None)
    def test_any_grouping_of_kernels_is_acyclic_and_keeps_the_amounts(self, data: st.DataObject) -> None:
        n = data.draw(st.integers(1, 12))
        tensors = [State(data.draw(st.integers(1, 9)), k) for k in range(n)]
        kernels = [
            Kernel(f"k{k}", "op", [f"k{k}"], flops=k + 1, traffic=10, writes=[k],
                   reads=dict.fromkeys(sorted(data.draw(st.sets(st.integers(0, k - 1), max_size=3))), 1) if k else {})
            for k in range(n)
        ]  # fmt: skip
        keys = [data.draw(st.integers(0, 3)) for _ in range(n)]
        coarse, groups = contracted(KernelGraph(kernels, tensors, {n - 1: None}, {}, {}), keys, fused=False)
        assert sorted(k for members in groups for k in members) == list(range(n))
        assert sum(kernel.flops for kernel in coarse.kernels) == n * (n + 1) // 2
        for g, earlier in enumerate(coarse.predecessors()):
            assert all(other < g for other in earlier)


class TestSizes:
    @staticmethod
    def dynamic() -> torch.export.ExportedProgram:
        return torch.export.export(
            Mlp(4, 8, 2), (torch.zeros(3, 4),), dynamic_shapes=({0: torch.export.Dim("batch", max=64)},), strict=False
        )

    def test_symbolic_sizes_take_values(self) -> None:
        by_batch = po.from_torch(self.dynamic(), devices=NETWORK, batch=16)
        by_name = po.from_torch(self.dynamic(), devices=NETWORK, dims={"x.0": 16})
        fixed = po.from_torch(Mlp(4, 8, 2), (torch.zeros(16, 4),), devices=NETWORK)
        by_shape = po.from_torch(self.dynamic(), devices=NETWORK, dims={"x.shape[0]": 16})
        assert by_batch.document["tasks"] == by_name.document["tasks"] == fixed.document["tasks"]
        assert by_shape.document["tasks"] == fixed.document["tasks"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, r"a value for each: --dim x\.0=SIZE \(--batch SIZE states first dimensions\); they are s\d+ \(x\.0\)"),
            ({"dims": {"batch": 2}}, r"unknown dimension batch; known are s\d+ \(x\.0\); torch.export drops the names"),
            ({"batch": 100}, r"the batch size \(x\.0\) is 100; the export allows \d to 64"),
            ({"dims": {"y.0": 2}}, r"unknown dimension y\.0; did you mean x\.0"),
            ({"dims": {"x.0": 2}, "batch": 3}, "both are the size"),
        ],
    )
    def test_wrong_sizes_are_usage_errors(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(po.UsageError, match=message):
            po.from_torch(self.dynamic(), **options)

    def test_a_fixed_size_takes_no_value(self) -> None:
        for options, message in (
            ({"batch": 2}, "fixed batch size"),
            ({"dims": {"x.0": 2}}, "every size of the model is"),
        ):
            with pytest.raises(po.UsageError, match=message):
                po.from_torch(Mlp(2, 2), (torch.zeros(1, 2),), **options)

    def test_a_size_that_depends_on_data_needs_a_value(self) -> None:
        class Selected(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return x[x > 0].exp()

        with pytest.raises(po.UsageError, match=r"node \w+: its size u\d+ depends on the data; state u\d+"):
            po.from_torch(Selected(), (torch.zeros(10),))
        assert tasks_of(Selected(), torch.zeros(10), dims={"u0": 5})["exp"]["output"] == 20


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "options", "message"),
        [
            (("text",), {}, "model is of type str; expected a module or an exported program"),
            ((nn.Linear(2, 2),), {}, "a module needs example inputs"),
            ((nn.Linear(2, 2), torch.zeros(2)), {}, "expected a tuple of the example inputs"),
            ((nn.Linear(2, 2), (torch.zeros(3),)), {}, "torch.export cannot export Linear"),
            ((nn.Identity(), (torch.zeros(3),)), {}, "the model computes nothing"),
            ((nn.Linear(2, 2), (torch.zeros(2),)), {"shared": "both"}, 'shared is "both"; expected colocate or copy'),
            (
                (nn.Linear(2, 2), (torch.zeros(2),)),
                {"precision": "fp17"},
                "precision fp17 is not a number format of this import",
            ),
            ((nn.Linear(2, 2), (torch.zeros(2),)), {"optimizer_bytes_per_parameter": -1}, "expected a whole number"),
            ((nn.Linear(2, 2), (torch.zeros(2),)), {"devices": {"gpus": {}}}, "expected devices and links"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_wrong_arguments_are_usage_errors(self, arguments: Any, options: Any, message: str) -> None:
        with pytest.raises(po.UsageError, match=message):
            po.from_torch(*arguments, **options)


class TestFiles:
    def test_a_saved_program_is_the_same_problem_and_its_weights_are_not_read(self, tmp_path: Path) -> None:
        model = small_llama(2)
        program = torch.export.export(model, (IDS,), strict=False)
        path = tmp_path / "small.pt2"
        torch.export.save(program, path)
        imported = import_file(path, None, ImportOptions(network=NETWORK))
        direct = po.from_torch(program, devices=NETWORK)
        assert imported.document["tasks"] == direct.document["tasks"]
        assert imported.document["x-torch"] == direct.document["x-torch"]
        assert imported.document["name"] == "small"
        assert Counter(task["op"] for task in imported.document["tasks"].values())["linear"] == 15

    def test_tied_weights_of_a_saved_program_stay_tied(self, tmp_path: Path) -> None:
        model = Mlp(4, 4, 4)
        model.layers[1].weight = model.layers[0].weight
        path = tmp_path / "tied.pt2"
        torch.export.save(torch.export.export(model, (torch.zeros(1, 4),), strict=False), path)
        tasks = import_file(path, None, ImportOptions(network=NETWORK)).document["tasks"]
        assert resident(tasks) == 4 * (16 + 4 + 4)

    @pytest.mark.parametrize("tied", [False, True])
    def test_weights_on_the_meta_device_are_not_one(self, tied: bool, tmp_path: Path) -> None:
        with torch.device("meta"):
            model, x = Mlp(4, 4, 4), torch.zeros(1, 4)
        if tied:
            model.layers[1].weight = model.layers[0].weight
        program = torch.export.export(model, (x,), strict=False)
        torch.export.save(program, tmp_path / "meta.pt2")
        tasks = import_file(tmp_path / "meta.pt2", None, ImportOptions(network=NETWORK)).document["tasks"]
        assert resident(tasks) == 4 * (16 * (1 if tied else 2) + 4 + 4)
        assert ["colocate" in task for task in tasks.values() if task["op"] == "linear"] == [tied, tied]

    def test_options_of_the_command_line_apply(self, tmp_path: Path) -> None:
        path = tmp_path / "mlp.pt2"
        torch.export.save(TestSizes.dynamic(), path)
        with pytest.raises(po.UsageError, match=r"mlp\.pt2: the model has symbolic sizes"):
            import_file(path)
        imported = import_file(path, None, ImportOptions(batch=4, level="module", name="renamed"))
        assert list(imported.document["tasks"]) == ["layers.0", "model", "layers.1"]
        assert imported.document["name"] == "renamed"
