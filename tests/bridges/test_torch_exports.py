"""Plans of PyTorch models, run: parts of a graph, device maps of accelerate, stages of a pipeline."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run

import placeopt as po

pytest.importorskip("torch", reason="PyTorch models need torch: pip install 'placeopt[torch]'")

import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_models import ConvNet, Llama, Mlp, Twice, small_llama

from placeopt.bridges.exporters.exported import ExportRequest
from placeopt.bridges.exporters.registry import EXPORTERS

SUPPORT = Path(__file__).parents[1] / "support"
NETWORK = {
    "devices": {"gpu": {"count": 2, "speed": "1 GFLOP/s", "memory_bandwidth": "1 GB/s", "memory": "450 kB"}},
    "links": {"default": {"bandwidth": "1 GB/s"}},
}
IDS = torch.arange(32).reshape(4, 8)


def placed(model: nn.Module, *inputs: Tensor, devices: Any = None, network: Any = None, **options: Any) -> Any:
    """An imported model, its problem, and a plan: of heft, or with a device for each task."""
    imported = po.from_torch(model, inputs, devices=NETWORK if network is None else network, **options)
    problem = po.compile(imported.document)
    if devices is None:
        schedule = po.solve(problem, "heft", consolidate=0).schedule
        assert schedule is not None
    else:
        schedule = po.simulate(problem, np.array([devices[name] for name in problem.task_names]))
    return imported, problem, schedule


class TestParts:
    @pytest.mark.parametrize("level", ["op", "module", 2])
    def test_a_transformer_on_two_devices_is_equal(self, level: str | int) -> None:
        model = small_llama()
        imported, problem, schedule = placed(model, IDS, level=level)
        callback = po.split_callback(problem, schedule, imported)
        program = torch.export.export(model, (IDS,), strict=False)
        parts = callback.split(program.module())
        assert set(callback.devices) == {"gpu0", "gpu1"}
        assert torch.equal(parts(IDS), model(IDS))
        owned = sum(each.numel() for part in parts.children() for each in part.parameters())
        assert owned == sum(each.numel() for each in model.parameters())

    @pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # of PyTorch, in its own modules
    @given(st.data())
    @settings(max_examples=20, deadline=None, phases=[Phase.generate])  # shrinking takes minutes
    def test_random_placements_are_equal(self, data: st.DataObject) -> None:
        class Mixed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
                self.register_buffer("count", torch.zeros(1))

            def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
                self.count.add_(1)
                y = self.a(x)
                early = y.sin()
                y.relu_()
                first, second = self.b(y).chunk(2, 1)
                with torch.no_grad():
                    z = first.exp()
                values, places = (z + early[:, :3]).max(1)
                return values * second.sum(1) + self.count, places

        torch.manual_seed(1)
        model, x = Mixed(), torch.randn(5, 6)
        program = torch.export.export(model, (x,), strict=False)
        imported = po.from_torch(program, devices=NETWORK)
        problem = po.compile(imported.document)
        devices = [data.draw(st.integers(0, 1)) for _ in problem.task_names]
        devices = [devices[problem.group.tolist().index(group)] for group in problem.group.tolist()]
        callback = po.split_callback(problem, po.simulate(problem, np.array(devices)), imported)
        split = callback.split(copy.deepcopy(program.module()))(x)  # a module changes the buffers of its program
        expected = copy.deepcopy(program.module())(x)
        assert all(torch.equal(one, other) for one, other in zip(split, expected, strict=True))

    def test_parts_run_where_they_are_moved(self) -> None:
        """Tensors without data stand for those of a GPU: no operator takes them together with tensors of the CPU."""
        model = small_llama()
        imported, problem, schedule = placed(model, IDS)
        callback = po.split_callback(problem, schedule, imported)
        program = torch.export.export(model, (IDS,), strict=False)
        assert any("device" in node.kwargs for node in program.graph.nodes)
        with pytest.raises(po.UsageError, match="places: gpu1 missing; state a device of PyTorch"):
            callback.move(callback.split(program.module()), {"gpu0": "cpu"})
        for place in ("cpu", "meta"):
            parts = callback.split(program.module())
            callback.move(parts, {"gpu0": place, "gpu1": place})
            found = parts(IDS)
            assert found.device.type == place
            assert found.shape == model(IDS).shape
            assert place == "meta" or torch.equal(found, model(IDS))

    def test_the_callback_serves_split_module(self) -> None:
        from torch.fx.passes.split_module import split_module

        model = ConvNet(8).eval()
        x = torch.randn(2, 3, 16, 16)
        imported, problem, schedule = placed(model, x)
        module = torch.export.export(model, (x,), strict=False).module()
        parts = split_module(module, module, po.split_callback(problem, schedule, imported))
        assert torch.equal(parts(x)[0], model(x))

    def test_another_graph_is_a_usage_error(self) -> None:
        imported, problem, schedule = placed(small_llama(), IDS)
        other = torch.export.export(Mlp(2, 2), (torch.zeros(1, 2),), strict=False)
        with pytest.raises(po.UsageError, match="the graph has no node"):
            po.split_callback(problem, schedule, imported).split(other.module())

    def test_a_graph_with_more_operators_is_a_usage_error(self) -> None:
        imported, problem, schedule = placed(Mlp(4, 4, 4), torch.zeros(1, 4))
        other = torch.export.export(Mlp(4, 4, 4, 4), (torch.zeros(1, 4),), strict=False)
        with pytest.raises(po.UsageError, match="the graph has 5 operators, and the imported program 3; split the mod"):
            po.split_callback(problem, schedule, imported).split(other.module())

    def test_other_arguments_are_a_usage_error(self) -> None:
        imported, problem, schedule = placed(Mlp(4, 4), torch.zeros(1, 4))
        with pytest.raises(po.UsageError, match=r"expected a GraphModule, such as program\.module\(\), instead of int"):
            po.split_callback(problem, schedule, imported).split(3)  # type: ignore[arg-type]
        for export in (po.device_map, po.split_spec, po.split_callback):
            with pytest.raises(po.UsageError, match=r"imported is a NoneType; expected the result of po\.from_torch"):
                export(problem, schedule, None)  # type: ignore[arg-type]

    def test_a_training_step_is_a_usage_error(self) -> None:
        imported, problem, schedule = placed(Mlp(4, 4), torch.zeros(1, 4), training=True)
        with pytest.raises(po.UsageError, match="the plan is of a training step"):
            po.split_callback(problem, schedule, imported)


LAYERS = {"embedding": 0, "model": 0, "layers.0": 0, "layers.1": 1, "layers.2": 1, "norm": 1, "head": 1}


class TestDeviceMap:
    def test_the_map_names_the_outermost_modules(self) -> None:
        imported, problem, schedule = placed(small_llama(), IDS, level=2, devices=LAYERS)
        assert po.device_map(problem, schedule, imported) == {
            "embedding": 0, "layers.0": 0, "layers.1": 1, "layers.2": 1, "norm": 1, "head": 1,
        }  # fmt: skip
        together = LAYERS | {"layers.1": 0, "layers.2": 0}
        imported, problem, schedule = placed(small_llama(), IDS, level=2, devices=together)
        assert po.device_map(problem, schedule, imported, devices={"gpu": "xpu:0", "gpu1": "cpu"}) == {
            "embedding": "xpu:0", "layers": "xpu:0", "norm": "cpu", "head": "cpu",
        }  # fmt: skip
        imported, problem, schedule = placed(small_llama(), IDS, level="op", devices=dict.fromkeys(po_tasks(), 1))
        assert po.device_map(problem, schedule, imported) == {"": 1}

    def test_a_written_problem_exports_the_same_map(self, tmp_path: Path) -> None:
        imported, problem, schedule = placed(small_llama(), IDS, level=2, devices=LAYERS)
        expected = po.device_map(problem, schedule, imported)
        po.write_problem(problem, tmp_path / "p.yaml")
        po.write_plan(tmp_path / "plan.json", po.plan_document(problem, schedule))
        done = run("export", tmp_path / "p.yaml", tmp_path / "plan.json", "--to", "device-map")
        assert json.loads(done.out) == expected

    @given(st.data())
    @settings(max_examples=25, deadline=None)
    def test_every_weight_is_covered_once_on_its_device(self, data: st.DataObject) -> None:
        imported, problem = layers()
        devices = [data.draw(st.integers(0, 1)) for _ in problem.task_names]
        found = po.device_map(problem, po.simulate(problem, np.array(devices)), imported)
        by_task = dict(zip(problem.task_names, devices, strict=True))
        for weight, users in imported.document["x-torch"]["weights"].items():
            covering = [path for path in found if not path or weight.startswith(f"{path}.")]
            assert [found[path] for path in covering] == [by_task[users[0]]]

    def test_accelerate_runs_the_map(self) -> None:
        pytest.importorskip("accelerate", reason="pip install accelerate")
        from accelerate import dispatch_model
        from accelerate.utils import check_device_map

        imported, problem, schedule = placed(small_llama(), IDS, level=2, devices=LAYERS)
        found = po.device_map(problem, schedule, imported, devices={"gpu": "cpu"})
        model = small_llama()
        check_device_map(model, found)
        expected = model(IDS)
        assert torch.equal(dispatch_model(model, found, force_hooks=True)(IDS), expected)

    def test_a_module_that_reads_from_two_devices_is_a_usage_error(self) -> None:
        imported, problem, _ = placed(small_llama(1), IDS)
        devices = np.zeros(problem.n_tasks, dtype=np.int64)
        devices[problem.task_names.index("linear_1")] = 1  # the keys of the attention
        with pytest.raises(po.UsageError, match=r"of layers\.0\.attention reads tensors on gpu0 .* gpu1 .* --level 3"):
            po.device_map(problem, po.simulate(problem, devices), imported)

    def test_inputs_of_the_model_are_on_the_main_device(self) -> None:
        """x is on gpu0, so that accelerate can add it only to a tensor there; as an input, a module moves it."""

        class Residual(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

            def forward(self, x: Tensor) -> Tensor:
                return x + self.b(self.a(x))

        def found(a: int, b: int, **names: str) -> Any:
            devices = {"linear": a, "linear_1": b, "add": b}
            imported, problem, schedule = placed(Residual(), torch.zeros(1, 4), devices=devices)
            return po.device_map(problem, schedule, imported, devices=names)

        message = r"add of the model reads tensors on gpu0 \(from the inputs of the model\), gpu1 \(from linear_1\)"
        with pytest.raises(po.UsageError, match=message):
            found(0, 1)
        assert found(1, 0) == {"a": 1, "b": 0}
        # The main device of accelerate is the GPU with the smallest number.
        assert found(0, 1, gpu0="cuda:3", gpu1="cuda:2") == {"a": 3, "b": 2}
        with pytest.raises(po.UsageError, match=r"reads tensors on gpu0 .*gpu1"):
            found(1, 0, gpu0="cuda:3", gpu1="cuda:2")

    def test_a_weight_of_the_model_is_on_the_main_device(self) -> None:
        class Scaled(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4))
                self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

            def forward(self, x: Tensor) -> Tensor:
                return self.b(self.a(x * self.scale))

        for scale, message in ((0, ""), (1, "the model has the weight scale, and modules on gpu0, gpu1")):
            imported, problem, schedule = placed(
                Scaled(), torch.zeros(1, 4), devices={"mul": scale, "linear": 0, "linear_1": 1}
            )
            if message:
                with pytest.raises(po.UsageError, match=message):
                    po.device_map(problem, schedule, imported)
            else:
                assert po.device_map(problem, schedule, imported) == {"scale": 0, "a": 0, "b": 1}

    def test_a_weight_on_two_devices_is_a_usage_error(self) -> None:
        imported, problem, schedule = placed(
            Twice(), torch.zeros(1, 4), shared="copy", devices={"linear": 0, "linear_1": 1}
        )
        with pytest.raises(po.UsageError, match=r"layer\.weight is used on gpu0, gpu1 by the tasks linear, linear_1"):
            po.device_map(problem, schedule, imported)

    def test_notes_state_what_accelerate_does_otherwise(self) -> None:
        network = {"devices": {name: {"speed": "1 TFLOP/s", "memory_bandwidth": "1 GB/s"} for name in ("gpu", "cpu")}}
        imported, problem, schedule = placed(
            small_llama(), IDS, level=2, network=network, devices=LAYERS | {"model": 1, "norm": 0, "head": 0}
        )
        found = EXPORTERS["device-map"].text(ExportRequest(problem, schedule, document=imported.document))
        assert json.loads(found.text)["layers.1"] == "cpu"
        assert [note.partition(":")[0] for note in found.notes] == [
            "1 task without weights run on another device than planned (model)",
            "accelerate stores the weights of layers.1, layers.2 on the CPU, but runs these modules on cuda",
        ]


def po_tasks() -> list[str]:
    return list(po.from_torch(small_llama(), (IDS,), devices=NETWORK).document["tasks"])


def layers() -> tuple[Any, po.Problem]:
    """A small model whose layers are tasks; made once."""
    if not _LAYERS:
        imported = po.from_torch(small_llama(), (IDS,), devices=NETWORK, level=2)
        _LAYERS.append((imported, po.compile(imported.document)))
    return _LAYERS[0]


_LAYERS: list[tuple[Any, po.Problem]] = []


class TestStages:
    def test_stages_begin_with_modules(self) -> None:
        for level in (2, "module", "op"):
            imported = po.from_torch(small_llama(), (IDS,), devices=NETWORK, level=level)
            problem = po.compile(imported.document)
            modules = [entry["module"] for entry in imported.document["x-torch"]["tasks"].values()]
            devices = [int(path.startswith(("layers.1", "layers.2", "norm", "head"))) for path in modules]
            assert po.split_spec(problem, po.simulate(problem, np.array(devices)), imported) == {
                "split_spec": {"layers.1": "BEGINNING"},
                "stages": [
                    {"device": "gpu0", "torch_device": "cuda:0"},
                    {"device": "gpu1", "torch_device": "cuda:1"},
                ],
            }

    def test_devices_that_alternate_are_a_usage_error(self) -> None:
        imported, problem, schedule = placed(small_llama(), IDS, level=2, devices=LAYERS | {"head": 0})
        with pytest.raises(
            po.UsageError, match=r"gpu0 runs head after gpu1 runs layers\.1: .* for example head to gpu1"
        ):
            po.split_spec(problem, schedule, imported)

    def test_a_stage_that_begins_inside_a_module_is_a_usage_error(self) -> None:
        imported, problem, _ = placed(small_llama(1), IDS)
        spans = imported.document["x-torch"]["tasks"]
        first = spans["linear_2"]["span"][0]  # the values of the attention, after queries and keys
        devices = np.array([int(spans[name]["span"][0] >= first) for name in problem.task_names])
        expected = po.split_spec(problem, po.simulate(problem, devices), imported)["split_spec"]
        assert expected == {"layers.0.attention.v": "BEGINNING"}

        class Scaled(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.one, self.two = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))

            def forward(self, x: Tensor) -> Tensor:
                return (x * self.one).exp() * self.two

        imported, problem, schedule = placed(Scaled(), torch.zeros(1, 4), devices={"mul": 0, "exp": 0, "mul_1": 1})
        with pytest.raises(po.UsageError, match="begins with mul_1, inside the model; a stage begins with a module"):
            po.split_spec(problem, schedule, imported)

    @pytest.mark.skipif(not torch.distributed.is_available(), reason="this build of torch has no torch.distributed")
    def test_two_processes_run_the_stages(self, tmp_path: Path) -> None:
        torch.manual_seed(0)
        model, x = Mlp(8, 16, 16, 16, 4).eval(), torch.randn(8, 8)
        imported = po.from_torch(model, (x,), devices=NETWORK)
        problem = po.compile(imported.document)
        half = problem.task_names.index("linear_2")
        schedule = po.simulate(problem, np.array([int(k >= half) for k in range(problem.n_tasks)]))
        exported = po.split_spec(problem, schedule, imported)
        assert exported["split_spec"] == {"layers.2": "BEGINNING"}
        (tmp_path / "stages.json").write_text(json.dumps(exported))
        command = [sys.executable, str(SUPPORT / "pipeline_rank.py")]
        ranks = [subprocess.Popen([*command, str(rank), str(tmp_path)], stderr=subprocess.PIPE) for rank in range(2)]
        try:
            for rank in ranks:
                _, err = rank.communicate(timeout=600)
                assert rank.returncode == 0, err.decode()
        finally:
            for rank in ranks:
                rank.kill()
        output, expected = torch.load(tmp_path / "output.pt")
        assert torch.allclose(output, expected, atol=1e-6)
        assert torch.allclose(output, model(x), atol=1e-6)


class TestSection:
    def test_a_problem_without_the_section_is_a_usage_error(self) -> None:
        imported, problem, schedule = placed(Mlp(4, 4), torch.zeros(1, 4))
        del imported.document["x-torch"]
        for export in (po.device_map, po.split_spec, po.split_callback):
            with pytest.raises(po.UsageError, match="the problem has no section x-torch"):
                export(problem, schedule, imported)

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (("tasks",), [], "expected mappings tasks and weights"),
            (("weights",), None, "expected mappings tasks and weights"),
            (("tasks", "other"), {"module": ""}, "differ in 1 task: other"),
            (("tasks", "linear"), 3, "task linear has no module"),
            (("tasks", "linear", "nodes"), "linear", "expected nodes and a span"),
            (("tasks", "linear", "span"), [1], "expected nodes and a span"),
            (("weights", "layers.0.bias"), ["other"], r"weight layers\.0\.bias: expected a list of tasks"),
        ],
        ids=str,
    )
    def test_a_damaged_section_is_a_usage_error(self, path: tuple[str, ...], value: Any, message: str) -> None:
        imported, problem, schedule = placed(Mlp(4, 4), torch.zeros(1, 4))
        place = imported.document["x-torch"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with pytest.raises(po.UsageError, match=message):
            po.device_map(problem, schedule, imported)

    def test_devices_that_the_problem_lacks_are_a_usage_error(self) -> None:
        imported, problem, schedule = placed(Mlp(4, 4), torch.zeros(1, 4))
        with pytest.raises(po.UsageError, match="devices: npu: the problem has no such device or type"):
            po.device_map(problem, schedule, imported, devices={"npu": "cuda:0"})

    @pytest.mark.parametrize("name", ["CUDAExecutionProvider", "gpu", "gpu:0", "cuda:", "GPU.0", ""])
    def test_names_that_are_not_devices_of_pytorch(self, name: str) -> None:
        imported, problem, schedule = placed(Mlp(4, 4), torch.zeros(1, 4))
        with pytest.raises(po.UsageError, match=rf"devices: gpu={name}: expected a device of PyTorch, such as cuda:0"):
            po.device_map(problem, schedule, imported, devices={"gpu": name})

    @pytest.mark.parametrize(("name", "expected"), [("3", 3), ("cuda:3", 3), ("mps", "mps"), ("xpu:1", "xpu:1")])
    def test_names_of_devices(self, name: str, expected: str | int) -> None:
        imported, problem, schedule = placed(Mlp(4, 4), torch.zeros(1, 4))
        assert po.device_map(problem, schedule, imported, devices={"gpu": name}) == {"": expected}


def test_the_command_line_exports_a_file_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(small_llama(), (IDS,), strict=False), "model.pt2")
    done = run("import", "model.pt2", "--level", "2", "--devices", "a100-40gb:2", "--out", "model.yaml")
    assert done.code == 0, done.err
    assert run("solve", "model.yaml", "--solver", "heft", "--out", "plan.json").code == 0
    done = run("export", "model.yaml", "plan.json", "--to", "device-map", "--provider", "a100-40gb0=cuda:1")
    assert done.code == 0, done.err
    assert json.loads(done.out) == {"": 1}
    done = run("export", "model.yaml", "plan.json", "--to", "device-map", "--provider", "a100-40gb0")
    assert (done.code, "expected DEVICE=NAME, such as gpu0=cuda:0" in done.err) == (2, True)
    done = run("export", "model.yaml", "plan.json", "--to", "split-spec", "--out", "stages.json")
    assert done.code == 0, done.err
    assert json.loads(Path("stages.json").read_text())["split_spec"] == {}


def test_a_model_of_eight_billion_parameters_on_four_gpus() -> None:
    with torch.device("meta"):
        model = Llama().to(torch.bfloat16).eval()
        ids = torch.zeros(1, 512, dtype=torch.long)
    network = {
        "devices": {"gpu": {"count": 4, "speed": "312 TFLOP/s", "memory": "40 GB", "memory_bandwidth": "1555 GB/s"}},
        "links": {"default": {"bandwidth": "300 GB/s", "latency": "2 us"}},
    }
    imported = po.from_torch(model, (ids,), devices=network, level=2)
    problem = po.compile(imported.document)
    assert int(problem.resident.sum()) == 2 * sum(each.numel() for each in model.parameters()) > 16 * 10**9
    result = po.solve(problem, "heft")
    assert result.consolidation.after == po.Pieces(1, 1, 0)
    assert result.gap <= result.consolidation.share  # one GPU is hardly slower than two
    assert po.device_map(problem, result.schedule, imported) == {"": 0}
