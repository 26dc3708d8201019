"""`fleetgauge init`: questions to a person, or options, make a fleet.yaml."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.fleet.model import Cluster, Fleet
from fleetgauge_core.runtime.cli import InputError, console, print_json
from fleetgauge_probes.connection.draft import (
    SCHEMA_FILE,
    Draft,
    meaning,
    refusal,
    render,
)

_USUAL_BOOTSTRAP = "localhost:9092"
_LAKE: str = Fleet.model_fields["lake"].default


@dataclass(frozen=True, slots=True)
class _Question:
    """What an option says, or a person is asked.

    ``place`` puts an answer into a document where the file will have it; ``usual`` is offered to a person,
    ``default`` is taken where there is none.
    """

    option: str
    about: str
    place: Callable[[str], dict[str, Any]]
    usual: str | None = None
    default: str | None = None


@click.command(
    epilog="""\b
Example:
  fleetgauge init
  fleetgauge init --cluster orders --bootstrap kafka-1:9092,kafka-2:9092"""
)
@click.option(
    "--output", type=click.Path(path_type=Path), default="fleet.yaml", show_default=True, help="The new file."
)
@click.option(
    "--cluster", "ids", metavar="ID", multiple=True, help="A cluster to measure; may be given several times."
)
@click.option(
    "--bootstrap",
    "bootstraps",
    metavar="HOST:PORT",
    multiple=True,
    help="Its brokers; one for each --cluster.",
)
@click.option("--telemetry", metavar="HOST:PORT", help="Where records go.  [default: the first --bootstrap]")
@click.option("--lake", metavar="PATH", help="Where tables go.  [default: ./lake]")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--json", "as_json", is_flag=True, help="Say on stdout, as JSON, what was written and what is next."
)
def init(
    output: Path,
    ids: tuple[str, ...],
    bootstraps: tuple[str, ...],
    telemetry: str | None,
    lake: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a commented fleet file. In a terminal it asks for what the options do not say."""
    if output.exists() and not force:
        raise InputError(f"{output} is there already: replace it with --force, or name another with --output")
    draft = _draft(ids, bootstraps, telemetry, lake)
    text = render(draft, output.name, (output.parent / SCHEMA_FILE).exists())
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{output}: {error.strerror}; name another with --output") from error
    name = shlex.quote(str(output))
    following = [f"fleetgauge validate {name} --connect", f"fleetgauge probe --config {name}"]
    console.print(f"wrote {output}; next:", markup=False, soft_wrap=True)
    for command in following:
        console.print(f"  {command}", markup=False, soft_wrap=True)
    if as_json:
        print_json({"config": str(output), "next": following})


def _draft(ids: Sequence[str], bootstraps: Sequence[str], telemetry: str | None, lake: str | None) -> Draft:
    clusters = _clusters(ids, bootstraps)
    first = clusters[0]["bootstrap"]
    known: dict[str, Any] = {"clusters": clusters}
    return Draft(
        clusters,
        _answer(
            telemetry,
            _Question(
                "--telemetry",
                meaning(Fleet, "telemetry"),
                lambda value: known | {"telemetry": {"bootstrap": value}},
                usual=first,
                default=first,
            ),
        ),
        _answer(
            lake,
            _Question(
                "--lake",
                meaning(Fleet, "lake"),
                lambda value: known | {"lake": value},
                usual=_LAKE,
                default=_LAKE,
            ),
        ),
    )


def _clusters(ids: Sequence[str], bootstraps: Sequence[str]) -> list[dict[str, str]]:
    """Those of the options; without any, as many as a person wants."""
    if len(bootstraps) > len(ids):
        raise InputError("there are more --bootstrap than --cluster: give one of each for every cluster")
    clusters = [_cluster([], _nth(ids, 0), _nth(bootstraps, 0))]
    while len(clusters) < len(ids) or (not ids and click.confirm("Another cluster?", err=True)):
        clusters.append(_cluster(clusters, _nth(ids, len(clusters)), _nth(bootstraps, len(clusters))))
    return clusters


def _cluster(others: Sequence[dict[str, str]], id_: str | None, bootstrap: str | None) -> dict[str, str]:
    """One whose id is not among the others'."""

    def place(**known: str) -> dict[str, Any]:
        return {"clusters": [*others, {"id": "any", "bootstrap": _USUAL_BOOTSTRAP} | known]}

    id_ = _answer(id_, _Question("--cluster", meaning(Cluster, "id"), lambda value: place(id=value)))
    question = _Question(
        "--bootstrap",
        meaning(Cluster, "bootstrap"),
        lambda value: place(id=id_, bootstrap=value),
        usual=_USUAL_BOOTSTRAP,
    )
    return {"id": id_, "bootstrap": _answer(bootstrap, question)}


def _nth(values: Sequence[str], number: int) -> str | None:
    return values[number] if number < len(values) else None


def _answer(given: str | None, question: _Question) -> str:
    """The option's value, else a person's, else the default; each as the model allows it."""
    if given is not None:
        if fault := refusal(question.place(given)):
            raise InputError(f"{question.option} {given!r}: {fault}")
        return given
    if sys.stdin.isatty():
        return _ask(question)
    if question.default is None:
        raise InputError(f"{question.option} is missing, and there is no terminal to ask in: give it")
    return question.default


def _ask(question: _Question) -> str:
    """Until the answer is one that the model takes."""

    def taken(value: str) -> str:
        if fault := refusal(question.place(value)):
            raise click.UsageError(fault)
        return value

    console.print(question.about, style="dim", markup=False)
    name = question.option.removeprefix("--")
    answer: str = click.prompt(name, default=question.usual, value_proc=taken, err=True)
    return answer
