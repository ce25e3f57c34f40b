"""``agent.toml`` and the ``[tool.mlebench.agents]`` tables are read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlebench.agents.agent_toml import read_agent
from pytest_mlebench.agents.find import find_agent
from pytest_mlebench.errors import AgentFileError, ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "my-agent"
    folder.mkdir()
    return folder


def write(folder: Path, text: str) -> Path:
    file = folder / "agent.toml"
    file.write_text(text)
    return file


def problem(folder: Path, text: str) -> str:
    file = write(folder, text)
    with pytest.raises(ConfigError) as error:
        read_agent(file)
    message = str(error.value)
    assert str(file) in message
    assert not message.endswith(".")
    return message.replace(str(file), "FILE").replace(str(folder), "FOLDER")


def test_a_file_with_every_key(folder: Path) -> None:
    (folder / "image").mkdir()
    (folder / "image" / "Dockerfile").touch()
    agent = read_agent(
        write(
            folder,
            """
            name = "fast"
            version = "1.2"
            command = ["python", "main.py", "--fast"]
            image = "fast:1.2"
            build = "image"
            network = "allow: a.example, b.example"
            runtime = "sysbox-runc"
            mounts = ["models:/models:ro", "/srv/cache:/cache"]
            devices = ["/dev/fuse"]
            privileged = true
            [env]
            KEY = "${SECRET}"
            [limits]
            time = "12h"
            memory = "64GB"
            """,
        )
    )
    assert (agent.name, agent.version) == ("fast", "1.2")
    assert agent.command == ("python", "main.py", "--fast")
    assert (agent.image, agent.build, agent.folder) == ("fast:1.2", folder / "image", folder)
    assert agent.network == "allow:a.example,b.example"
    assert agent.runtime == "sysbox-runc"
    assert agent.mounts == (f"{folder}/models:/models:ro", "/srv/cache:/cache")
    assert agent.devices == ("/dev/fuse",)
    assert agent.privileged
    assert agent.environment({"SECRET": "s3cr3t"}) == {"KEY": "s3cr3t"}
    assert agent.limits == {"time": "12h", "memory": "64GB"}


def test_the_name_is_the_folders_and_a_command_is_split_as_a_shell_would(folder: Path) -> None:
    agent = read_agent(write(folder, """command = "python main.py --note 'two words'" """))
    assert agent.name == "my-agent"
    assert agent.command == ("python", "main.py", "--note", "two words")


def test_a_start_script_needs_no_command(folder: Path) -> None:
    (folder / "start.sh").touch()
    agent = read_agent(write(folder, ""))
    assert agent.command == ("bash", "-c", 'exec bash "$AGENT_DIR"/start.sh')


def test_another_start_script_is_named(folder: Path) -> None:
    (folder / "go.sh").touch()
    agent = read_agent(write(folder, 'start = "go.sh"'))
    assert agent.command[-1] == 'exec bash "$AGENT_DIR"/go.sh'


def test_an_agent_may_have_a_folder_of_its_own(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "start.sh").touch()
    agent = read_agent(write(folder, 'folder = "src"'))
    assert agent.folder == folder / "src"
    assert agent.command[-1] == 'exec bash "$AGENT_DIR"/start.sh'


def test_an_image_alone_is_an_agent(folder: Path) -> None:
    assert read_agent(write(folder, 'image = "mine:1"')).command == ()


@pytest.mark.parametrize("image", ["image.tar", "./layout", "../image.tar"])
def test_an_image_may_be_an_archive_beside_the_file(folder: Path, image: str) -> None:
    (folder / "agent.toml").write_text(f'image = "{image}"\n')
    agent = read_agent(folder / "agent.toml")
    assert agent.image_archive == (folder / image).resolve()


@pytest.mark.parametrize("image", ["python:3.11", "registry.example/team/agent:tar"])
def test_an_image_with_a_name_is_no_archive(folder: Path, image: str) -> None:
    (folder / "agent.toml").write_text(f'image = "{image}"\n')
    agent = read_agent(folder / "agent.toml")
    assert (agent.image, agent.image_archive) == (image, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "FILE: command is missing: give a command, an image, a build or a start.sh"),
        ("command = [", "FILE: not valid TOML: Invalid value (at end of document)"),
        ("command = 3", "FILE: command must be a list of strings, given: 3"),
        (
            'command = "echo \'a"',
            'FILE: command cannot be split into words (No closing quotation), given: "echo \'a"',
        ),
        (
            'comand = "a"\nimage = "b"',
            "FILE: comand is not a known key, did you mean 'command'?",
        ),
        (
            'command = "a --key ${KEY}"',
            "FILE: command is not searched for references, put ${KEY} into env, given: '${KEY}'",
        ),
        (
            'command = "a"\nname = "two words"',
            "FILE: name must be letters, digits and ._/+-, given: 'two words'",
        ),
        (
            'command = "a"\nstart = "b"',
            "FILE: start cannot stand beside command: one of them starts the agent",
        ),
        ('start = "no.sh"', "FILE: start names a file that does not exist: FOLDER/no.sh"),
        ('command = "a"\nfolder = "no"', "FILE: folder must be a folder, given: FOLDER/no"),
        ('build = "no"', "FILE: build must be a folder with a Dockerfile, given: FOLDER/no"),
        (
            'command = "a"\nnetwork = "some"',
            "FILE: network must be none, open or allow:HOST[,HOST], given: some",
        ),
        (
            'command = "a"\nmounts = ["models"]',
            "FILE: mounts must be SOURCE:/TARGET or SOURCE:/TARGET:ro, given: 'models'",
        ),
        (
            'command = "a"\nprivileged = "yes"',
            "FILE: privileged must be true or false, given: 'yes'",
        ),
        (
            'command = "a"\n[limits]\ntimes = "1h"',
            "unknown limit in FILE: limits: 'times', did you mean 'time' or 'files'?",
        ),
        (
            'command = "a"\n[limits]\nmemory = "lots"',
            "FILE: limits: memory must be a size such as 440GB or 16GiB, given: lots",
        ),
        ('command = "a"\n[env]\nSTEPS = 5', "FILE: env: STEPS must be a string, given: 5"),
        (
            'command = "a"\n[env]\n"MY-KEY" = "5"',
            "FILE: env: 'MY-KEY' is not a name of an environment variable",
        ),
        (
            'command = "a"\n[env]\nKEY = "${{ secrets.KEY }}"',
            "FILE: env: KEY has a reference that is not understood, write ${NAME}, "
            "given: '${{ secrets.KEY }}'",
        ),
    ],
)
def test_a_wrong_key_names_file_key_and_way_out(folder: Path, text: str, message: str) -> None:
    assert problem(folder, text) == message


def test_a_start_script_outside_the_folder_is_refused(folder: Path) -> None:
    (folder.parent / "go.sh").touch()
    message = problem(folder, 'start = "../go.sh"')
    assert message == "FILE: start must be inside the agent's folder FOLDER, given: '../go.sh'"


def test_an_unreadable_file_is_said(tmp_path: Path) -> None:
    loop = tmp_path / "agent.toml"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match="cannot be read: Too many levels of symbolic links"):
        read_agent(loop)


def test_a_project_names_its_agents(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.mlebench.agents.fast]\ncommand = "python main.py"\n'
    )
    agent = find_agent("fast", rootdir=tmp_path)
    assert (agent.name, agent.command) == ("fast", ("python", "main.py"))
    assert agent.folder == tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.mlebench.agent.x]",
            "tool: mlebench: agent is not a known key, did you mean 'agents'?",
        ),
        ("[tool.mlebench]\nagents = 3", "tool: mlebench: agents must be a table, given: 3"),
        ("[tool.mlebench.agents]\nx = 3", "tool: mlebench: agents: x must be a table, given: 3"),
        (
            "[tool.mlebench.agents.x]",
            "tool: mlebench: agents: x: command is missing: "
            "give a command, an image, a build or a start.sh",
        ),
    ],
)
def test_a_wrong_project_table_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(AgentFileError) as error:
        find_agent("x", rootdir=tmp_path)
    assert str(error.value) == f"{tmp_path}/pyproject.toml: {message}"
