"""A bundle that is signed says who vouches for it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from bundles import GradedRun, edit_json, failed, tampered

from pytest_mlebench.audit.bundle import write_bundle
from pytest_mlebench.audit.claims import exit_status
from pytest_mlebench.errors import ConfigError


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a private key of ssh-keygen."""
    path = tmp_path_factory.mktemp("keys") / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me@here", "-f", str(path)]
    subprocess.run(words, check=True)
    return path


def _other_rates(data: Any) -> None:
    data["rates"] = []


def test_a_signature_is_checked(run: GradedRun, key: Path, tmp_path: Path) -> None:
    signed = tmp_path / "s.zip"
    write_bundle(run.path, signed, run.registry, key=key)
    texts = {claim.name: claim.text for claim in run.verify(signed)}
    assert texts["signature"].startswith('Good "pytest-mlebench" signature with ED25519 key')
    signers = tmp_path / "signers"
    signers.write_text(f"me@here {key.with_suffix('.pub').read_text()}")
    assert exit_status(run.verify(signed, signers=signers, signer="me@here")) == 0
    assert "signature" in failed(run.verify(signed, signers=signers, signer="you@there"))
    forged = tampered(signed, tmp_path / "f.zip", edit_json("report.json", _other_rates))
    assert "signature" in failed(run.verify(forged))


def test_a_missing_signature_is_a_failure_where_one_is_expected(
    run: GradedRun, bundle: Path, key: Path
) -> None:
    claims = run.verify(bundle, signers=key.with_suffix(".pub"), signer="me@here")
    assert failed(claims) == {"signature": "the bundle is not signed, 'me@here' expected"}


def test_a_key_that_is_none_is_refused(run: GradedRun, tmp_path: Path) -> None:
    bad = tmp_path / "key"
    bad.write_text("no key")
    for key in (bad, tmp_path / "none"):
        with pytest.raises(ConfigError, match="--sign"):
            write_bundle(run.path, tmp_path / "b.zip", run.registry, key=key)
        assert not (tmp_path / "b.zip").exists()
