"""`fleetgauge recover`."""

from collections.abc import Iterator
from pathlib import Path

import click

from fleetgauge_operations.recovery.checkpoint import Checkpoint
from fleetgauge_operations.recovery.mapping import Answer, Constraint, Rule, Why
from fleetgauge_operations.recovery.what_if import Case, CaseError, document, parsed, printable
from fleetgauge_probes.cli import InputError, console, print_json

_WORDS = {
    Why.NOT_IN_ACTIVE: "nothing is known of it in active at or before the position",
    Why.NOT_IN_PASSIVE: "nothing is known of it in passive at or before what is consumed",
    Why.MADE_ANEW: "its topic was made anew, and the two sides tell of different ones",
}


@click.group(epilog="Example: fleetgauge recover map --from-file case.json")
def recover() -> None:
    """Go on in another region: where a group's position lies there, and what it reads again."""


@recover.command("map", epilog="Example: fleetgauge recover map --from-file case.json --rule uber --json")
@click.option(
    "--from-file",
    "path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    help="The case, as JSON.",
)
@click.option(
    "--rule",
    type=click.Choice([one.value for one in Rule]),
    help="uber: as published. plus_one: behind what is consumed. watermark: idle sources hold nothing back. "
    "Without it, the latest answer, by the simplest rule that gives it.",
)
@click.option("--json", "as_json", is_flag=True, help="Answer on stdout as JSON.")
def map_position(path: Path, rule: str | None, as_json: bool) -> None:
    """Map a group's position in one region's merged topic to another's, without any cluster.

    \b
    {"position": 6,
     "active": {"A": [[1, 3]], "B": [[3, 5]]},
     "passive": {"A": [[1, 1]], "B": [[3, 7]]},
     "passive_log": [0, 8],
     "watermarks": {"A": [[4, 8]]}}

    The case is of one partition. position: the offset that the group reads next in active. active, passive:
    by source, checkpoints [source offset, offset there] in the order in which they were told; a source
    without any is unbounded, and all that passive holds is read again. passive_log: [first offset, next to
    be written].

    watermarks, if any, say of a source that has been idle: [next source offset, next passive offset],
    nothing that it writes from the former on lies before the latter. Those of active say as well that all
    that it wrote before lies before; give both as {"active": {...}, "passive": {...}}.
    """
    case = _read(path)
    answer = case.answer(Rule(rule) if rule else None)
    for line in _lines(case, answer):
        console.print(line, markup=False, soft_wrap=True)
    if as_json:
        print_json(document(answer))


def _read(path: Path) -> Case:
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text: give JSON in UTF-8") from error
    except CaseError as error:
        raise InputError(f"{path}: {error}") from error


def _lines(case: Case, answer: Answer) -> Iterator[str]:
    if case.ignored:
        yield f"ignored: {', '.join(map(printable, case.ignored))}"
    for side, histories in (("active", case.active), ("passive", case.passive)):
        for source, one in histories.items():
            if one.forgotten:
                where = f"{side}.{printable(source)}"
                yield f"{where}: {one.forgotten} not used, as offsets in {side} go back after them"
    for source, constraint in answer.per_source.items():
        yield f"{printable(source)}: {_told(constraint)}"
    yield f"resume at {answer.resume}, by {answer.rule}{_how_good(answer)}"


def _told(one: Constraint) -> str:
    if one.resume is None or one.active is None or one.passive is None:
        return f"unbounded: {_WORDS[one.why]}"
    return f"from {one.resume} on: active has {_place(one.active)}, passive {_place(one.passive)}"


def _place(at: Checkpoint) -> str:
    what = "" if at.origin.names_a_record else "watermark "
    return f"{what}{at.src_offset} at {at.dst_offset}"


def _how_good(answer: Answer) -> str:
    if answer.early_at_most is None:
        return ": all that is there is read again, as a source is unbounded"
    loss = "; what is not consumed may be gone already" if answer.possible_loss else ""
    return f": at most {answer.early_at_most} before the first record that is not consumed{loss}"
