"""Obfuscated descriptions give nothing away and leave nothing out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_mlebench import Competition, list_competitions, load_competition
from pytest_mlebench.competition import read_competition
from pytest_mlebench.errors import CompetitionFileError
from pytest_mlebench.grading.align import Rules

PARTS = ["What to predict", "Files", "Metric", "Submission"]
EXACT = ["Run-length encoding", "Metric", "Submission"]  # where every number is needed
HISTORY = ["What differs from the original competition", "The leaderboard"]
RENAMED = {"Data": "Files"}

# what plain descriptions quote only to tell how the original was different
UNNEEDED = {
    "scripts/demo_leaderboards.py",
    "Train_7",
    "bpps",
    "testing_list.txt",
    "validation_list.txt",
}
GIVEAWAYS = ["www", "competition", "contest", "original", "leaderboard", "medal", "MLE-bench"]

BLOCK = re.compile(r"(?<=\n\n)(?: {4}.*\n)+")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?")


@pytest.fixture(params=list_competitions())
def competition(request: pytest.FixtureRequest) -> Competition:
    return load_competition(request.param)


def test_nothing_gives_the_competition_away(competition: Competition) -> None:
    text = competition.obfuscated_description
    heading = competition.description.splitlines()[0].removeprefix("# ")
    names = [competition.id, competition.title, heading, *competition.forbidden_words]
    assert found(text, [*names, *GIVEAWAYS]) == []
    # the sample submission of one competition is called after the site
    without_sample = text.replace(competition.sample, "").lower()
    assert "kaggle" not in without_sample
    assert "http" not in without_sample


def test_the_plain_description_would_give_it_away(competition: Competition) -> None:
    words = competition.forbidden_words
    names = "\n".join([competition.id, competition.title, competition.description])
    assert len({word.lower() for word in words}) == len(words) >= 3
    assert found(names, words)


def test_every_name_of_the_plain_description_is_there_as_often(competition: Competition) -> None:
    given = sections(competition.obfuscated_description)
    for name, text in sections(competition.description).items():
        if name in HISTORY:
            unknown = set(code(text)) - set(code(competition.obfuscated_description))
            assert unknown <= UNNEEDED
        else:
            assert code(text) - code(given.get(RENAMED.get(name, name), "")) == Counter(), name


def test_every_column_of_a_submission_is_there(competition: Competition) -> None:
    text = competition.obfuscated_description
    columns = {*competition.rules.id, *competition.rules.targets, competition.sample}
    assert columns - set(code(text)) - set(header(text).split(",")) == set()
    assert header(text) == header(competition.description)


def test_a_column_that_is_left_out_is_noticed() -> None:
    competition = load_competition("ventilator-pressure-prediction")
    text = sections(competition.obfuscated_description)["Files"]
    for column in ["id", "breath_id", "R", "C", "time_step", "u_in", "u_out", "pressure"]:
        without = text.replace(f"`{column}`", "it", 1)
        assert code(sections(competition.description)["Files"]) - code(without) == {column: 1}


def test_every_number_that_the_grader_knows_is_there(competition: Competition) -> None:
    plain = sections(competition.description)
    given = sections(competition.obfuscated_description)
    for name in EXACT:
        sentences = re.split(r"(?<=[.:])\s", plain.get(name, ""))
        needed = " ".join(sentence for sentence in sentences if "original" not in sentence)
        assert set(NUMBER.findall(needed)) - set(NUMBER.findall(given.get(name, ""))) == set()


def test_the_metric_has_its_direction(competition: Competition) -> None:
    metric = one_line(sections(competition.obfuscated_description)["Metric"]).lower()
    assert ("lower is better" in metric) == competition.lower_is_better
    assert ("higher is better" in metric) != competition.lower_is_better


def test_the_rules_of_a_submission_are_there(competition: Competition) -> None:
    submission = one_line(sections(competition.obfuscated_description)["Submission"])
    for phrase in phrases(competition.rules):
        assert re.search(phrase, submission), phrase


def test_the_text_has_the_parts_that_one_needs_to_compete(competition: Competition) -> None:
    text = competition.obfuscated_description
    assert text.startswith("# ")
    assert [name for name in sections(text) if name in PARTS] == PARTS
    assert not set(HISTORY) & set(sections(text))


def test_a_competition_without_the_text_names_the_file_and_the_way_out(tmp_path: Path) -> None:
    facts = (load_competition("demo-digits").folder / "competition.toml").read_text()
    without_words = re.sub(r"forbidden_words = \[[^]]*\]\n", "", facts)
    (tmp_path / "competition.toml").write_text(without_words)
    competition = read_competition(tmp_path)
    assert competition.forbidden_words == ()
    with pytest.raises(CompetitionFileError) as caught:
        _ = competition.obfuscated_description
    path = tmp_path / "description_obfuscated.md"
    assert str(caught.value) == f"{path}: no such file, use --mle-description=ours"


def found(text: str, words: Sequence[str]) -> list[str]:
    """Return the words and phrases that occur in *text*, in whatever case and over line ends."""
    patterns = {word: r"\s+".join(map(re.escape, word.split())) for word in words}
    return [
        word
        for word, pattern in patterns.items()
        if re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE)
    ]


def sections(text: str) -> dict[str, str]:
    """Return the text below each heading; what comes before the first has no name."""
    first, *others = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {"": first, **dict(zip(others[::2], others[1::2], strict=True))}


def code(text: str) -> Counter[str]:
    """Count what is in backticks: files, columns, values and forms."""
    return Counter(map(one_line, re.findall(r"`([^`]+)`", BLOCK.sub("", text))))


def header(text: str) -> str:
    """Return the first line of the example of a submission."""
    example = BLOCK.search(sections(text)["Submission"])
    assert example
    return example[0].splitlines()[0].strip()


def one_line(text: str) -> str:
    """Return a text without its line ends."""
    return " ".join(text.split())


def phrases(rules: Rules) -> list[str]:
    """Return how a text has to mention the rules that a submission must keep."""
    kinds = set(rules.kinds.values())
    needed = [r"\bonce\b|\brepeated\b"]
    if rules.extra_columns != "ignore":
        needed.append(r"no further columns|exactly these \d+ columns")
    if rules.row_sum is not None:
        needed.append(r"sum to (one|1)\b")
    if "probability" in kinds:
        needed.append(r"from 0 to 1\b|between 0 and 1\b")
    if kinds & {"integer", "truncated", "first"}:
        needed.append(r"\bwhole numbers?\b")
    if rules.missing in ("empty", "nan"):
        needed.append(r"\bempty\b")
    if rules.varied:
        needed.append(r"same value|all scores are equal")
    return needed
