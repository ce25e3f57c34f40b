"""Hosts of this machine with a container engine each, which runs on the host itself."""

from __future__ import annotations

import json
import subprocess

from host_machines import SCRIPT, HostMachines


class HostEngine:
    """The engine of a host, which runs on the host itself."""

    def __init__(self, hosts: HostMachines, name: str) -> None:
        self._ssh = ["ssh", "-F", f"{hosts.folder}/ssh_config", name]
        self._socket = hosts.disk(name) / "tmp/e/docker.sock"
        self("start")
        self.run("ln -sf /tmp/e/docker.sock /run/docker.sock")  # where engines usually are

    def __call__(self, verb: str) -> None:
        """Start, stop or restart it."""
        self.run(f"MLEBENCH_ENGINE_DIR=/tmp/e {SCRIPT.parent / 'engine'} {verb}")

    def run(self, command: str) -> None:
        """Run a command on the host."""
        subprocess.run([*self._ssh, command], check=True, stdout=subprocess.DEVNULL)

    def api(self, path: str) -> str:
        """Return what the engine answers to a question, also while the host's cable is cut."""
        command = ["curl", "-fsS", "--unix-socket", self._socket, f"http://engine/{path}"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def import_file(self, text: str, repository: str, tag: str) -> None:
        """Make an image of one file with a text (POST /images/create of the engine's API)."""
        url = f"http://engine/images/create?fromSrc=-&repo={repository}&tag={tag}"
        post = "curl -fsS --unix-socket /tmp/e/docker.sock -H Content-Type:application/x-tar"
        made = f"cd /tmp && echo {text} >text && tar c text && rm text"
        self.run(f"({made}) | {post} --data-binary @- '{url}'")

    def containers(self) -> list[str]:
        """Return the ids of all containers, running or not."""
        return [each["Id"] for each in json.loads(self.api("containers/json?all=1"))]

    def items(self) -> list[str]:
        """Return the competition and seed of each agent that runs; nothing while it is away."""
        try:
            running = json.loads(self.api("containers/json"))
            facts = [json.loads(self.api(f"containers/{each['Id']}/json")) for each in running]
        except subprocess.CalledProcessError:  # it is being restarted, or a container has ended
            return []
        found = (dict(pair.partition("=")[::2] for pair in each["Config"]["Env"]) for each in facts)
        names = ("COMPETITION_ID", "MLE_SEED")
        return [" ".join(env[name] for name in names) for env in found if set(names) <= set(env)]

    def has_image(self, name: str) -> bool:
        """Tell whether an image is there, by a name or id."""
        images = json.loads(self.api("images/json?all=1"))
        return any(name in (each["Id"], *(each["RepoTags"] or ())) for each in images)


class DockedMachines(HostMachines):
    """Hosts with an engine each, whose containers a campaign looks at, too."""

    booted = (*HostMachines.booted, "dockerd", "containerd")
    own = ("e",)

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.engines = {name: HostEngine(self, name) for name in self.names}
        self._of_earlier_boots: set[str] = set()

    def do(self, what: str, name: str, *more: str) -> None:
        """Let something happen to a host; one that is booted starts its engine, too."""
        super().do(what, name, *more)
        if what == "back":
            self.engines[name]("start")
            # on a real host these are known by its last boot, and removed; namespaces share a boot
            self._of_earlier_boots.update(self.engines[name].containers())

    def restart_engine(self, name: str) -> bool:
        """Restart the engine of a host; its containers end."""
        self.engines[name]("restart")
        return True

    def leftovers(self) -> list[str]:
        """Return what a session has left, containers among it."""
        # what is kept for images belongs to no run
        found = [each for each in super().leftovers() if "/runs/.docker" not in each]
        for name, engine in self.engines.items():
            left = set(engine.containers()) - self._of_earlier_boots
            found += [f"{name}: container {each}" for each in sorted(left)]
        return found

    def down(self) -> None:
        """End the engines, and then the hosts."""
        for name, engine in self.engines.items():
            if self.pids(name):
                engine("stop")
        super().down()
