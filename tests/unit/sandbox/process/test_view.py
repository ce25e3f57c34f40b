"""An agent sees what it needs, and nobody has to know what else there is on a host."""

from __future__ import annotations

import os
import sys
import venv
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_job import CANARY, Finished, Place

from pytest_mlebench.agent import Agent
from pytest_mlebench.agents.command_files import modules_in
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.hidden import hidden_folders
from pytest_mlebench.sandbox.process.devices import gpu_devices
from pytest_mlebench.sandbox.process.python_environment import (
    environment,
    environment_in,
    environment_of,
)

HONEST = r"""
import asyncio, ctypes, getpass, hashlib, mmap, multiprocessing, os, pathlib, pwd, socket, sqlite3
import ssl, subprocess, sys, tempfile, threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

def square(x):
    return x * x

if __name__ == "__main__":
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier

    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(square, [2, 3])) == [4, 9]
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        assert pool.map(square, [2, 3]) == [4, 9]
    block = shared_memory.SharedMemory(create=True, size=1000)
    block.close(); block.unlink()
    X = np.random.default_rng(0).normal(size=(200, 5))
    RandomForestClassifier(10, n_jobs=2).fit(X, X[:, 0] > 0)
    assert ssl.create_default_context().get_ca_certs() or os.path.exists("/etc/ssl/certs")
    assert sqlite3.connect("x.db").execute("select 1").fetchone() == (1,)
    assert getpass.getuser() == pwd.getpwuid(os.getuid()).pw_name == "agent"
    assert socket.gethostbyname(socket.gethostname()) == "127.0.0.1"
    for family in (socket.AF_INET, socket.AF_UNIX):
        socket.socket(family).close()
    one, two = socket.socketpair()
    async def work():
        process = await asyncio.create_subprocess_exec("sh", "-c", "exit 3")
        return await process.wait()
    assert asyncio.run(work()) == 3
    with tempfile.NamedTemporaryFile(dir="/tmp") as file, tempfile.TemporaryFile(dir="/var/tmp"):
        file.write(b"x")
    for program in (["git", "--version"], [sys.executable, "-m", "pip", "--version"], ["ps"]):
        try:
            subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
        except FileNotFoundError:
            pass
    leader, follower = os.openpty()
    os.write(follower, b"x")
    for path in ("/etc/passwd", "/proc/meminfo", "/sys/devices/system/cpu/online", "/dev/urandom"):
        assert open(path, "rb").read(4)
    for path in ("/dev/null", "/dev/stdout", "/dev/stderr"):
        print("through", file=open(path, "w"))
    os.mkfifo("pipe"); os.rename("pipe", "../code/pipe"); os.link("x.db", "../code/y.db")
    os.chmod("x.db", 0o600); os.utime("x.db"); os.setpriority(os.PRIO_PROCESS, 0, 5)
    print("fine")
"""


def test_honest_programs_find_what_they_need(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "honest.py"
    script.write_text(HONEST)
    done = place.run(Agent("a", command=(sys.executable, str(script))))
    assert done.log == "through\nthrough\nfine\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with an agent's script in it, and much that is not for the agent."""
    folder = tmp_path / "project"
    (folder / "solver").mkdir(parents=True)
    (folder / "solver" / "__init__.py").write_text("print('the package')")
    (folder / "beside.py").write_text("print('the module')")
    (folder / "agent.py").write_text("import beside, solver, sys; print(sys.argv[1:])")
    (folder / ".env").write_text(CANARY)
    (folder / "notes").mkdir()
    (folder / "notes" / "secret.txt").write_text(CANARY)
    return folder


def look(place: Place, *paths: Path, words: tuple[str, ...] = ()) -> Finished:
    """Run an agent that lists some paths, and whose command names *words* as well."""
    program = "for path in $LOOK; do ls -d $path/* $path/.env 2>/dev/null || cat $path; done"
    text = " ".join(map(str, paths))
    command = ("sh", "-c", program, *words)
    return place.run(Agent("a", command=command, env={"LOOK": text}))


def test_a_script_finds_what_it_imports_from_its_folder(place: Place, project: Path) -> None:
    place.runs = project / "runs"
    agent = Agent("a", command=(sys.executable, str(project / "agent.py"), "--fast"))
    assert place.run(agent).log == "the module\nthe package\n['--fast']\n"


def test_of_a_scripts_folder_nothing_else_is_seen(place: Place, project: Path) -> None:
    words = (str(project / "agent.py"),)
    done = look(place, project, project / "notes" / "secret.txt", words=words)
    seen = [Path(line).name for line in done.log.splitlines() if line.startswith("/")]
    assert seen == ["agent.py", "beside.py", "solver"]
    assert CANARY not in done.log


def test_files_and_folders_that_the_command_names_are_seen(place: Place, project: Path) -> None:
    words = (f"--notes={project / 'notes'}", str(project / ".env"))
    done = look(place, project / "notes" / "secret.txt", project / ".env", words=words)
    assert done.log == CANARY * 2


def test_what_is_hidden_is_not_seen_though_the_command_names_it(place: Place) -> None:
    done = look(place, place.answers, words=(str(place.answers), str(place.store)))
    assert CANARY not in done.log


def test_what_is_hidden_in_a_folder_that_is_seen_is_covered(place: Place, project: Path) -> None:
    place.folder.chmod(0o755)
    words = (str(place.folder),)  # the store and the runs are in it
    done = look(place, place.answers, project / ".env", place.store, place.runs, words=words)
    assert done.log.count(CANARY) == 1, "the file of the project"
    assert str(place.answers) not in done.log.splitlines()


def test_a_folder_that_the_agents_user_cannot_enter_does_not_bar_the_way(place: Place) -> None:
    place.folder.chmod(0o700)
    done = look(place, place.answers, words=(str(place.folder),))
    assert "No such file" in done.log, "it ran, and found nothing"
    assert CANARY not in done.log


def test_what_is_hidden_is_covered_under_every_name_of_its_folder(
    place: Place, tmp_path: Path
) -> None:
    place.folder.chmod(0o755)
    alias = tmp_path.parent / f"{tmp_path.name}-alias"
    alias.symlink_to(place.folder)
    answers = alias / place.answers.relative_to(place.folder)
    done = look(place, place.answers, answers, alias / "store", words=(str(alias),))
    alias.unlink()
    assert CANARY not in done.log


@pytest.mark.parametrize("part", ["tiny", "tiny/prepared", "tiny/prepared/private"])
def test_an_agent_in_the_folder_that_a_store_links_to_brings_no_answers(
    place: Place, project: Path, part: str
) -> None:
    (place.store / part).rename(project / "disk")
    (place.store / part).symlink_to(project / "disk")
    command = ("sh", "-c", "grep -r canary . || echo nothing")
    (project / ".env").unlink()
    (project / "notes" / "secret.txt").unlink()
    public = Path(os.path.realpath(place.public))
    job = replace(place.job(Agent("a", command=command, folder=project)), data=public)
    place.sandbox().run(job)
    assert job.log.read_text() == "nothing\n"
    with pytest.raises(ConfigError, match="must not mount"):
        place.run(Agent("a", command=("true",), mounts=(f"{project}:/all:ro",)))


def test_a_home_is_not_seen_because_a_command_names_it(
    place: Place, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project))
    for folder in (project, project.parent, Path("/"), Path("/etc")):
        done = look(place, project / ".env", Path("/etc/shadow"), words=(str(folder),))
        assert CANARY not in done.log
        assert "root:" not in done.log


def test_a_folder_that_the_agents_file_mounts_is_seen(place: Place, project: Path) -> None:
    project.chmod(0o777)
    mounts = (f"{project}:/models:ro", f"{project}:/scratch")
    program = "cat /models/.env; echo x > /models/new; echo x > /scratch/new; ls /scratch"
    agent = Agent("a", command=("sh", "-c", program), mounts=mounts)
    done = place.run(agent)
    assert done.log.startswith(CANARY)
    assert "Read-only file system" in done.log or "Permission denied" in done.log
    assert (project / "new").read_text() == "x\n"


def test_a_mount_that_would_show_the_answers_is_refused(place: Place) -> None:
    with pytest.raises(ConfigError, match=r"must not mount .*: the answers lie in"):
        place.run(Agent("a", command=("true",), mounts=(f"{place.folder}:/all",)))


def test_a_virtual_environment_in_the_agents_folder_works(place: Place, project: Path) -> None:
    venv.create(project / ".venv", with_pip=False, symlinks=True)
    program = "import sys; print(sys.prefix)"
    agent = Agent("a", command=(".venv/bin/python", "-c", program), folder=project)
    done = place.run(agent)
    assert done.log == f"{done.job.folder}/home/agent/.venv\n", "a link to the original"


def test_a_program_of_another_environment_works(place: Place, project: Path) -> None:
    venv.create(project / "env", with_pip=False, symlinks=True)
    python = str(project / "env" / "bin" / "python")
    done = place.run(Agent("a", command=(python, "-c", "import sys; print(sys.prefix)")))
    assert done.log == f"{project / 'env'}\n"


def test_a_store_may_be_a_link_in_every_part(tmp_path: Path) -> None:
    disk, store = tmp_path / "disk", tmp_path / "store"
    for name in ("whole", "prepared-of-two", "private-of-three"):
        (disk / name).mkdir(parents=True)
    (store / "two").mkdir(parents=True)
    (store / "three" / "prepared").mkdir(parents=True)
    (store / "one").symlink_to(disk / "whole")
    (store / "two" / "prepared").symlink_to(disk / "prepared-of-two")
    (store / "three" / "prepared" / "private").symlink_to(disk / "private-of-three")
    assert hidden_folders([store]) == {store, *disk.iterdir()}


class TestPythonEnvironment:
    """A Python consists of more than its own folder."""

    @pytest.fixture
    def prefix(self, tmp_path: Path) -> Path:
        prefix = tmp_path / "env"
        packages = prefix / "lib" / "python3.11" / "site-packages"
        packages.mkdir(parents=True)
        (prefix / "pyvenv.cfg").touch()
        (prefix / "bin").mkdir()
        (prefix / "bin" / "python").symlink_to(sys.executable)
        return prefix

    def test_of_packages_that_a_path_file_leads_to(self, prefix: Path, project: Path) -> None:
        packages = prefix / "lib" / "python3.11" / "site-packages"
        (packages / "project.pth").write_text(f"import os\n{project}\n/no/such/folder\n")
        found = [path for path in environment(prefix) if path.is_relative_to(project)]
        assert found == [project / "agent.py", project / "beside.py", project / "solver"]

    def test_of_packages_that_a_finder_leads_to(self, prefix: Path, project: Path) -> None:
        finder = "__editable___project_1_0_finder.py"
        mapping = {"solver": str(project / "solver"), "beside": str(project / "beside")}
        text = f"MAPPING: dict[str, str] = {mapping!r}\nNAMESPACES = {{}}\n"
        (prefix / "lib" / "python3.11" / "site-packages" / finder).write_text(text)
        found = [path for path in environment(prefix) if path.is_relative_to(project)]
        assert found == [project / "solver", project / "beside.py"]

    def test_that_an_agent_brings_shows_nothing_outside_of_its_folder(
        self, prefix: Path, project: Path
    ) -> None:
        secret = project / "notes" / "deep"
        secret.mkdir()
        (secret / "key").touch()
        (prefix / "bin" / "python").unlink()
        (prefix / "bin" / "python").symlink_to(secret / "key")
        packages = prefix / "lib" / "python3.11" / "site-packages"
        (packages / "trick.pth").write_text(f"{project}\n")
        assert list(environment_in(prefix, prefix.parent)) == [prefix, *modules_in(project)]
        assert list(environment_in(prefix, prefix)) == [prefix]

    def test_of_a_program_that_is_installed_in_one(self, prefix: Path) -> None:
        (prefix / "bin" / "aider").touch()
        found = list(environment_of(prefix / "bin" / "aider"))
        assert found[0] == prefix
        assert Path(os.path.realpath(sys.executable)).parent.parent in found

    def test_but_not_of_whatever_folder_has_a_program(self, project: Path) -> None:
        (project / "bin").mkdir()
        (project / "bin" / "tool").touch()
        assert list(environment_of(project / "bin" / "tool")) == []


class TestGpus:
    """Of the GPUs' devices there are those that an attempt has leased."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        devices = tmp_path / "dev"
        devices.mkdir()
        for name in ("nvidia0", "nvidia1", "nvidia7", "nvidiactl", "nvidia-uvm"):
            (devices / name).symlink_to("/dev/null")
        for number, uuid in ((0, "GPU-a"), (1, "GPU-b"), (7, "GPU-c")):
            folder = tmp_path / "proc" / "driver" / "nvidia" / "gpus" / f"0000:0{number}:00.0"
            folder.mkdir(parents=True)
            text = f"Model: \t\t X\nGPU UUID: \t {uuid}\nDevice Minor: \t {number}\n"
            (folder / "information").write_text(text)
        return tmp_path

    def test_by_their_uuids(self, root: Path) -> None:
        names = [Path(path).name for path in gpu_devices(["GPU-c"], root=root)]
        assert names == ["nvidia7", "nvidiactl", "nvidia-uvm"]

    def test_all_of_them_where_a_part_of_one_is_leased(self, root: Path) -> None:
        names = [Path(path).name for path in gpu_devices(["MIG-x"], root=root)]
        assert names[:3] == ["nvidia0", "nvidia1", "nvidia7"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives an agent another user")
def test_data_that_the_agents_user_may_not_read_are_refused(place: Place) -> None:
    place.public.chmod(0o700)
    job = replace(place.job(shell="true"))
    with pytest.raises(Exception, match=r"the agent's user may not read .*: chmod -R a\+rX makes"):
        place.sandbox().run(job)
