"""What is particular to the competitions on notebooks and on questions."""

from __future__ import annotations

import pandas as pd
import pytest

from pytest_mlebench import InvalidSubmission, load_competition


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("b x", "an unknown or repeated cell 'x' for id n2"),
        ("b b", "an unknown or repeated cell 'b' for id n2"),
        ("a", "1 of 2 cells for id n2"),
        (" ", "0 of 2 cells for id n2"),
    ],
)
def test_a_notebook_needs_each_of_its_cells_once(order: str, said: str) -> None:
    check_against = load_competition("AI4Code").grader.check_against
    sample = pd.DataFrame({"id": ["n1", "n2", "n3"], "cell_order": ["c d e", "a b", "f"]})
    check_against(sample.assign(cell_order=["e d c", "b\na", " f"]), sample)
    with pytest.raises(InvalidSubmission) as caught:
        check_against(sample.assign(cell_order=["e d c", order, "f"]), sample)
    assert str(caught.value).endswith(f"must hold each cell of a notebook once, given: {said}")


def test_answers_to_questions_are_written_as_json_the_way_pandas_does() -> None:
    encoded = load_competition("tensorflow2-question-answering")._code("prepare.py")._encoded
    text = "".join(map(chr, [*range(1, 0x3000), 0xFFFF, 0x1F600])) + "\\u007f \\\x7f </P>"
    table = pd.DataFrame({"a/b": [text], "n": [[{"k": 2**64 - 1, "l": [None, True, "\x7f"]}]]})
    expected = table.to_json(orient="records", lines=True)
    assert encoded(table.to_dict("records")[0]) + "\n" == expected
