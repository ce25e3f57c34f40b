"""How familiar a model is with competitions: the mean probability of the tokens of their texts.

A model that has seen a text gives its tokens a higher probability. Texts differ for other reasons,
too, so what tells something is the rank correlation with the results of a run.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from pytest_mlebench._files import write_text
from pytest_mlebench.audit.model_endpoint import Endpoint
from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import ConfigError, InfrastructureError
from pytest_mlebench.reports.formats.json_file import load_json
from pytest_mlebench.reports.results import Result

CHUNK_CHARACTERS = 6_000  # about 1500 tokens: fits into any model, and long enough for a context
DISCUSSIONS = "discussions"  # a folder of texts beside a competition's data in the store


@dataclass(frozen=True)
class Familiarity:
    """What a model makes of the texts of one competition."""

    competition: str
    mean_probability: float
    tokens: int
    digest: str  # of the texts, so that others are not taken for them

    def to_dict(self) -> dict[str, Any]:
        """Return it in JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class Correlation:
    """A rank correlation (Spearman) of familiarity with results, over competitions."""

    rho: float
    p: float
    competitions: int

    @property
    def sentence(self) -> str:
        """Return it for people."""
        return (
            f"rank correlation with the percentiles of the run: {self.rho:+.3f} "
            f"(p = {self.p:.3f}, {self.competitions} competitions)"
        )


def texts_of(competition: Competition, kept: Path, kind: str) -> list[str]:
    """Return the texts about a competition: its description, and discussions that the store has."""
    ours = competition.obfuscated_description if kind == "obfuscated" else competition.description
    more = sorted(path for path in (kept / DISCUSSIONS).glob("*") if path.suffix in {".md", ".txt"})
    return [ours, *(path.read_text(encoding="utf-8", errors="replace") for path in more)]


def measure(endpoint: Endpoint, competition: str, texts: Sequence[str]) -> Familiarity:
    """Ask for the probability of every token of some texts."""
    probabilities = [
        math.exp(value)
        for text in texts
        for chunk in _chunks(text)
        for value in _log_probabilities(endpoint, chunk)
    ]
    if not probabilities:
        raise InfrastructureError(f"{endpoint.url} gave no probability of any token: {competition}")
    mean = math.fsum(probabilities) / len(probabilities)
    return Familiarity(competition, mean, len(probabilities), _digest(texts))


def measure_all(
    endpoint: Endpoint,
    texts: Mapping[str, Sequence[str]],
    kept: Path | None,
    progress: Callable[[str], object],
) -> list[Familiarity]:
    """Measure every competition; what a file keeps of an earlier session is not asked for again."""
    known = _known(kept, endpoint)
    found = []
    for number, (name, each) in enumerate(texts.items(), start=1):
        before = known.get(name)
        if before is None or before.digest != _digest(each):
            before = measure(endpoint, name, each)
            progress(f"{number} of {len(texts)}: {name} {before.mean_probability:.4f}")
        found.append(before)
        known[name] = before
        if kept is not None:
            data = {
                "model": endpoint.model,
                "familiarity": [one.to_dict() for one in known.values()],
            }
            write_text(kept, json.dumps(data, indent=1) + "\n")
    return found


def correlation(found: Iterable[Familiarity], results: Sequence[Result]) -> Correlation | None:
    """Return the rank correlation with the mean percentiles of a run's competitions."""
    places = mean_percentiles(results)
    pairs = [
        (one.mean_probability, places[one.competition])
        for one in found
        if one.competition in places
    ]
    if len(pairs) < 3 or any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1)):
        return None  # nothing varies
    from scipy.stats import spearmanr  # late on purpose: heavy

    rho, p = spearmanr(*zip(*pairs, strict=True))
    return Correlation(float(rho), float(p), len(pairs))


def mean_percentiles(results: Sequence[Result]) -> dict[str, float]:
    """Return the mean percentile of each competition; an attempt without a score is last."""
    places: dict[str, list[float]] = {}
    for result in results:
        value = 0.0 if result.grade is None else result.grade.percentile or 0.0
        places.setdefault(result.competition, []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in places.items()}


def plot(found: Sequence[Familiarity], places: Mapping[str, float], model: str) -> str:
    """Return a picture: a dot for each competition, familiarity across, percentile up."""
    shown = [one for one in found if one.competition in places]
    low = min((one.mean_probability for one in shown), default=0.0)
    width = max((one.mean_probability for one in shown), default=1.0) - low or 1.0

    def dot(one: Familiarity) -> str:
        x = 60 + 500 * (one.mean_probability - low) / width
        y = 330 - 3 * places[one.competition]
        return (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#2f81f7">'
            f"<title>{escape(one.competition)}</title></circle>"
        )

    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 380" width="600" '
            'height="380" role="img" font-family="sans-serif" font-size="12">',
            f"<title>familiarity of {escape(model)} and percentile</title>",
            '<rect width="600" height="380" fill="#ffffff"/>',
            '<path d="M60 20 V330 H580" fill="none" stroke="#8c959f"/>',
            '<text x="320" y="365" text-anchor="middle">mean token probability</text>',
            '<text x="20" y="175" transform="rotate(-90 20 175)" text-anchor="middle">'
            "mean percentile</text>",
            f'<text x="60" y="347">{low:.3f}</text>',
            f'<text x="560" y="347" text-anchor="end">{low + width:.3f}</text>',
            *map(dot, shown),
            "</svg>\n",
        ]
    )


def _chunks(text: str) -> Iterator[str]:
    for start in range(0, len(text), CHUNK_CHARACTERS):
        yield text[start : start + CHUNK_CHARACTERS]


def _log_probabilities(endpoint: Endpoint, text: str) -> list[float]:
    """Return the log-probabilities of a text's tokens but for the first, which has no context."""
    payload = {"prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}
    answer = endpoint.post("/completions", payload)
    try:
        part = answer["choices"][0]["logprobs"]
        values, offsets = part["token_logprobs"], part["text_offset"]
        pairs = list(zip(values, offsets, strict=True))
        # some servers refuse to generate nothing: what lies behind the text is theirs
        return [float(value) for value, at in pairs if value is not None and at < len(text)]
    except (KeyError, IndexError, TypeError, ValueError):
        raise ConfigError(
            f"{endpoint.url} gives no log-probabilities of a prompt: it must support /completions "
            "with echo and logprobs, as vLLM and llama.cpp do"
        ) from None


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _known(kept: Path | None, endpoint: Endpoint) -> dict[str, Familiarity]:
    if kept is None or not kept.is_file():
        return {}
    data = load_json(kept)
    try:
        if data["model"] != endpoint.model:
            raise ConfigError(f"{kept} is of the model {data['model']!r}: choose another file")
        return {each["competition"]: Familiarity(**each) for each in data["familiarity"]}
    except (KeyError, TypeError):
        raise ConfigError(f"{kept}: not a file that familiarity has written") from None
