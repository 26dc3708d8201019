"""How a backfill's input is split, and what its command refuses, without Spark."""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.io.record_topics import split_offsets
from fleetgauge_pipelines.jobs import backfill_cli, backfill_command
from fleetgauge_pipelines.jobs.backfill import split_into_pieces


@dataclass(frozen=True, slots=True)
class FakeSplit:
    bytes: int
    key: str = ""


@given(st.lists(st.integers(0, 50)), st.integers(1, 100))
def test_pieces_hold_the_splits_in_order_and_as_many_as_fit(sizes: list[int], max_bytes: int) -> None:
    splits = [FakeSplit(size, str(number)) for number, size in enumerate(sizes)]
    pieces = split_into_pieces(splits, max_bytes)
    assert [split for piece in pieces for split in piece] == splits
    assert all(len(piece) == 1 or sum(split.bytes for split in piece) <= max_bytes for piece in pieces)
    assert all(
        sum(split.bytes for split in piece) + following[0].bytes > max_bytes
        for piece, following in pairwise(pieces)
    )


@given(
    st.dictionaries(
        st.integers(0, 11),
        st.tuples(st.integers(0, 20_000), st.integers(0, 20_000)).map(lambda pair: tuple(sorted(pair))),
    )
)
def test_ranges_cover_every_offset_once_and_stay_the_same_when_the_topic_grows(
    bounds: dict[int, tuple[int, int]],
) -> None:
    ranges = split_offsets("id", bounds)
    offsets_by_partition = {
        partition: [
            offset
            for range_ in ranges
            if range_.partition == partition
            for offset in (range_.start, range_.end)
        ]
        for partition in bounds
    }
    for partition, (first, end) in bounds.items():
        offsets = offsets_by_partition[partition]
        assert offsets[1:-1:2] == offsets[2::2], "each range begins where the previous one ends"
        assert (offsets[:1], offsets[-1:]) == (([first], [end]) if end > first else ([], []))
    grown_bounds = {partition: (first, end + 5000) for partition, (first, end) in bounds.items()}
    grown = {range_.key for range_ in split_offsets("id", grown_bounds)}
    full = {range_.key for range_ in ranges if range_.end % 4096 == 0}
    assert full <= grown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --from DIR or --topic NAME, --changes FILE, or both"),
        (["--from", ".", "--topic", "records"], "give either --from DIR or --topic NAME"),
    ],
)
def test_one_input_of_records_or_a_file_of_changes_must_be_given(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(backfill_cli.backfill, arguments, env={"COLUMNS": "200"})
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"fleetgauge: {message}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "is not JSON: "),
        ("[" * 100_000, "is not JSON: "),
        ("{}", "is not a list of changes"),
        ("[7]", "change 0: is not an object"),
        ('[{"kind": "deploy"}]', "change 0: starts: is missing"),
        ('[{"kind": "deploy", "starts": "noon"}]', "starts: 'noon' is not a time with its zone, such as "),
        (
            '[{"kind": "deploy", "starts": "2026-03-02T10:00:00"}]',
            "starts: '2026-03-02T10:00:00' is not a time with its zone",
        ),
        ('[{"starts": "2026-03-02T10:00:00Z"}]', "change 0: kind: is missing"),
        ('[{"kind": 7, "starts": "2026-03-02T10:00:00Z"}]', "change 0: kind: must be text"),
        ('[{"kind": "x", "starts": "2026-03-02T10:00:00Z", "broker": "2"}]', "broker: must be a whole"),
        (
            '[{"kind": "x", "starts": "2026-03-02T10:00:00Z", "evidence": []}]',
            "evidence: is not a JSON object",
        ),
        (
            '[{"kind": "x", "starts": "2026-03-02T10:00:00Z", "cluster_id": "a"}]',
            "'cluster_id' is no key of a",
        ),
        ('[{"kind": "x", "starts": "2026-03-02T10:00:00Z", "cluster": "a"}]', "kind: 'x' is none of "),
        ('[{"kind": "deploy", "starts": "2026-03-02T10:00:00Z", "cluster": "b"}]', "has no cluster 'b'"),
        ('[{"kind": "deploy", "starts": "2026-03-02T10:00:00Z"}]', "give a cluster, or segment and"),
        (
            '[{"kind": "deploy", "starts": "0001-01-01T00:00:00+14:00"}]',
            "starts: is outside of the years 1 to 9999",
        ),
        ('[{"kind": "deploy", "starts": "0001-01-01T00:00:00Z"}]', "starts: is outside of the years 1970"),
        ('[{"kind": "deploy", "starts": "2026-03-02T10:00:00Z", "title": "\\ud800"}]', "half of a character"),
        (
            '[{"kind": "x", "starts": "2026-03-02T10:00:00Z", "ends": "2026-03-02T09:00:00Z"}]',
            "change 0: ends: is before starts",
        ),
    ],
)
def test_a_file_that_is_none_of_changes_says_where_and_why(
    tmp_path: Path, content: str, message: str
) -> None:
    path, fleet = tmp_path / "changes.json", tmp_path / "fleet.yaml"
    path.write_text(content)
    fleet.write_text('{"clusters": [{"id": "a", "bootstrap": "a:1"}]}')
    arguments = ["--changes", str(path), "--config", str(fleet), "--lake", str(tmp_path / "lake")]
    result = CliRunner().invoke(backfill_cli.backfill, arguments, env={"COLUMNS": "400"})
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"fleetgauge: {path}: ")
    assert message in result.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "."], "no *.avro or *.parquet file"),
        (["--topic", "records"], "telemetry.bootstrap is missing"),
    ],
)
def test_a_missing_input_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fleet.yaml").write_text("clusters: [{id: orders, bootstrap: 'orders:9092'}]\n")
    monkeypatch.setattr(backfill_command, "open_lake_for_pipeline", lambda *_: nullcontext((None, None)))
    result = CliRunner().invoke(backfill_cli.backfill, arguments, env={"COLUMNS": "200"})
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert message in result.stderr
