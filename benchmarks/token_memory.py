"""What lists of tokens cost in memory: a file whose size is in one cell, checked and scored.

    python benchmarks/token_memory.py                  25 MB, all competitions with such lists
    python benchmarks/token_memory.py --size 5 ID …    so many megabytes, single competitions

The tokens are as short as can be, which makes the most of them. Check and score run in processes of
their own; what they take is what they grow by. The exit status is 1 if that is more than 6 times
the file; of a small one it is more, because some is taken for any file.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from peak_memory import peak_growth
from submission_laws import Bench

from pytest_mlebench import InvalidSubmission

MAX_RATIO = 6.0
MEGABYTES = 25
LISTS: dict[str, tuple[str, tuple[str, ...]]] = {  # the column, and what it is filled with
    "3d-object-detection-for-autonomous-vehicles": (
        "PredictionString",
        ("1 1 1 1 1 1 1 1 c", "1 1 1 1 1 1 1 1 car", "1 1 1 1 1 1 1 0.1 car"),
    ),
    "AI4Code": ("cell_order", ("a",)),
    "google-research-identify-contrails-reduce-global-warming": ("encoded_pixels", ("1 1",)),
    "h-and-m-personalized-fashion-recommendations": ("prediction", ("1",)),
    "hotel-id-2021-fgvc8": ("hotel_id", ("1",)),
    "hubmap-kidney-segmentation": ("predicted", ("1 1",)),
    "kuzushiji-recognition": ("labels", ("c 1 1",)),
    "multi-modal-gesture-recognition": ("Sequence", ("1",)),
    "siim-covid19-detection": (
        "PredictionString",
        ("c 1 0 0 1 1", "none 1 0 0 1 1", "opacity 1 0 0 1 1", "none 0.1 0 0 1 1"),
    ),
    "tgs-salt-identification-challenge": ("rle_mask", ("1 1",)),
    "uw-madison-gi-tract-image-segmentation": ("predicted", ("1 1",)),
    "vesuvius-challenge-ink-detection": ("Predicted", ("1 1",)),
    "vinbigdata-chest-xray-abnormalities-detection": ("PredictionString", ("1 1 0 0 1 1",)),
    "whale-categorization-playground": ("Id", ("w",)),
}


def main() -> int:
    """Print a table and tell whether the bound is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--size", type=float, default=MEGABYTES, metavar="MEGABYTES")
    args = parser.parse_args()
    worst = 0.0
    for name in args.ids or LISTS:
        column, units = LISTS[name]
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench.of(name, Path(folder))
            bench.write(0)
            bench.problem()  # imports what the grader needs
            for unit in units:
                ratios = measured(bench, column, unit, int(args.size * 10**6))
                worst = max(worst, *ratios)
                print(
                    f"{name:58} {unit:24} check {ratios[0]:4.1f}  score {ratios[1]:4.1f}",
                    flush=True,
                )
    print(f"at most {worst:.1f} times the file")
    return int(worst > MAX_RATIO)


def measured(bench: Bench, column: str, unit: str, size: int) -> tuple[float, float]:
    """Return what check and score take for a file with so many bytes of tokens in one cell."""
    bench.file.write_text(filled(bench.honest[0], column, unit, size), encoding="utf-8")

    def ratio(action: Callable[[], object]) -> float:
        def judge() -> None:
            with suppress(InvalidSubmission):
                action()

        return peak_growth(judge) / bench.file.stat().st_size

    return (
        ratio(lambda: bench.competition.check(bench.file, bench.public)),
        ratio(lambda: bench.competition.score(bench.file, bench.private)),
    )


def filled(text: str, column: str, unit: str, size: int) -> str:
    """Return a submission whose first row has so many bytes of tokens in a column."""
    rows = list(csv.DictReader(io.StringIO(text)))
    rows[0][column] = " ".join([unit] * (size // (len(unit) + 1)))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(main())
