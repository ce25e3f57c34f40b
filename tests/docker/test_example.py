"""The example of an agent in a container works on a real engine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from docker_images import PYTHON

EXAMPLE = Path(__file__).parents[2] / "examples" / "container-agent"


def test_every_command_of_its_readme_works(tmp_path: Path, engine: object) -> None:
    del engine  # it has the image that stands in for the registry's
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    dockerfile = folder / "agents/counter/Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("python:3.12-slim", PYTHON))
    lines = re.findall(r"^    (\S.*)$", (folder / "README.md").read_text(), re.MULTILINE)
    assert lines
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "pytest"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, "--mle-require=bronze"],
            cwd=folder,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
