"""An agent finds the contract's tree in its image, and nothing of the host."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from docker_images import files_of_image
from image_archives import docker_archive, layer, member
from rootless_images import Run, needs_busybox
from sandbox_job import Place, running

from pytest_mlebench.agent import Agent
from pytest_mlebench.cli import main
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.sandbox.process import own_disk
from pytest_mlebench.sandbox.rootless import RootlessSandbox, image_view
from pytest_mlebench.sandbox.rootless.driver_libraries import driver_libraries

pytestmark = needs_busybox

CONTRACT = """
pwd; cat /opt/only-here; echo; cat /home/instructions.txt; echo
echo $(ls /home) ; cat /home/data/train.csv
echo $HOME $SUBMISSION_DIR $LOGS_DIR $CODE_DIR $AGENT_DIR $DATA_DIR $MLE_VALIDATE_URL $MLE_SEED
echo 'id,label' > /home/submission/submission.csv
echo log > /home/logs/own.log; echo code > /home/code/own.py; echo x > /tmp/x; cat /var/tmp/x
/home/validate_submission.sh /home/submission/submission.csv
wget -q -O - http://localhost:5000/health
"""


def test_it_is_the_image_with_the_contract_in_it(run: Run) -> None:
    done = run(CONTRACT)
    assert done.outcome.exit_code == 0, done.log
    assert done.log.splitlines() == [
        "/home/agent",
        "of the image",
        "Write /home/submission/submission.csv, not /home/me.",
        "agent code data instructions.txt logs submission validate_submission.sh",
        "id,label",
        "0,0",
        "/home/agent /home/submission /home/logs /home/code /home/agent /home/data "
        "http://localhost:5000/validate 7",
        "x",
        '{"result": "Submission is valid."}',
        '{"status": "running"}',
    ]
    assert done.submission == "id,label\n"
    assert (done.job.artefacts / "logs" / "own.log").read_text() == "log\n"
    assert (done.job.artefacts / "code" / "own.py").read_text() == "code\n"
    assert done.outcome.format_checks == 1
    assert done.outcome.image is not None
    assert {"users", "mounts", "pids", "net"} <= set(done.outcome.walls)
    assert not (done.job.folder / "home").exists()


def test_a_long_attempt_has_a_disk_of_its_own_in_its_image_too(run: Run) -> None:
    if not own_disk.is_due(STANDARD) or own_disk.find_problem():
        pytest.skip("no disks here")
    done = run("echo x > /tmp/x; echo label > /home/submission/submission.csv", time_seconds=3600)
    assert done.outcome.exit_code == 0, done.log
    assert done.outcome.walls[-1] == "disk"
    assert done.submission == "label\n"
    assert not (done.job.folder / "home").exists()


def test_the_open_network_is_the_hosts_with_a_check_of_its_own(run: Run) -> None:
    script = "echo label > /home/submission/submission.csv; cat /etc/resolv.conf | wc -l; "
    done = run(
        f"{script} sh /home/validate_submission.sh $SUBMISSION_DIR/submission.csv", network="open"
    )
    assert "Submission is valid." in done.log
    assert "net" not in done.outcome.walls


def test_the_image_and_the_data_cannot_be_written_to(run: Run, cache: Path) -> None:
    places = "/ /usr /opt /opt/only-here /etc/passwd /home /home/data /home/data/train.csv /sys"
    done = run(
        f"for p in {places}; do (echo x > $p/new || echo x >> $p) 2>&1 && echo GOT $p; done; "
        "chmod 777 /opt/only-here && echo GOT mode; rm -rf /opt /home/data; cat /opt/only-here"
    )
    assert "GOT" not in done.log
    assert done.log.endswith("of the image")
    assert not [path for path in cache.rglob("new") if path.is_file()]


def test_nothing_of_the_host_is_inside(run: Run) -> None:
    done = run("ls -a /; ls /home; ls /proc | grep -c '^[0-9]'; cat /proc/*/cmdline; ls -a /tmp")
    assert "agent-root" not in done.log
    assert str(Path(os.__file__).parent) not in done.log
    names = set(done.log.split())
    assert not names & {"work", "srv", "boot", "run", ".venv"}


def test_modules_of_an_image_never_run_before_the_walls_are_up(tmp_path: Path, run: Run) -> None:
    """The first process is a Python of the host that enters an image with modules of its own."""
    library = Path(os.__file__).parent
    evil = b"import os; os.write(2, b'GOT IN'); os._exit(3)"
    members = [
        member(f"{library}/{name}"[1:], content=evil)
        for name in ("encodings/ascii.py", "warnings.py", "socket.py", "fcntl.py", "traceback.py")
    ]
    archive = docker_archive(tmp_path / "evil.tar", [files_of_image(python=False), layer(*members)])
    agent = Agent("evil", image=str(archive), command=("no-such-program",))
    done = run(agent=agent)
    assert done.outcome.exit_code == 127
    assert done.log == "cannot start no-such-program: no such file or directory\n"
    assert (
        run("exit 5", agent=replace(agent, command=("sh", "-c", "exit 5"))).outcome.exit_code == 5
    )


def test_the_environment_is_the_images_and_nothing_of_ours(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret-of-mine")
    own = layer(member("etc/passwd", content=b"nonroot:x:1000:1000::/home/nonroot:/bin/sh\n"))
    settings = {"Env": ["PATH=/usr/bin", "OF_IMAGE=yes"], "User": "nonroot", "Cmd": ["env"]}
    archive = docker_archive(tmp_path / "i.tar", [files_of_image(python=False), own], settings)
    done = run(agent=Agent("tester", image=str(archive), env={"OF_AGENT": "yes"}))
    found = dict(line.split("=", 1) for line in done.log.splitlines())
    assert found["PATH"] == "/usr/bin"
    assert (found["OF_IMAGE"], found["OF_AGENT"]) == ("yes", "yes")
    assert (found["USER"], found["HOME"]) == ("nonroot", "/home/agent")
    assert not {"MY_TOKEN", "LANG", "VIRTUAL_ENV"} & set(found)
    done = run(agent=Agent("tester", image=str(archive), command=("sh", "-c", "id -un; id -u")))
    name, number = done.log.split()
    assert name == "nonroot"
    assert int(number) != 0
    assert os.geteuid() == 0 or int(number) == os.geteuid()


def test_files_of_the_agent_lie_over_those_of_the_image(tmp_path: Path, run: Run) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    own = layer(
        member("home/agent/start.sh", content=b"cat /home/agent/a /home/agent/b; ls -R"),
        member("home/agent/a", content=b"image "),
        member("home/agent/b", content=b"image "),
        member("home/agent/out", b"2", linkname=str(victim)),
    )
    archive = docker_archive(tmp_path / "i.tar", [files_of_image(python=False), own])
    folder = tmp_path / "agent"
    for name in ("a", "out/x", ".git/config", ".venv/pyvenv.cfg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("folder ")
    (folder / "i.tar").write_bytes(archive.read_bytes())
    done = run(agent=Agent("tester", image=str(folder / "i.tar"), folder=folder))
    assert done.log.startswith("folder image ")
    assert "config" not in done.log
    assert "pyvenv.cfg" not in done.log
    assert "i.tar" not in done.log
    assert list(victim.iterdir()) == []
    done = run(agent=Agent("tester", image=str(archive), folder=folder, build=None))
    assert done.log.startswith("folder image ")


def test_mounts_are_there_and_the_answers_are_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m").write_text("large")
    agent = Agent("tester", command=("cat", "/models/m"), mounts=(f"{tmp_path}/models:/models:ro",))
    assert run(agent=agent).log == "large"
    hidden = replace(agent, mounts=(f"{tmp_path}/store:/models",))
    with pytest.raises(ConfigError, match="must not mount"):
        run(agent=hidden)


def test_it_ends_with_all_that_it_has_started(run: Run) -> None:
    seconds = f"47{os.getpid()}"  # of no other test that runs at the same time
    done = run(f"sleep {seconds} & setsid sleep {seconds} & exit 4")
    assert (done.outcome.reason, done.outcome.exit_code) == ("exited", 4)
    assert running(f"sleep\0{seconds}") == []


def test_too_much_written_ends_it(run: Run) -> None:
    done = run("yes > /tmp/much", disk_bytes=5_000_000)
    assert done.outcome.reason == "disk-limit"


def preflight(
    tmp_path: Path, agent: Agent, network: str = "none", *, require_walls: bool = False
) -> tuple[str, ...]:
    sandbox = RootlessSandbox(cache=tmp_path / "cache", require_walls=require_walls)
    return sandbox.preflight(agent, demo_limits(), network)


def test_the_header_names_image_walls_and_what_is_not_enforced(
    tmp_path: Path, busybox: Path
) -> None:
    agent = Agent("tester", image=str(busybox), command=("true",))
    image, walls, *others = preflight(tmp_path, agent, "open")
    assert image.startswith(f"image: {busybox} (sha256:")
    assert walls.startswith("walls: users mounts pids ipc uts seccomp")
    assert any(line.startswith("not enforced without root: a quota of CPUs") for line in others)
    assert others[-1] == (
        "the open network is this host's: the format check is at MLE_VALIDATE_URL, "
        "not at localhost:5000"
    )


def test_what_it_cannot_give_is_refused_before_anything_is_unpacked(tmp_path: Path) -> None:
    agent = Agent("tester", image="/none.tar", devices=("/dev/kvm",), privileged=True)
    with pytest.raises(ConfigError) as error:
        preflight(tmp_path, agent, "allow:example.com")
    text = str(error.value)
    assert "agent 'tester' asks for devices and privileged, which the rootless sandbox" in text
    assert "cannot enforce --mle-network=allow:example.com: use --mle-sandbox=docker or" in text
    assert "the image /none.tar is not there: write it with docker save" in text
    job = Place(tmp_path / "place").job(agent)
    with pytest.raises(ConfigError, match="agent 'tester' asks for devices and privileged"):
        RootlessSandbox(cache=tmp_path / "cache").run(job)
    with pytest.raises(ConfigError, match="is a Python function, which cannot run in an image"):
        preflight(tmp_path, Agent("function", image="/none.tar", function=print))
    with pytest.raises(ConfigError, match=r"agent 'bare' has no image: give agent\.toml an image="):
        preflight(tmp_path, Agent("bare", command=("true",)))
    assert not (tmp_path / "cache").exists()


def test_an_image_that_starts_nothing_is_refused(tmp_path: Path, busybox: Path) -> None:
    with pytest.raises(ConfigError, match=r"has nothing to start: its image .* has neither /home"):
        preflight(tmp_path, Agent("tester", image=str(busybox)))


def test_a_host_without_walls_is_refused_with_the_way_out(
    tmp_path: Path, busybox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = RootlessSandbox(cache=tmp_path / "cache", builders=("bubblewrap",))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    agent = Agent("tester", image=str(busybox), command=("true",))
    with pytest.raises(ConfigError, match=r"install bubblewrap .apt install bubblewrap, dnf inst"):
        sandbox.preflight(agent, demo_limits(), "none")


def test_libraries_of_the_driver_are_found_by_the_linkers_table(tmp_path: Path) -> None:
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.12"):
        (tmp_path / name).touch()
    listing = f"""
\tlibnvidia-ml.so.1 (libc6,x86-64) => {tmp_path}/libnvidia-ml.so.1
\tlibcudart.so.12 (libc6,x86-64) => {tmp_path}/libcudart.so.12
\tlibcuda.so.1 (libc6) => {tmp_path}/libcuda-32.so.1
\tlibcuda.so.1 (libc6,x86-64) => {tmp_path}/libcuda.so.1
\tlibnvidia-gone.so.1 (libc6,x86-64) => {tmp_path}/gone
"""
    found = [path.name for path in driver_libraries(listing)]
    assert found == ["libnvidia-ml.so.1", "libcuda.so.1"]


def test_doctor_tries_it_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    main(["doctor", f"--data-dir={tmp_path}", f"--runs-dir={tmp_path}"])
    line = "ok      images without an engine (--mle-sandbox=rootless): users mounts pids"
    assert line in capsys.readouterr().out


def test_libraries_of_the_driver_are_where_programs_look_for_them(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libcuda.so.1").write_text("of this host")
    monkeypatch.setattr(image_view, "driver_libraries", lambda: [tmp_path / "libcuda.so.1"])
    script = "echo $LD_LIBRARY_PATH; cat $LD_LIBRARY_PATH/*; touch $LD_LIBRARY_PATH/x || echo kept"
    assert run(script, gpus=1).log.splitlines() == [
        "/usr/local/nvidia/lib64",
        "of this hosttouch: /usr/local/nvidia/lib64/x: Read-only file system",
        "kept",
    ]
