"""Reading hosts.toml: what it may say, and everything that is wrong with it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlebench.machines.hosts_file import HostsFileError, Machine, read_hosts
from pytest_mlebench.machines.ssh import execnet_spec, ssh_words


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "hosts.toml"
    path.write_text(text)
    return path


def test_a_host_needs_only_its_name(tmp_path: Path) -> None:
    (machine,) = read_hosts(write(tmp_path, "[hosts.gpu1]\n")).machines
    assert machine == Machine("gpu1", ("gpu1",))
    assert (machine.python, machine.slots) == ("python3", None)


def test_a_host_says_how_it_is_reached_and_what_it_has(tmp_path: Path) -> None:
    text = """
        keepalive = "20s"
        ssh_config = "my/config"
        [hosts.gpu1]
        ssh = "me@10.0.0.1"
        python = "/opt/mle/bin/python"
        data = "/data/mle"
        folder = "/scratch/mle"
        slots = 8
    """
    machines = read_hosts(write(tmp_path, text))
    assert machines.keepalive == 20
    words = ("-F", str(tmp_path / "my/config"), "me@10.0.0.1")
    expected = Machine("gpu1", words, "/opt/mle/bin/python", "/data/mle", "/scratch/mle", 8)
    assert machines.machines == (expected,)


def test_all_mistakes_of_a_file_are_one_error(tmp_path: Path) -> None:
    text = """
        keepalive = "soon"
        [hosts.a]
        slots = 0
        pyhton = "python3"
        [hosts.b]
        python = "python3 -u"
        ssh = "-oProxyCommand=x"
    """
    with pytest.raises(HostsFileError) as error:
        read_hosts(write(tmp_path, text))
    lines = str(error.value).splitlines()
    assert lines[0].endswith("hosts.toml: 5 problems:")
    assert [line.strip() for line in lines[1:]] == [
        "keepalive must be a duration of 2s or more, given: 'soon'",
        "hosts: a: slots must be 'auto' or a number of 1 or more, given: 0",
        "hosts: b: python must be without spaces and '//', given: 'python3 -u'",
        "hosts: b: ssh must be the name of a host, given: '-oProxyCommand=x'",
        "hosts: a: pyhton is not a known key, did you mean 'python'?",
    ]


@pytest.mark.parametrize("text", ["", "keepalive = '1m'\n"])
def test_a_file_without_hosts_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(HostsFileError, match=r"hosts\.toml: hosts names no machine: write a table"):
        read_hosts(write(tmp_path, text))


def test_ssh_notices_a_silent_host_within_the_keepalive() -> None:
    words = ssh_words(Machine("gpu1", ("gpu1",)), 60)
    assert "ServerAliveInterval=15" in words
    assert "ServerAliveCountMax=3" in words
    assert words[-1] == "gpu1"


def test_a_worker_starts_in_the_folder_of_its_machine() -> None:
    spec = execnet_spec(Machine("gpu1", ("gpu1",), "py", None, "/scratch/x"), 60, "gpu1.0")
    assert spec.endswith(
        " gpu1//python=py//chdir=/scratch/x//id=gpu1.0//execmodel=main_thread_only"
    )
