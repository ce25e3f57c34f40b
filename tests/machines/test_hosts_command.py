"""``pytest-mlebench hosts``: look at hosts, install there, prepare datasets there."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from host_machines import HostMachines

from pytest_mlebench import __version__

SEE = "see https://pytest-mlebench.github.io/pytest-mlebench/machines/\n"
WHEEL = f"pytest_mlebench-{__version__}-py3-none-any.whl"


def call(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_mlebench", *words]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def write_wheel(path: Path) -> None:
    """Write a wheel by our name that holds nothing but what it is called."""
    info = f"pytest_mlebench-{__version__}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("sent_by_setup.py", "")
        metadata = f"Metadata-Version: 2.1\nName: pytest-mlebench\nVersion: {__version__}\n"
        wheel.writestr(f"{info}/METADATA", metadata)
        text = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{info}/WHEEL", text)
        files = ("sent_by_setup.py", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in files))


@pytest.mark.parametrize("command", [("hosts", "check"), ("doctor", "--hosts=hosts.toml")])
def test_check_shows_every_host_and_what_is_wrong(
    hosts: HostMachines, tmp_path: Path, command: tuple[str, ...]
) -> None:
    hosts.write_toml(
        tmp_path / "hosts.toml", h2={"python": "/usr/bin/false"}, h4={"ssh": "nobody@127.0.0.1"}
    )
    done = call(tmp_path, *command)
    assert done.returncode == 1
    assert "h1: ok\n  Python 3" in done.stdout
    assert "host name h1" in done.stdout
    assert "h2: not ready\n  cannot run /usr/bin/false: " in done.stdout
    assert "h4: not ready\n  cannot be reached: " in done.stdout
    assert done.stdout.endswith("2 of 4 hosts: ok\n")


def test_prepare_prepares_datasets_on_every_host(hosts: HostMachines, tmp_path: Path) -> None:
    data = {"data": "/tmp/data"}
    hosts.write_toml(tmp_path / "hosts.toml", h1=data, h2=data, h3=data)
    done = call(tmp_path, "hosts", "prepare", "demo-digits")
    assert done.returncode == 0, done.stdout
    for name in hosts.names:
        public = hosts.disk(name) / "tmp/data/demo-digits/prepared/public"
        assert (public / "sample_submission.csv").is_file()


def test_setup_installs_a_wheel_that_is_sent(hosts: HostMachines, tmp_path: Path) -> None:
    environment = hosts.disk("h1") / "tmp/mle"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    folder = next(environment.glob("lib/python*/site-packages"))
    (folder / "ours.pth").write_text(sysconfig.get_path("purelib"))  # what cannot be fetched there
    write_wheel(tmp_path / WHEEL)
    (tmp_path / "one.toml").write_text(
        f'ssh_config = "{hosts.folder}/ssh_config"\n[hosts.h1]\npython = "/tmp/mle/bin/python"\n'
    )
    done = call(tmp_path, "hosts", "setup", "--hosts=one.toml", f"--wheel={WHEEL}", "--offline")
    assert done.returncode == 0, done.stdout
    assert (folder / "sent_by_setup.py").is_file()


def test_doctor_refuses_a_file_of_hosts_that_is_not_there(tmp_path: Path) -> None:
    done = call(tmp_path, "doctor", "--hosts=none.toml")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"pytest-mlebench: error: none.toml: no such file\n{SEE}"


def test_what_is_missing_is_said_before_any_host_is_asked(tmp_path: Path) -> None:
    done = call(tmp_path, "hosts", "check")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"pytest-mlebench: error: hosts.toml: no such file\n{SEE}"
    (tmp_path / "hosts.toml").write_text("[hosts.h1]\n")
    done = call(tmp_path, "hosts", "prepare")
    assert "nothing to prepare: name competitions, or a split" in done.stderr
    done = call(tmp_path, "hosts", "setup", "--wheel=none.whl")
    assert "--wheel names a file that does not exist: none.whl" in done.stderr
