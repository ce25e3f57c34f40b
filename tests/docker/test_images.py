"""Images: built once, made ready, run unchanged."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

import pytest
from docker_images import BUSYBOX
from docker_jobs import JobMaker
from image_archives import layer, member
from image_registry import ImageRegistry, image_registry

from pytest_mlebench.agent import Agent, start_script
from pytest_mlebench.errors import ConfigError, ConfigErrors
from pytest_mlebench.sandbox import ImageIdentity
from pytest_mlebench.sandbox.account import Account, choose_account
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine, prepared_image
from pytest_mlebench.sandbox.docker.images import Images

HELPER = Path(prepared_image.__file__).parent / "helper"


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A folder with a Dockerfile whose content nobody has built before."""
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "Dockerfile").write_text(
        f"FROM {BUSYBOX}\nARG AGENT_DIR\nARG UNKNOWN=x\nCOPY . $AGENT_DIR\n"
        "RUN echo built in $AGENT_DIR with $UNKNOWN\n"
    )
    (folder / "start.sh").write_text("echo started $0 $@\n")
    (folder / "unique").write_text(uuid4().hex)
    return folder


@pytest.fixture
def images(engine: Engine, tmp_path: Path) -> Images:
    """The engine's images, with an empty cache."""
    return Images(engine, tmp_path / "cache")


def test_a_built_agent_starts_its_start_script(
    sandbox: DockerSandbox, make_job: JobMaker, build: Path
) -> None:
    job = make_job(agent=Agent(name="built", build=build, folder=build))
    outcome = sandbox.run(job)
    assert job.log.read_text() == "started /home/agent/start.sh\n"
    assert outcome.image is not None
    assert "sha256:" in outcome.image


def test_arguments_reach_the_start_script(
    sandbox: DockerSandbox, make_job: JobMaker, build: Path
) -> None:
    command = start_script("start.sh", "--model", "'a b'")
    job = make_job(agent=Agent(name="built", build=build, command=command))
    sandbox.run(job)
    assert job.log.read_text() == "started /home/agent/start.sh --model a b\n"


def test_the_same_content_is_built_once(images: Images, build: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: images.build(build, "once"), range(3)))
    assert len({image.id for image in found}) == 1
    log = images.build_log(found[0].name).read_text()
    assert log.splitlines().count("built in /home/agent with x") == 1
    images.build_log(found[0].name).unlink()
    assert images.build(build, "once").id == found[0].id
    assert not images.build_log(found[0].name).exists()


def test_other_content_is_another_image(images: Images, build: Path) -> None:
    before = images.build(build, "changing")
    (build / "start.sh").write_text("echo changed\n")
    after = images.build(build, "changing")
    assert before.id != after.id
    (build / ".dockerignore").write_text("notes\n")
    ignoring = images.build(build, "changing")
    (build / "notes").write_text("not part of the image\n")
    assert images.build(build, "changing").id == ignoring.id


def test_neither_datasets_nor_runs_become_part_of_an_image(
    engine: Engine, build: Path, tmp_path: Path
) -> None:
    for name in ("data", "mle-runs"):
        (build / name / "deep").mkdir(parents=True)
        (build / name / "deep" / "answers.csv").write_text("1,1\n")
    (build / ".dockerignore").write_text("!data/deep\n!data/deep/**\n")
    (build / "Dockerfile").write_text(
        f"FROM {BUSYBOX}\nCOPY . /home/agent\nRUN find /home/agent -type f\n"
    )
    hidden = [build / "data", build / "mle-runs"]
    images = Images(engine, tmp_path / "cache", hidden)
    image = images.build(build, "leaky")
    log = images.build_log(image.name).read_text()
    assert "/home/agent/start.sh" in log
    assert "answers.csv" not in log
    (build / "mle-runs" / "more").write_text("a run more")
    assert images.build(build, "leaky").id == image.id


def test_the_built_image_gets_the_name_that_the_agent_gives_it(
    engine: Engine, images: Images, build: Path
) -> None:
    image = images.ensure(Agent(name="built", build=build, image="mlebench-test/alias:7"))
    assert engine.api.inspect_image("mlebench-test/alias:7")["Id"] == image.id
    engine.api.remove_image("mlebench-test/alias:7")


def test_a_build_that_fails_shows_the_end_of_its_log(images: Images, build: Path) -> None:
    (build / "Dockerfile").write_text(f"FROM {BUSYBOX}\nRUN echo a clear reason; exit 3\n")
    with pytest.raises(ConfigError) as caught:
        images.build(build, "broken")
    text = str(caught.value)
    assert text.startswith(f"cannot build {build}: ")
    assert " 3 (log: " in text.splitlines()[0]
    assert "a clear reason" in text.splitlines()


def test_a_dockerfile_with_a_mistake_is_named(images: Images, build: Path) -> None:
    (build / "Dockerfile").write_text("FORM scratch\n")
    with pytest.raises(ConfigError, match=r"cannot build .*(unknown instruction: FORM|no FROM)"):
        images.build(build, "typo")


def test_an_image_that_is_nowhere_is_refused(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    agent = Agent(name="lost", image="mlebench-test.invalid/no-such-image:1", command=("true",))
    with pytest.raises(ConfigError) as caught:
        sandbox.preflight(agent, make_job().limits, "none")
    assert str(caught.value).startswith(
        "the image 'mlebench-test.invalid/no-such-image:1' is not on the engine and "
        "cannot be pulled ("
    )
    assert str(caught.value).endswith("build it or correct the agent's image=")


def test_an_image_that_is_nowhere_is_named_beside_limits_that_are_too_large(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    agent = Agent(name="lost", image="mlebench-test.invalid/no-such-image:1", command=("true",))
    limits = replace(make_job().limits, cpus=9000)
    with pytest.raises(ConfigErrors) as caught:
        sandbox.preflight(agent, limits, "none")
    first, *_, last = map(str, caught.value.errors)
    assert first.startswith("the limit of 9000 CPUs is more than the ")
    assert last.startswith("the image 'mlebench-test.invalid/no-such-image:1' is not on the engine")


@pytest.fixture
def registry(engine: Engine) -> Iterator[ImageRegistry]:
    """A registry with an image that no engine has seen before."""
    content = uuid4().hex.encode()
    with image_registry(layer(member("unique", content=content))) as registry:
        yield registry
        with contextlib.suppress(engine.sdk.errors.NotFound):
            engine.api.remove_image(registry.image_id, force=True)


def test_an_image_is_pulled_by_its_tag(images: Images, registry: ImageRegistry) -> None:
    agent = Agent(name="pulled", image=f"{registry.repository}:1")
    assert images.ensure(agent).id == registry.image_id
    assert registry.asked[0] == "1"


def test_the_very_image_of_another_engine_is_pulled_by_its_digest(
    images: Images, registry: ImageRegistry
) -> None:
    def bring() -> NoReturn:
        raise AssertionError("it was to be sent, although it can be pulled")

    agent = Agent(name="pulled", image=f"{registry.repository}:1")
    wanted = ImageIdentity(registry.image_id, registry.by_digest)
    found = images.ensure_same(agent, wanted, bring)
    assert (found.id, found.digest) == (registry.image_id, registry.by_digest)
    assert set(registry.asked) == {registry.by_digest.partition("@")[2]}


def test_a_registry_that_has_another_image_under_the_digest_is_not_believed(
    images: Images, registry: ImageRegistry
) -> None:
    def bring() -> NoReturn:
        raise OSError("nobody sends it")

    wanted = ImageIdentity(registry.image_id, registry.by_digest)
    registry.blobs = {name: data[::-1] for name, data in registry.blobs.items()}
    words = "is not on the engine, cannot be pulled, and was not sent .nobody sends it.: pull or"
    with pytest.raises(ConfigError, match=words):
        images.ensure_same(Agent(name="pulled"), wanted, bring)


def test_a_name_that_is_none_is_refused(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    agent = Agent(name="typo", image="My Image", command=("true",))
    with pytest.raises(ConfigError, match=r"the image 'My Image' is not on the engine and cannot"):
        sandbox.preflight(agent, make_job().limits, "none")


def test_a_base_image_that_changed_is_built_upon_again(
    engine: Engine, images: Images, build: Path
) -> None:
    (build / "Dockerfile").write_text("ARG BASE=none\nFROM ${BASE}\nCOPY . /home/agent\n")
    engine.api.tag(BUSYBOX, "mlebench-test/moving", "1")
    arguments = {"BASE": "mlebench-test/moving:1"}
    before = images.build(build, "moving", arguments=arguments)
    engine.api.tag(before.id, "mlebench-test/moving", "1", force=True)
    assert images.build(build, "moving", arguments=arguments).id != before.id
    engine.api.remove_image("mlebench-test/moving:1")


def test_an_agent_without_an_image_is_refused(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    with pytest.raises(
        ConfigError,
        match=r"agent 'bare' has no image: give agent.toml an image= or a build=, "
        "or use --mle-sandbox=process",
    ):
        sandbox.preflight(Agent(name="bare", command=("true",)), make_job().limits, "none")


def test_an_image_with_nothing_to_start_is_refused(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    with pytest.raises(ConfigError, match=r"agent 'idle' has nothing to start: its image "):
        sandbox.preflight(Agent(name="idle", image=BUSYBOX), make_job().limits, "none")


def test_an_image_without_anything_in_it_runs(
    engine: Engine, sandbox: DockerSandbox, make_job: JobMaker, tmp_path: Path
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY busybox /\n")
    (folder / "busybox").write_bytes(Path(shutil.which("busybox") or "").read_bytes())
    (folder / "busybox").chmod(0o755)
    job = make_job(agent=Agent(name="static", build=folder, command=("/busybox", "ls", "/")))
    outcome = sandbox.run(job)
    assert outcome.exit_code == 0
    found = set(job.log.read_text().split())
    assert {"busybox", "dev", "etc", "home", "proc", "sys"} <= found
    assert not {"bin", "usr", "lib"} & found


REFERENCE = f"""
FROM {BUSYBOX}
RUN mkdir -p /private /home/data /home/agent /home/submission /home/logs /home/code \\
             /opt/conda/envs/agent/bin /home/nonroot \\
    && echo 'nonroot:x:1001:1001::/home/nonroot:/bin/bash' >> /etc/passwd \\
    && chown 1001 /home/nonroot \\
    && printf '#!/bin/sh\\necho conda python $@\\n' > /opt/conda/envs/agent/bin/python \\
    && printf '#!/bin/sh\\necho GRADING SERVER; ls /private/data\\n' > /entrypoint.sh \\
    && chmod 755 /opt/conda/envs/agent/bin/python /entrypoint.sh
ENV PATH=/opt/conda/envs/agent/bin:/usr/bin AGENT_DIR=/home/agent
ENTRYPOINT ["/entrypoint.sh"]
"""

AGENT = """
FROM mlebench-test/env:1
ARG SUBMISSION_DIR
ENV SUBMISSION_DIR=${SUBMISSION_DIR}
ARG LOGS_DIR
ENV LOGS_DIR=${LOGS_DIR}
ARG CODE_DIR
ENV CODE_DIR=${CODE_DIR}
ARG AGENT_DIR
ENV AGENT_DIR=${AGENT_DIR}
RUN mkdir -p ${LOGS_DIR} ${CODE_DIR} ${AGENT_DIR}
COPY start.sh ${AGENT_DIR}/start.sh
"""

START = """#!/bin/bash
cd ${AGENT_DIR}
echo $(id -un) $HOME $(pwd)
ln -s ${LOGS_DIR} ${AGENT_DIR}/logs
mkdir ${AGENT_DIR}/workspaces && echo made
touch $HOME/.cache && echo cached
python main.py --time-limit $TIME_LIMIT $@
echo id,target > ${SUBMISSION_DIR}/submission.csv
/home/validate_submission.sh ${SUBMISSION_DIR}/submission.csv
"""


def test_an_image_of_the_references_kind_runs_unchanged(
    engine: Engine, sandbox: DockerSandbox, images: Images, make_job: JobMaker, tmp_path: Path
) -> None:
    env, agent = tmp_path / "env", tmp_path / "aide"
    for folder, text in ((env, REFERENCE), (agent, AGENT)):
        folder.mkdir()
        (folder / "Dockerfile").write_text(text)
    (agent / "start.sh").write_text(START)
    images.build(env, "env", alias="mlebench-test/env:1")
    job = make_job(
        agent=Agent(
            name="aide",
            image="aide",
            build=agent,
            folder=agent,
            command=start_script("start.sh", "agent.steps=5"),
            env={"TIME_LIMIT": "60"},
        )
    )
    outcome = sandbox.run(job)
    assert job.log.read_text().splitlines() == [
        "nonroot /home/nonroot /home/agent",
        "made",
        "cached",
        "conda python main.py --time-limit 60 agent.steps=5",
        '{"result": "Submission is valid."}',
    ]
    assert (outcome.reason, outcome.exit_code, outcome.format_checks) == ("exited", 0, 1)
    assert job.submission.read_text() == "id,target\n"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_helper_is_what_its_source_says(machine: str) -> None:
    source = HELPER / "helper.c"
    built_from = hashlib.sha256(source.read_bytes()).hexdigest()
    program = (HELPER / f"helper-{machine}").read_bytes()
    assert built_from.encode() in program, "run scripts/build-helper"
    assert len(program) < 100_000


PASSWD = "root:x:0:0:root:/root:/bin/sh\nnonroot:x:1001:1002::/home/nonroot:/bin/bash\n"


@pytest.mark.parametrize(
    ("passwd", "configured", "user", "account"),
    [
        ("", "", None, Account(1000, 1000, "agent", "/home/agent")),
        ("", "", (501, 20), Account(501, 20, "agent", "/home/agent")),
        (PASSWD, "", None, Account(1001, 1002, "nonroot", "/home/nonroot")),
        (PASSWD, "root", None, Account(1001, 1002, "nonroot", "/home/nonroot")),
        (PASSWD, "0:0", None, Account(1001, 1002, "nonroot", "/home/nonroot")),
        (PASSWD, "nonroot", None, Account(1001, 1002, "nonroot", "/home/nonroot")),
        (PASSWD, "1001", None, Account(1001, 1002, "nonroot", "/home/nonroot")),
        (PASSWD, "77:8", None, Account(77, 8, "agent77", "/home/agent")),
        (PASSWD, "nonroot", (501, 20), Account(501, 20, "nonroot", "/home/nonroot")),
        (PASSWD, "", (1001, 7), Account(1001, 7, "nonroot", "/home/nonroot")),
        (PASSWD, "", (0, 0), Account(0, 0, "root", "/home/nonroot")),
    ],
)
def test_the_account_is_ours_or_the_images_and_never_a_stranger(
    passwd: str, configured: str, user: tuple[int, int] | None, account: Account
) -> None:
    assert choose_account(passwd, configured, user) == account
