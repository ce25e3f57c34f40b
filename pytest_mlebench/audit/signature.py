"""Signatures of files, made and checked by OpenSSH's ``ssh-keygen -Y`` (ssh-keygen(1))."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from pytest_mlebench.errors import ConfigError

NAMESPACE = "pytest-mlebench"  # a signature for another purpose is none for this one
TIMEOUT_SECONDS = 60


def sign(file: Path, key: Path) -> Path:
    """Sign a file with a private key, or one whose other half an agent holds; return the .sig."""
    if not key.is_file():
        raise ConfigError(f"--sign must be a key of ssh-keygen, there is no {key}")
    done = _run("sign", "-f", str(key), "-n", NAMESPACE, str(file))
    signature = file.with_name(f"{file.name}.sig")
    if done.returncode != 0 or not signature.is_file():
        raise ConfigError(f"--sign={key}: cannot sign: {_words(done)}")
    return signature


def check(file: Path, signature: Path, signers: Path | None = None, who: str = "") -> str:
    """Return who has signed a file; raise ConfigError if the signature does not hold.

    Without a file of allowed signers the key is named, and who has it must be known from elsewhere.
    """
    words = ["-n", NAMESPACE, "-s", str(signature)]
    if signers is None:
        done = _run("check-novalidate", *words, given=file)
    else:
        done = _run("verify", "-f", str(signers), "-I", who, *words, given=file)
    if done.returncode != 0:
        raise ConfigError(_words(done))
    return _words(done)


def _run(action: str, *words: str, given: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise ConfigError("signatures need ssh-keygen: install OpenSSH's client")
    try:
        return subprocess.run(
            [program, "-Y", action, *words],
            input=b"" if given is None else given.read_bytes(),
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            # nobody is there to type a passphrase: a locked key belongs to ssh-agent
            env={**os.environ, "SSH_ASKPASS_REQUIRE": "never", "DISPLAY": ""},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"ssh-keygen did not answer in {TIMEOUT_SECONDS} s") from None


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    text = (done.stdout if done.returncode == 0 else done.stderr or done.stdout).decode(
        errors="replace"
    )
    return " ".join(text.split()) or f"ssh-keygen ended with {done.returncode}"
