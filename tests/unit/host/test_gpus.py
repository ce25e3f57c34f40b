"""GPUs: found by NVML, narrowed down by the environment, leased to one attempt each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_nvml import build, fake_gpus

from pytest_mlebench.host.gpus import Gpu, visible

SMALL, LARGE = 16 * 10**9, 25 * 10**9
IDS = [f"GPU-{number}{number}{number}{number}-feed" for number in range(4)]

Ask = Callable[..., Any]

PROGRAM = """
import json, sys
from dataclasses import asdict, replace
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.host.gpus import describe_gpus, find_gpus, gpus_for
wanted = replace(STANDARD, gpus=int(sys.argv[1]))
try:
    ids = gpus_for(wanted)
    print(json.dumps({"found": [asdict(gpu) for gpu in find_gpus()] if ids else [],
                      "leasable": ids, "record": describe_gpus(ids)}))
except ConfigError as problem:
    print(json.dumps(str(problem)))
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library that says what a driver would say."""
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def ask(library: Path) -> Ask:
    """Ask, in a process of its own, for the GPUs of a host with some."""

    def ask(*memories: int | str, wanted: int = 1, **environment: str) -> Any:
        known = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
        known |= {"LD_LIBRARY_PATH": str(library), "FAKE_GPUS": fake_gpus(*memories)}
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(wanted)],
            env=known | environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(result.stdout)

    return ask


def test_gpus_are_found_with_name_memory_and_an_id_that_lasts(ask: Ask) -> None:
    answer = ask(LARGE, SMALL)
    assert answer["found"] == [
        {"id": IDS[0], "index": 0, "name": "Tensor 0", "memory_bytes": LARGE},
        {"id": IDS[1], "index": 1, "name": "Tensor 1", "memory_bytes": SMALL},
    ]
    assert answer["record"] == [{"id": IDS[0], "name": "Tensor 0", "memory_bytes": LARGE}]


def test_only_gpus_with_enough_memory_are_leased(ask: Ask) -> None:
    assert ask(SMALL, LARGE, LARGE)["leasable"] == IDS[1:3]


def test_too_small_gpus_are_refused_with_both_figures(ask: Ask) -> None:
    assert ask(SMALL, LARGE, wanted=2) == (
        "2 GPUs with 24GB of memory or more wanted, but this host has only "
        "Tensor 0 (16GB), Tensor 1 (25GB): use --mle-gpus=0 to run without, "
        "or lower gpus or gpu_memory in the agent's limits"
    )


def test_no_gpu_is_an_error_only_where_one_is_wanted(ask: Ask) -> None:
    assert ask(wanted=0)["leasable"] == []
    assert ask(wanted=1) == (
        "1 GPU with 24GB of memory or more wanted, but this host has none: "
        "use --mle-gpus=0 to run without"
    )
    assert "has none (CUDA_VISIBLE_DEVICES is set)" in ask(LARGE, CUDA_VISIBLE_DEVICES="")


def test_a_host_without_a_driver_says_so(ask: Ask) -> None:
    expected = "no GPU was found on this host ({}): use --mle-gpus=0 to run without"
    assert ask(LARGE, FAKE_NVML_ERROR="9") == expected.format("Driver Not Loaded")
    assert ask(LARGE, LD_LIBRARY_PATH="") == expected.format("NVML Shared Library Not Found")


def test_a_gpu_that_is_lost_says_so(ask: Ask) -> None:
    assert ask("lost") == (
        "the GPUs of this host do not answer (GPU is lost): use --mle-gpus=0 to run without"
    )


def test_without_the_package_the_way_to_get_it_is_named(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError\n")
    assert ask(LARGE, PYTHONPATH=str(tmp_path)) == (
        "looking for GPUs needs the package nvidia-ml-py: "
        "pip install 'pytest-mlebench[gpu]', or use --mle-gpus=0 to run without"
    )


def test_a_shared_gpu_is_leased_as_often_as_asked_if_its_memory_allows(ask: Ask) -> None:
    assert ask(2 * LARGE, LARGE, MLEBENCH_GPU_SHARE="2")["leasable"] == [IDS[0], IDS[0]]
    assert ask(LARGE, MLEBENCH_GPU_SHARE="2").startswith("1 GPU with 48GB of memory or more")
    assert ask(LARGE, MLEBENCH_GPU_SHARE="0") == (
        "MLEBENCH_GPU_SHARE must be a whole number, one or more, given: 0"
    )


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("2,0", [2, 0]),
        ("GPU-1111", [1]),
        ("1,7,0", [1]),
        ("0,0", [0]),
        ("GPU-", []),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(
    text: str | None, indices: list[int]
) -> None:
    gpus = [Gpu(IDS[number], number, "T", LARGE) for number in range(3)]
    assert [gpu.index for gpu in visible(gpus, text)] == indices
