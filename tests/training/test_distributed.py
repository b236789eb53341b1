"""Several processes agree: on sums, on who writes, on what a rank without work does; and none waits for one that is gone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ranks import together
from torch import Tensor, nn

from eyeline.errors import ConfigError, RunError
from eyeline.runs import load_weights, own_tensors, part, save_weights, whole
from eyeline.training.distributed import ProcessLost, World, joined, own_device
from eyeline.training.weights import Replicas, Shards, Weights, gathered

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="forks")]
CPU = torch.device("cpu")


def agreed() -> dict[str, Any]:
    with joined(CPU) as world:
        rank = world.rank
        numbers = [torch.full((2, 3), float(rank)), torch.full((5,), 10.0 * rank), torch.full((1,), rank, dtype=torch.float64)]
        world.add_up(numbers)
        copied = torch.full((3,), float(rank) + 7)
        world.copy_from_first([copied])
        return {
            "first": world.first,
            "own": world.own(range(5)),
            "sum": world.sum(rank + 1, 0.5),
            "any": (world.any(rank == 1), world.any(False)),
            "of_first": world.of_first(rank + 3.5),
            "texts": world.texts([f"é {rank}"] * rank),
            "numbers": [tensor.tolist() for tensor in numbers],
            "copied": copied.tolist(),
        }


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_agree(ranks: int) -> None:
    found = together(ranks, agreed)
    total = sum(range(ranks))
    for rank, values in enumerate(found):
        assert values["first"] is (rank == 0)
        assert values["sum"] == [total + ranks, ranks / 2]
        assert values["any"] == (True, False)
        assert values["of_first"] == 3.5
        assert values["texts"] == [[f"é {other}"] * other for other in range(ranks)]
        assert values["numbers"] == [[[total] * 3] * 2, [10 * total] * 5, [total]]
        assert values["copied"] == [7] * 3
    assert sorted(item for values in found for item in values["own"]) == list(range(5))


def test_alone_nothing_is_done() -> None:
    world, tensor = World(), torch.ones(2)
    assert world.first
    assert world.own("abc") == list("abc")
    assert world.sum(1.5, 2) == [1.5, 2]
    assert (world.any(True), world.any(False), world.of_first(4.0)) == (True, False, 4.0)
    assert world.texts(["a"]) == [["a"]]
    world.add_up([tensor])
    world.wait()
    assert tensor.tolist() == [1, 1]
    with joined(CPU) as alone:
        assert (alone.rank, alone.size) == (0, 1)


def test_more_processes_than_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert own_device("cpu") == "cpu"
    with pytest.raises(ConfigError, match=r"2 processes here, and 1 CUDA devices \(--device cuda\); --nproc-per-node 1"):
        own_device("cuda")
    with pytest.raises(ConfigError, match="train on cpu or cuda"), joined(torch.device("mps")):
        pass


# ---- gradients of a window, whatever each rank has of it ----------------------------------------------------------------


class Tied(nn.Module):
    """A table that is also the output layer, a map, a weight that some batches do not use, and one that none does."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 5)
        self.map, self.rare, self.idle = nn.Linear(5, 5), nn.Linear(5, 1), nn.Linear(5, 3)
        self.out = nn.Linear(5, 7)
        self.out.weight = self.table.weight
        self.register_buffer("steps", torch.arange(3))

    def forward(self, ids: Tensor) -> Tensor:
        hidden = torch.tanh(self.map(self.table(ids)))
        seldom = self.rare(hidden).sum() if int(ids[0]) == 3 else 0
        return self.out(hidden).square().sum() + seldom  # type: ignore[no-any-return]


BATCHES = [[1, 2, 4], [3, 5], [6], [2, 2, 2, 1], [3, 1]]


def made(world: World, shard: bool) -> tuple[Tied, Weights, torch.optim.Optimizer]:
    torch.manual_seed(3 + 5 * world.rank)  # ranks that would begin differently
    model = Tied().double()
    weights: Weights = Shards(model, world, CPU) if shard else Replicas(model, world)
    return model, weights, torch.optim.Adam(model.parameters(), lr=0.05)


def arrays(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name: tensor.detach().clone().numpy() for name, tensor in tensors.items()}


def updates(shard: bool, shares: list[list[list[int]]] | None = None) -> dict[str, Any]:
    """Three updates; of each window a rank takes its own, or `shares[rank]`. A retry throws half a window away first."""
    with joined(CPU) as world:
        model, weights, optimizer = made(world, shard)
        norms = []
        for limit in (0.0, 0.5, 0.0):
            weights.gather()
            weights.forget()
            for batch in ([1, 1], [3, 3]):
                model(torch.tensor(batch)).backward()
            weights.forget()
            for batch in world.own(BATCHES) if shares is None else shares[world.rank]:
                model(torch.tensor(batch)).backward()
            weights.exchange()
            norms.append(weights.clip(limit))
            optimizer.step()
        with gathered(weights):
            named = arrays(dict(model.named_parameters()))
        idle = all(optimizer.state.get(p) in (None, {}) for p in (model.idle.weight, model.idle.bias))
        return {"norms": norms, "weights": named, "tensors": arrays(own_tensors(model)), "idle": idle}


SHARES = {
    "alike": None,
    "one has less": [BATCHES[:4], BATCHES[4:]],
    "one has none": [[], BATCHES],
    "one has the rare": [[BATCHES[1], BATCHES[4]], [BATCHES[0], BATCHES[2], BATCHES[3]]],
}


@pytest.mark.parametrize("shard", [False, True], ids=["whole", "sharded"])
@pytest.mark.parametrize("shares", SHARES)
def test_a_window_over_ranks_is_the_window_of_one(shares: str, shard: bool) -> None:
    (alone,) = together(1, updates, False)
    for found in together(2, updates, shard, SHARES[shares]):
        assert found["norms"] == pytest.approx(alone["norms"], rel=1e-12)
        assert found["idle"]
        for values in (found["weights"], found["tensors"]):
            assert values.keys() - {"steps"} == alone["weights"].keys()
            for name, value in alone["weights"].items():
                assert np.allclose(values[name], value, rtol=0, atol=1e-12), name


def stored(shard: bool, path: str, write: bool) -> Any:
    with joined(CPU) as world:
        model, _, _ = made(world, shard)
        if write:
            save_weights(model, Path(path), write=world.first)
            world.wait()
            return arrays(own_tensors(model))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        load_weights(model, Path(path))
        return arrays(own_tensors(model))


@pytest.mark.parametrize("into", [False, True], ids=["whole", "sharded"])
def test_files_do_not_show_where_weights_were(tmp_path: Any, into: bool) -> None:
    path = str(tmp_path / "weights.safetensors")
    for written in together(3, stored, not into, path, True):
        assert "out.weight" not in written, "shared ones once"
    for found in together(2, stored, into, path, False):
        assert found.keys() == written.keys()
        assert all(np.array_equal(found[name], value) for name, value in written.items())


def part_and_whole() -> bool:
    with joined(CPU) as world:
        model, _, _ = made(world, True)
        tensor = torch.arange(35.0).view(7, 5).double()
        mine: Any = part(tensor, model.table.weight)
        return mine.to_local().shape[0] == [4, 3][world.rank] and torch.equal(whole(mine), tensor)


def test_parts_make_the_whole() -> None:
    assert together(2, part_and_whole) == [True, True]


class Other(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Linear(2, 2)


def refused(path: str) -> list[str]:
    said = []
    with joined(CPU) as world:
        for module in (Other(), Tied()):
            Shards(module, world, CPU)
            if isinstance(module, Tied):
                Path(path).write_bytes(b"cut")
            try:
                load_weights(module, Path(path))
            except RunError as error:
                said.append(str(error))
            world.wait()
    return said


def test_parts_of_another_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_weights(Tied(), path)
    for other, damaged in together(2, refused, str(path)):
        assert "the weights are not those of this model: names differ: idle.bias" in other
        assert "damaged, or not in the safetensors format" in damaged


# ---- one that is gone ---------------------------------------------------------------------------------------------------


def lost(rank: int) -> str:
    try:
        with joined(CPU) as world:
            if world.rank == rank:
                os._exit(3)
            world.sum(1.0)
            world.sum(1.0)
    except ProcessLost as error:
        return str(error)
    return "nothing noticed"


def test_nobody_waits_for_one_that_has_died() -> None:
    """The pipe of the dead ends, and the other's sums do too."""
    for rank in (0, 1):
        found = together(2, _lost_or_dead, rank)
        other = found[1 - rank]
        assert "another process of this run has died" in other
        assert "--resume" in other


def _lost_or_dead(rank: int) -> str:
    if os.environ["RANK"] == str(rank) and os.fork() == 0:  # the child joins and dies; the parent answers for it
        lost(rank)
    if os.environ["RANK"] == str(rank):
        os.wait()
        return "dead"
    return lost(rank)
