"""Beside the plugins that people have, a session gives the same report as without them.

They are installed in an environment of their own (``make neighbours``), because whatever is
installed beside pytest is active in every session; here each is loaded by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

PYTHON = os.environ.get("MLEBENCH_NEIGHBOURS")  # the interpreter of that environment
TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")

# copies the sample on one competition and leaves nothing on the other
AGENT = """
import os, shutil
if os.environ["COMPETITION_ID"] == "demo-digits":
    shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
                os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""

NEIGHBOURS = {  # name: its entry point, and the options that make it do something
    "anyio": ("anyio",),
    "asyncio": ("asyncio",),
    "benchmark": ("benchmark", "--benchmark-enable"),
    "cov": ("pytest_cov", "--cov=agent"),
    "flakefinder": ("flakefinder", "--flake-finder", "--flake-runs=2"),
    "html": ("html", "-p", "metadata", "--html=page.html"),
    "hypothesis": ("hypothesispytest", "--hypothesis-show-statistics"),
    "instafail": ("instafail", "--instafail"),
    "json-report": (
        *("pytest_jsonreport", "-p", "metadata"),
        *("--json-report", "--json-report-file=json.json"),
    ),
    "metadata": ("metadata", "--metadata", "key", "value"),
    "order": ("pytest_order",),
    "randomly": ("randomly",),
    "repeat": ("repeat", "--count=2"),
    "rerunfailures": ("rerunfailures", "--reruns=1"),
    "split": ("pytest-split", "--splits=1", "--group=1"),
    "sugar": ("sugar",),
    "timeout": ("timeout", "--timeout=300"),
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="make neighbours runs it: it needs their packages"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset store that the sessions share."""
    return tmp_path_factory.mktemp("store")


def report(folder: Path, store: Path, *options: str) -> dict[str, Any]:
    """Run a session with some plugins and return what its report says, but for times and places."""
    (folder / "agent.py").write_text(AGENT)
    command = [str(PYTHON), "-m", "pytest", "-p", "mlebench", "-p", "xdist"]
    command += ["--mle-agent=python agent.py", "--mle-seeds=2", "--mle-report=r.json", *TWO]
    done = subprocess.run(
        [*command, *options],
        cwd=folder,
        env=os.environ
        | {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "MLEBENCH_DATA_DIR": str(store),
            "MLEBENCH_LEASES_DIR": str(folder / "leases"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr  # one competition fails
    data = json.loads((folder / "r.json").read_text())
    results = [(r["competition"], r["seed"], r["outcome"], r["agent"]) for r in data["results"]]
    attempts = sorted(path.name for path in folder.glob("mle-runs/*/*/seed*/attempt*"))
    rates = [{k: v for k, v in row.items() if k != "costs"} for row in data["rates"]]  # hours
    return {"results": sorted(results), "rates": rates, "attempts": attempts}


@pytest.fixture(scope="module")
def alone(store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the report says without any other plugin."""
    return report(tmp_path_factory.mktemp("alone"), store)


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_neighbour_changes_nothing(
    name: str, workers: tuple[str, ...], alone: dict[str, Any], store: Path, tmp_path: Path
) -> None:
    entry, *options = NEIGHBOURS[name]
    assert report(tmp_path, store, "-p", entry, *options, *workers) == alone
    assert len(alone["results"]) == len(alone["attempts"]) == 4
