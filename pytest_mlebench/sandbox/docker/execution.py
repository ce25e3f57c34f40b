"""An attempt from start to end in a container, each phase with its seconds."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.host.gpu_meter import gpu_samples
from pytest_mlebench.sandbox import Ending, Job, Reason, Service
from pytest_mlebench.sandbox.account import AGENT_DIR
from pytest_mlebench.sandbox.collect import Collected, collect_after
from pytest_mlebench.sandbox.disk import Amount, DiskGuard
from pytest_mlebench.sandbox.docker.container import Container, End
from pytest_mlebench.sandbox.docker.container_walls import walls_of
from pytest_mlebench.sandbox.docker.home import Home, agent_archive
from pytest_mlebench.sandbox.docker.network import OwnNetwork
from pytest_mlebench.sandbox.docker.prepared_image import Prepared
from pytest_mlebench.sandbox.docker.request import PORT, Wiring, container_request, labels
from pytest_mlebench.sandbox.docker.stats import Sampler
from pytest_mlebench.sandbox.docker.watch import Watch
from pytest_mlebench.sandbox.egress import Egress
from pytest_mlebench.sandbox.log import LogWriter
from pytest_mlebench.sandbox.validator import Validator

if TYPE_CHECKING:
    from pytest_mlebench.sandbox.docker.docker_sandbox import DockerSandbox

SOCKET = "validator.sock"
EGRESS_SOCKET = "egress.sock"
EGRESS_PORT = 3128

logger = logging.getLogger(__name__)


def proxy_environment(policy: str) -> dict[str, str]:
    """Return the variables that lead an agent to the proxy, if its network needs one."""
    if not policy.startswith("allow:"):
        return {}
    proxy = f"http://127.0.0.1:{EGRESS_PORT}"
    names = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "localhost,127.0.0.1,::1"}
    return names | {name.lower(): value for name, value in names.items()}


def socket_name(service: Service) -> str:
    """Return the file of a service's socket."""
    return f"{service.name}.sock"


class Execution:
    """One job on its way through a container."""

    def __init__(self, sandbox: DockerSandbox, job: Job, *, grace: float) -> None:
        self._sandbox = sandbox
        self._engine = sandbox.engine
        self._job = job
        self._grace = grace
        self._phases: dict[str, float] = {}
        self._egress: Egress | None = None

    def run(self) -> Ending:
        """Run the job; whatever happens, nothing of it is left on the engine."""
        with ExitStack() as stack:
            with self._phase("prepare"):
                with self._engine.asked("cannot prepare the image"):
                    prepared = self._sandbox.prepare(self._job.agent)
                home = self._sandbox.home(self._job, prepared)
                stack.callback(home.remove)
                validator = stack.enter_context(self._validator())
                validator.serve(home.listen(SOCKET))
                if self._job.network.startswith("allow:"):
                    self._egress = stack.enter_context(self._proxy())
                    self._egress.serve(home.listen(EGRESS_SOCKET))
                for service in self._job.services:
                    service.serve(home.listen(socket_name(service)))
                log = stack.enter_context(self._log())
            container = self._start(stack, prepared, home, log)
            watch, stopped, seconds = self._follow(container, home)
            end = container.end()
            reason = watch.reason(stopped, end.exit_code, oom=end.oom_killed)
            self._fetch(home, container)
            log.close()
            with self._phase("collect"):
                collected = collect_after(reason, self._job, home.path)
        facts = self._details(prepared, watch, end, log, collected)
        return Ending(
            reason=reason,
            exit_code=end.exit_code,
            seconds=seconds,
            format_checks=validator.calls,
            peak_memory_bytes=watch.sampler.peak_memory,
            cpu_seconds=watch.sampler.cpu_seconds,
            image=prepared.image.digest,
            gpus=self._job.gpus,
            problem=collected.problem,
            walls=walls_of(self._engine.facts, self._job.agent, self._job.network),
            details=facts,
        )

    def _validator(self) -> Validator:
        job = self._job
        return Validator(job.check, folder=job.folder, max_bytes=job.limits.submission_bytes)

    def _proxy(self) -> Egress:
        job = self._job
        return Egress(job.network, job.folder, secrets=job.agent.secrets())

    def _log(self) -> LogWriter:
        job = self._job
        return LogWriter(job.log, max_bytes=job.limits.log_bytes, secrets=job.agent.secrets())

    def _start(self, stack: ExitStack, prepared: Prepared, home: Home, log: LogWriter) -> Container:
        with self._phase("create"):
            container = self._create(prepared, home, self._network(stack))
            stack.callback(self._remove, container)
            home.fill(container)
            self._copy_agent(container, prepared)
        with self._phase("start"):
            container.start(log)
            home.connect(container)
        return container

    def _network(self, stack: ExitStack) -> str:
        """Return the engine's name for the network: none, unless the agent may reach everything."""
        if self._job.network != "open":
            return "none"
        network = OwnNetwork(self._engine, labels(self._job))
        stack.callback(network.remove)
        return network.id

    def _create(self, prepared: Prepared, home: Home, network: str) -> Container:
        services = self._job.services
        environment = proxy_environment(self._job.network)
        for service in services:
            environment |= service.environment(f"http://127.0.0.1:{service.port}")
        wiring = Wiring(
            mounts=home.mounts(),
            ports={PORT: SOCKET}
            | ({EGRESS_PORT: EGRESS_SOCKET} if self._egress else {})
            | {service.port: socket_name(service) for service in services},
            network=network,
            environment=environment,
        )
        request = container_request(self._engine, self._job, prepared, wiring)
        return Container(self._engine, request)

    def _copy_agent(self, container: Container, prepared: Prepared) -> None:
        agent = self._job.agent
        if agent.folder is None or agent.build is not None:
            return  # a built image brings its own files
        job, hidden = self._job, (*self._job.hidden, *self._sandbox.hidden)
        with agent_archive(
            agent.folder, prepared.account, hidden=hidden, scratch=job.folder
        ) as archive:
            container.copy_in(AGENT_DIR, archive)

    def _follow(self, container: Container, home: Home) -> tuple[Watch, Reason, float]:
        limits = self._job.limits
        started = time.monotonic()
        watch = Watch(
            container=container,
            sampler=Sampler(self._job.stats),
            disk=self._disk_guard(container, home),
            deadline=started + limits.time_seconds,
            grace=self._grace,
        )
        with self._phase("run"), gpu_samples(self._job.gpus, self._job.stats):
            try:
                reason = watch.until_end()
            except SandboxError:
                self._rescue(home)
                raise
        return watch, reason, time.monotonic() - started

    def _disk_guard(self, container: Container, home: Home) -> DiskGuard:
        limits, facts = self._job.limits, self._engine.facts
        return DiskGuard(
            home.path,
            limit=Amount(limits.disk_bytes, limits.files),
            layer=container.layer_bytes,
            processes=container.processes if facts.local else tuple,
            engine_root=Path(facts.root) if facts.local else None,
        )

    def _fetch(self, home: Home, container: Container) -> None:
        with self._phase("fetch"):
            home.fetch(container)

    def _rescue(self, home: Home) -> None:
        """Keep what there is of an attempt that was lost: evidence, never graded."""
        try:
            collect_after("exited", self._job, home.path)
        except SandboxError as problem:
            logger.warning("nothing could be kept of a lost attempt: %s", problem)

    def _remove(self, container: Container) -> None:
        with self._phase("remove"):
            try:
                container.remove()
            except SandboxError as problem:
                logger.warning("%s; it is tried again later", problem)
                self._sandbox.left.append(container)

    def _details(
        self, prepared: Prepared, watch: Watch, end: End, log: LogWriter, collected: Collected
    ) -> dict[str, Any]:
        return {
            "engine": self._engine.facts.describe(),
            "image": prepared.image.name,
            "user": f"{prepared.account.uid}:{prepared.account.gid}",
            "oom": end.oom_killed or watch.oom,
            "throttling": watch.sampler.throttling,
            "peak_pids": watch.sampler.peak_pids,
            "disk_bytes": watch.disk.peak,
            "log_bytes": log.bytes,
            "log_dropped": log.dropped,
            "notes": collected.notes,
            **({"egress": self._egress.summary()} if self._egress else {}),
            "phases": {name: round(seconds, 3) for name, seconds in self._phases.items()},
        }

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._phases[name] = time.monotonic() - started
