"""Agents that look for the answers, break out, or leave traps behind."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from docker_images import PYTHON
from docker_jobs import JobMaker
from hostile_agents import ATTACKS
from hostile_scene import attempt

from pytest_mlebench.agent import Agent
from pytest_mlebench.sandbox.docker import DockerSandbox

CANARY = "canary-7f3a91c04e"

# Reads whatever it can: every file below every mount, every process, every socket, every port.
SEARCH = r"""
import os, socket, stat, sys, urllib.request
CANARY = "canary-" + "7f3a91c04e"
places, files, processes = [], 0, 0

def look(path):
    global files
    try:
        with open(path, "rb") as file:
            files += 1
            while chunk := file.read(1 << 20):
                if CANARY.encode() in chunk:
                    places.append(path)
                    return
    except OSError:
        pass

def walk(root, skip=()):
    for folder, names, found in os.walk(root):
        names[:] = [n for n in names if os.path.join(folder, n) not in skip]
        for name in found:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode) and "python" not in folder:
                look(path)

mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
for mount in {"/", *mounts}:
    if not mount.startswith(("/proc", "/sys", "/dev/pts")):
        walk(mount, skip=("/proc", "/sys", "/dev"))
for name in os.listdir("/proc"):
    if name.isdecimal():
        processes += 1
        for part in ("environ", "cmdline", "mountinfo", "maps", "cgroup", "root/etc/passwd"):
            look(f"/proc/{name}/{part}")
        for link in ("cwd", "exe", "root"):
            try:
                os.readlink(f"/proc/{name}/{link}")
            except OSError:
                pass
for key, value in os.environ.items():
    if CANARY in key + value:
        places.append(f"environment {key}")

def ask(family, address, request):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(2)
            s.connect(address)
            s.sendall(request)
            answer = b""
            while chunk := s.recv(65536):
                answer += chunk
            if CANARY.encode() in answer:
                places.append(f"socket {address}")
            return answer
    except OSError:
        return b""

paths = ["/validate", "/health", "/grade", "/answers", "/private", "/../private/answers.csv",
         "/validate/../../private/answers.csv", "//private/answers.csv", "/%2e%2e/private"]
health = b""
for path in paths:
    for method in ("GET", "POST", "PUT", "OPTIONS", "TRACE"):
        request = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        request += "Content-Length: 0\r\n\r\n"
        for target in ((socket.AF_INET, ("127.0.0.1", 5000)),
                       (socket.AF_UNIX, "/.mlebench/run/validator.sock")):
            answer = ask(*target, request.encode())
            health = answer if path == "/health" and method == "GET" else health
for port in (int(sys.argv[1]), 22, 80, 2375, 5000):
    for host in ("127.0.0.1", "172.17.0.1", "10.0.0.1", "169.254.169.254"):
        if (host, port) != ("127.0.0.1", 5000):
            ask(socket.AF_INET, (host, port), b"GET / HTTP/1.0\r\n\r\n")
for path in ("/var/run/docker.sock", "/run/docker.sock", "\0docker"):
    ask(socket.AF_UNIX, path, b"GET /info HTTP/1.0\r\n\r\n")
print(f"found={places} files={files > 50} processes={processes > 2} health={b'running' in health}")
"""


@pytest.fixture
def host_service() -> int:
    """Return the port of a server on the host that tells the canary to everybody who comes."""
    server = socket.create_server(("0.0.0.0", 0))

    def serve() -> None:
        while True:
            client, _ = server.accept()
            client.sendall(CANARY.encode())
            client.close()

    threading.Thread(target=serve, daemon=True).start()
    return int(server.getsockname()[1])


def test_a_search_for_the_answers_comes_out_empty(
    sandbox: DockerSandbox,
    make_job: JobMaker,
    data: Path,
    host_service: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CANARY", CANARY)  # our own environment is not the agent's
    (data.parent / "private" / "answers.csv").write_text(f"id,target\n1,{CANARY}\n")
    (data.parent / "private" / "link").symlink_to(data)
    (data / "shortcut.csv").symlink_to(data.parent / "private" / "answers.csv")
    command = ("python3", "-c", SEARCH, str(host_service))
    job = make_job(agent=Agent(name="spy", image=PYTHON, command=command))
    outcome = sandbox.run(job)
    assert job.log.read_text() == "found=[] files=True processes=True health=True\n"
    assert outcome.exit_code == 0


def test_the_search_finds_what_is_there(
    sandbox: DockerSandbox, make_job: JobMaker, data: Path
) -> None:
    (data / "leak.csv").write_text(CANARY)
    command = ("python3", "-c", SEARCH, "9")
    agent = Agent(name="spy", image=PYTHON, command=command, env={"LEAK": CANARY})
    job = make_job(agent=agent)
    sandbox.run(job)
    assert "/home/data/leak.csv" in job.log.read_text()
    assert "environment LEAK" in job.log.read_text()


def test_nothing_of_the_package_is_inside(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job("find / -xdev 2>/dev/null | grep -i mlebench; find / -name '*.toml' 2>/dev/null")
    sandbox.run(job)
    assert job.log.read_text().split() == [
        "/.mlebench",
        "/.mlebench/helper",
        "/.mlebench/run",
    ]


def test_privileges_cannot_be_had(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(
        "mount -t tmpfs x /mnt; mount -o remount,rw /home/data; chroot / true;"
        "mknod /tmp/disk b 8 0; echo 1 > /proc/sys/kernel/panic; cp /bin/busybox /tmp/su;"
        "chmod u+s /tmp/su; /tmp/su id -u; nsenter -t 1 -m true; unshare -r true; dmesg;"
        "kill -9 1; ls /sys/kernel/debug; echo still here"
    )
    outcome = sandbox.run(job)
    text = job.log.read_text()
    assert outcome.exit_code == 0
    assert text.endswith("still here\n")
    assert "\n0\n" not in text
    for refused in ("mount", "chroot", "mknod", "nsenter"):
        assert f"{refused}: " in text


def test_without_network_nothing_but_the_format_check_is_reachable(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job("ip -o addr | awk '{print $2, $4}'; wget -T 2 -qO- http://1.1.1.1/ || echo none")
    sandbox.run(job)
    lines = job.log.read_text().splitlines()
    assert {line.split()[0] for line in lines if line.startswith("lo")} == {"lo"}
    assert not any(line.startswith(("eth", "veth")) for line in lines)
    assert lines[-1] == "none"


def test_the_open_network_is_open(
    sandbox: DockerSandbox, make_job: JobMaker, host_service: int
) -> None:
    job = make_job(
        f"gateway=$(ip route | awk '/default/ {{print $3}}');nc $gateway {host_service} </dev/null",
        network="open",
    )
    sandbox.run(job)
    assert job.log.read_text() == CANARY


IN_CONTAINERS = (
    *(("unlinked-files", "none"), ("unlinked-mapped", "open"), ("many-files", "none")),
    *(("kernel-calls", "none"), ("kernel-calls", "open"), ("keyrings", "none")),
    *(("answers", "open"), ("engine-socket", "open"), ("other-attempts", "open")),
    ("memory-in-memfd", "none"),
)


@pytest.mark.parametrize(("name", "network"), IN_CONTAINERS)
def test_an_attack_comes_to_nothing(
    sandbox: DockerSandbox, tmp_path: Path, name: str, network: str
) -> None:
    (attack,) = [one for one in ATTACKS if one.name == name]
    assert attempt(attack, sandbox, network, tmp_path, PYTHON) == []


@pytest.mark.parametrize(
    ("trap", "problem"),
    [
        ("ln -s /etc/passwd $F", "submission.csv is a symbolic link, not a regular file"),
        ("ln -s ../../../store/demo/prepared/private/answers.csv $F", "submission.csv is a symb"),
        ("mkfifo $F", "submission.csv is a named pipe, not a regular file"),
        ("mkdir $F", "submission.csv is a folder, not a regular file"),
        ("echo x > $F; ln $F $F.2", "submission.csv is a hard link: the same file has 2 names"),
        ("truncate -s 400G $F", "submission.csv is too large: 429.5GB, allowed are 1MB"),
    ],
    ids=["link", "link-up", "pipe", "folder", "hard-link", "huge"],
)
def test_a_submission_that_is_a_trap_is_not_taken(
    sandbox: DockerSandbox, make_job: JobMaker, trap: str, problem: str
) -> None:
    job = make_job(f"F=$SUBMISSION_DIR/submission.csv; {trap}")
    outcome = sandbox.run(job)
    assert outcome.problem is not None
    assert outcome.problem.startswith(problem)
    assert not job.submission.exists()


def test_the_submission_folder_cannot_be_replaced_by_a_link(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job(
        "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv;"
        "rm -rf $SUBMISSION_DIR || mv $SUBMISSION_DIR /tmp/x; ln -sfn /etc /home/submission"
    )
    outcome = sandbox.run(job)
    assert outcome.problem == "the agent left no submission.csv in its submission folder"
    assert not (job.folder / "home").exists()


def test_folders_without_permissions_do_not_stay_behind(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job("mkdir -p $LOGS_DIR/a/b/c; touch $LOGS_DIR/a/b/c/d; chmod -R 000 $LOGS_DIR/a")
    sandbox.run(job)
    assert not (job.folder / "home").exists()


def test_a_zombie_factory_is_reaped(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(
        "for i in $(seq 50); do (sh -c 'sleep 0 &' ); done; sleep 1;"
        "ps -o stat > list; grep -c S list; grep -c Z list || true",
        pids=30,
    )
    sandbox.run(job)
    living, zombies = map(int, job.log.read_text().split())
    assert living > 2
    assert zombies == 0


def test_output_that_was_closed_does_not_end_the_attempt(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job(
        "exec >&- 2>&-; sleep 2; cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"
    )
    outcome = sandbox.run(job)
    assert outcome.problem is None
    assert outcome.seconds > 1.5
