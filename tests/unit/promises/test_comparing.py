"""Differences between a list and the collected entries are reported, and no listed entry is lost."""

from pathlib import Path

import pytest

from tests.promises import lists
from tests.promises.comparing import Difference, compare, describe, merge

FILE = "tests/promises/list/cli.txt"


def test_equal_lists_do_not_differ() -> None:
    assert compare(["b", "a"], ["a", "b", "b"]) == Difference((), ())


def test_a_removed_entry_is_a_difference() -> None:
    difference = compare(["slo --csv", "slo --json"], ["slo --json"])
    assert difference == Difference(removed=("slo --csv",), added=())
    (line,) = describe(FILE, difference)
    assert line.startswith("removed: slo --csv (")
    assert f"delete its line of {FILE} by hand" in line


def test_an_unlisted_entry_is_a_difference() -> None:
    difference = compare(["slo --json"], ["slo --csv", "slo --json"])
    assert difference == Difference(removed=(), added=("slo --csv",))
    (line,) = describe(FILE, difference)
    assert line.startswith("added, not yet listed: run make format: slo --csv")


def test_a_renamed_entry_is_removed_and_added() -> None:
    assert compare(["slo --csv"], ["slo --table"]) == Difference(("slo --csv",), ("slo --table",))


def test_listed_entries_stay_listed() -> None:
    assert merge(["b", "gone"], ["b", "a"]) == ["a", "b", "gone"]


def test_a_written_list_has_the_earlier_and_the_new_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "FOLDER", tmp_path)
    lists.add("kind", ["b"])
    lists.add("kind", ["a"])
    assert lists.read("kind") == ["a", "b"]
    assert (tmp_path / "kind.txt").read_text(encoding="utf-8") == "a\nb\n"
