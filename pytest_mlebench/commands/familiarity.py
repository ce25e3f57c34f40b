"""Measure how familiar a model is with competitions, and whether its results go with that.

The endpoint must give the log-probabilities of a prompt (/completions with echo, as vLLM and
llama.cpp do). The figure is the mean probability of the tokens of a competition's description and
of the texts in the store's folder ID/discussions. With --run it is correlated with the percentiles
of a run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pytest_mlebench._files import write_text
from pytest_mlebench.audit.familiarity import (
    correlation,
    mean_percentiles,
    measure_all,
    plot,
    texts_of,
)
from pytest_mlebench.audit.model_endpoint import KEY_VARIABLE, Endpoint
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    add_split_option,
    registry_of,
    say,
    selected,
    store_folder,
)
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--url", required=True, help="the endpoint, up to /v1")
    parser.add_argument("--model", required=True, help="the model's name there")
    parser.add_argument(
        "--key-variable",
        default=KEY_VARIABLE,
        metavar="NAME",
        help=f"the environment variable that holds the key (default: {KEY_VARIABLE})",
    )
    parser.add_argument(
        "--description", choices=("ours", "obfuscated"), default="ours", help="which one to measure"
    )
    parser.add_argument("--run", type=Path, metavar="RUN", help="a run or report to correlate with")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.json", help="keep the figures; continue from it"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw them (needs --run)")
    add_split_option(parser, "only these splits (default: those of RUN, else all)")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def run(args: argparse.Namespace) -> int:
    """Measure."""
    if args.plot is not None and args.run is None:
        raise ConfigError("--plot needs --run: there is nothing to draw familiarity against")
    registry, store = registry_of(args), store_folder(args)
    report = None if args.run is None else Report.load([args.run], registry)
    chosen = selected(args, registry)
    if report is not None and not args.split:
        inside = {result.competition for result in report.results}
        chosen = tuple(each for each in chosen if each.id in inside)
    texts = {each.id: texts_of(each, store / each.id, args.description) for each in chosen}
    endpoint = Endpoint.of(args.url, args.model, args.key_variable)
    found = measure_all(endpoint, texts, args.output, _note)
    places = {} if report is None else mean_percentiles(report.results)
    say(f"{'competition':<52}{'probability':>12}{'percentile':>12}")
    for one in sorted(found, key=lambda one: -one.mean_probability):
        place = f"{places[one.competition]:.1f}" if one.competition in places else "-"
        say(f"{one.competition[:51]:<52}{one.mean_probability:>12.4f}{place:>12}")
    if report is not None:
        result = correlation(found, report.results)
        say(result.sentence if result else "too little varies for a rank correlation")
    if args.plot is not None:
        write_text(args.plot, plot(found, places, args.model))
        say(f"wrote {args.plot}")
    return 0
