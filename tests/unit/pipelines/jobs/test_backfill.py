"""How a backfill is cut, and what its command refuses, without Spark."""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.io.record_topics import offset_ranges
from fleetgauge_pipelines.jobs import backfill_cli
from fleetgauge_pipelines.jobs.backfill import in_pieces


@dataclass(frozen=True, slots=True)
class Part:
    bytes: int
    key: str = ""


@given(st.lists(st.integers(0, 50)), st.integers(1, 100))
def test_pieces_are_the_items_in_their_order_as_many_as_fit(sizes: list[int], at_most: int) -> None:
    items = [Part(size, str(number)) for number, size in enumerate(sizes)]
    pieces = in_pieces(items, at_most)
    assert [item for piece in pieces for item in piece] == items
    assert all(len(piece) == 1 or sum(item.bytes for item in piece) <= at_most for piece in pieces)
    assert all(
        sum(item.bytes for item in piece) + after[0].bytes > at_most for piece, after in pairwise(pieces)
    )


@given(
    st.dictionaries(
        st.integers(0, 11),
        st.tuples(st.integers(0, 20_000), st.integers(0, 20_000)).map(lambda pair: tuple(sorted(pair))),
    )
)
def test_ranges_are_every_offset_once_and_the_same_when_the_topic_has_grown(
    bounds: dict[int, tuple[int, int]],
) -> None:
    ranges = offset_ranges("id", bounds)
    found = {
        partition: [offset for one in ranges if one.partition == partition for offset in (one.start, one.end)]
        for partition in bounds
    }
    for partition, (first, end) in bounds.items():
        marks = found[partition]
        assert marks[1:-1:2] == marks[2::2], "one begins where the one before it ends"
        assert (marks[:1], marks[-1:]) == (([first], [end]) if end > first else ([], []))
    grown = {one.key for one in offset_ranges("id", {p: (lo, hi + 5000) for p, (lo, hi) in bounds.items()})}
    full = {one.key for one in ranges if one.end % 4096 == 0}
    assert full <= grown


@pytest.mark.parametrize("arguments", [[], ["--from", ".", "--topic", "records"]])
def test_records_come_from_one_place(arguments: list[str]) -> None:
    result = CliRunner().invoke(backfill_cli.backfill, arguments, env={"COLUMNS": "200"})
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "fleetgauge: say either --from DIR or --topic NAME\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--from", "."], "no *.avro or *.parquet file"),
        (["--topic", "records"], "telemetry.bootstrap is missing"),
    ],
)
def test_without_records_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fleet.yaml").write_text("clusters: [{id: orders, bootstrap: 'orders:9092'}]\n")
    monkeypatch.setattr(backfill_cli, "writing", lambda _: nullcontext((None, None)))
    result = CliRunner().invoke(backfill_cli.backfill, arguments, env={"COLUMNS": "200"})
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert says in result.stderr
