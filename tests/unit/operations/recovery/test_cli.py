import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetgauge_operations.recovery.cli import recover

FIGURE_6: dict[str, Any] = {
    "position": 6,
    "active": {"A": [[1, 3]], "B": [[3, 5]]},
    "passive": {"A": [[1, 1]], "B": [[3, 7]]},
    "passive_log": [0, 8],
}


def run(folder: Path, case: object, *arguments: str) -> Result:
    file = folder / "case.json"
    text = case if isinstance(case, str) else json.dumps(case)
    file.write_text(text, encoding="utf-8")
    return CliRunner().invoke(recover, ["map", "--from-file", str(file), *arguments])


def answer(folder: Path, case: object, *arguments: str) -> dict[str, Any]:
    done = run(folder, case, "--json", *arguments)
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_figure_6_by_each_rule(tmp_path: Path) -> None:
    assert answer(tmp_path, FIGURE_6, "--rule", "uber") == {
        "resume": 1,
        "rule": "uber",
        "per_source": {
            "A": {"resume": 1, "why": "checkpoint", "active": [1, 3], "passive": [1, 1]},
            "B": {"resume": 7, "why": "checkpoint", "active": [3, 5], "passive": [3, 7]},
        },
        "unbounded": False,
        "possible_loss": False,
        "early_at_most": 7,
    }
    found = [answer(tmp_path, FIGURE_6, "--rule", rule)["resume"] for rule in ("plus_one", "watermark")]
    assert found == [2, 2]


def test_without_a_rule_the_best_is_taken_and_named(tmp_path: Path) -> None:
    found = answer(tmp_path, FIGURE_6)
    assert (found["resume"], found["rule"]) == (2, "plus_one")


def test_a_person_reads_it_without_json(tmp_path: Path) -> None:
    done = run(tmp_path, FIGURE_6)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "A: from 2 on: active has 1 at 3, passive 1 at 1",
        "B: from 8 on: active has 3 at 5, passive 3 at 7",
        "resume at 2, by plus_one: at most 6 before the first record that is not consumed",
    ]


@pytest.mark.parametrize("watermarks", [{"A": [[10, 1010]]}, {"passive": {"A": [[10, 1010]]}}])
def test_a_watermark_of_a_silent_source_is_of_passive_unless_said(
    tmp_path: Path, watermarks: dict[str, Any]
) -> None:
    of_b = [[n, n + 10] for n in range(0, 1000, 100)]
    side = {"A": [[0, 0], [9, 9]], "B": of_b}
    case = {"position": 1010, "active": side, "passive": side, "passive_log": [0, 1010]}
    assert answer(tmp_path, case)["resume"] == 10
    found = answer(tmp_path, case | {"watermarks": watermarks})
    assert (found["resume"], found["rule"]) == (911, "watermark")
    assert found["per_source"]["A"]["why"] == "watermark"
    assert answer(tmp_path, case | {"watermarks": watermarks}, "--rule", "uber")["resume"] == 9


def test_watermarks_of_active_say_what_is_consumed(tmp_path: Path) -> None:
    side = {"A": [[0, 0]], "B": [[90, 100]]}
    case = {"position": 110, "active": side, "passive": side, "passive_log": [0, 110]}
    both = {"active": {"A": [[10, 105]]}, "passive": {"A": [[10, 105]]}}
    assert answer(tmp_path, case | {"watermarks": {"A": [[10, 105]]}})["resume"] == 1
    assert answer(tmp_path, case | {"watermarks": both})["resume"] == 101
    assert (
        "A: from 105 on: active has watermark 10 at 105" in run(tmp_path, case | {"watermarks": both}).stderr
    )


def test_a_source_may_be_called_as_a_side_is(tmp_path: Path) -> None:
    side = {"active": [[0, 0], [9, 9]]}
    case = {"position": 50, "active": side, "passive": side, "passive_log": [0, 60]}
    assert answer(tmp_path, case | {"watermarks": {"active": [[10, 40]]}})["resume"] == 40


@pytest.mark.parametrize(
    "change",
    [
        {"active": {"A": [[1, 3]]}},
        {"active": {"A": [[1, 3]], "B": []}},
        {"passive": {"A": [[1, 1]]}},
        {"passive": {"A": [[1, 1]], "B": []}},
        {"active": {}, "passive": {}},
        {"active": {"A": [[1, 3]], "B": [[3, 7]]}},
    ],
)
def test_without_a_checkpoint_on_one_side_all_is_read_again(tmp_path: Path, change: dict[str, Any]) -> None:
    for rule in ("uber", "plus_one", "watermark"):
        found = answer(tmp_path, FIGURE_6 | {"passive_log": [4, 8]} | change, "--rule", rule)
        assert (found["resume"], found["unbounded"], found["early_at_most"]) == (4, True, None)


def test_what_is_unbounded_is_said_to_a_person(tmp_path: Path) -> None:
    lines = run(tmp_path, FIGURE_6 | {"passive": {"A": [[1, 1]]}}).stderr.splitlines()
    assert lines[1] == ("B: unbounded: nothing is known of it in passive at or before what is consumed")
    assert lines[2].startswith("resume at 0, by uber: all that is there is read again")


def test_lists_that_go_back_are_read_as_they_were_told(tmp_path: Path) -> None:
    again = FIGURE_6 | {"passive": {"A": [[0, 0], [1, 1], [0, 2], [1, 4]], "B": [[3, 7]]}}
    assert answer(tmp_path, again)["resume"] == 5
    anew = FIGURE_6 | {"passive": {"A": [[0, 5], [1, 6], [1, 1]], "B": [[3, 7]]}}
    assert answer(tmp_path, anew)["resume"] == 2
    assert "passive.A: 2 not used, as offsets in passive go back after them" in run(tmp_path, anew).stderr


def test_what_may_be_lost_is_said(tmp_path: Path) -> None:
    case = FIGURE_6 | {"passive_log": [3, 8]}
    assert (answer(tmp_path, case)["resume"], answer(tmp_path, case)["possible_loss"]) == (3, True)
    assert run(tmp_path, case).stderr.endswith("what is not consumed may be gone already\n")


def test_other_keys_are_told_of_and_left(tmp_path: Path) -> None:
    case = FIGURE_6 | {"note": "figure 6"}
    assert answer(tmp_path, case)["resume"] == 2
    assert run(tmp_path, case).stderr.startswith("ignored: note\n")


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "\u2028", "\ud800"])
def test_no_name_breaks_a_line(tmp_path: Path, name: str) -> None:
    case = FIGURE_6 | {"active": {name: [[1, 3]]}, "passive": {name: [[1, 1]]}, name: 1}
    done = run(tmp_path, case, "--json")
    assert list(json.loads(done.stdout)["per_source"]) == [name]
    assert len(done.stderr.splitlines()) == 3
    assert f"{json.dumps(name)}: from 2 on" in done.stderr
    refused = run(tmp_path, case | {"passive": {name: 3}})
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)


HUGE = 2**63


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("", "line 1 is not JSON"),
        ("{", "line 1 is not JSON"),
        ('{"position": 6,\n "active"}', "line 2 is not JSON"),
        ("[]", "the case is []: give an object"),
        ("[" * 100_000, "brackets within brackets"),
        ('{"position": ' + "9" * 5000 + "}", "an offset of more than 64 bits"),
        ('{"position": NaN}', "NaN is not an offset"),
        ('{"position": 1, "position": 2}', "position is there twice"),
        ({}, "position is missing: a case has position, active, passive, passive_log"),
        ({"position": 6, "active": {}, "passive": {}}, "passive_log is missing"),
        (FIGURE_6 | {"position": -1}, "position has -1: give an offset"),
        (FIGURE_6 | {"position": HUGE}, f"position has {HUGE}: give an offset, a whole number from 0 to"),
        (FIGURE_6 | {"position": "6"}, 'position has "6"'),
        (FIGURE_6 | {"position": 6.0}, "position has 6.0"),
        (FIGURE_6 | {"position": True}, "position has true"),
        (FIGURE_6 | {"position": None}, "position has null"),
        (FIGURE_6 | {"active": []}, "active is []: give an object"),
        (FIGURE_6 | {"active": {"A": 3}}, "active.A is 3: give a list"),
        (FIGURE_6 | {"active": {"A": [3]}}, "active.A[0] is 3: give two offsets"),
        (FIGURE_6 | {"passive": {"A": [[1, 1], [2]]}}, "passive.A[1] is [2]: give two offsets"),
        (FIGURE_6 | {"passive": {"A": [[1, 1, 1]]}}, "passive.A[0] is [1, 1, 1]"),
        (FIGURE_6 | {"passive": {"A": [[1, -1]]}}, "passive.A[0] has -1"),
        (FIGURE_6 | {"passive": {"A": [[HUGE, 1]]}}, "passive.A[0] has"),
        (FIGURE_6 | {"passive_log": [8, 0]}, "passive_log ends at 0, before its start 8"),
        (FIGURE_6 | {"passive_log": 8}, "passive_log is 8: give two offsets"),
        (FIGURE_6 | {"watermarks": [1]}, "watermarks is [1]: give an object"),
        (FIGURE_6 | {"watermarks": {"A": [[1]]}}, "watermarks of passive.A[0] is [1]"),
        (FIGURE_6 | {"watermarks": {"A": [[4, 8], [3, 8]]}}, "watermarks of passive.A: [3, 8] goes back"),
        (FIGURE_6 | {"watermarks": {"A": [[1, 5]]}}, "watermarks of passive.A: [1, 5] goes back, or a check"),
        (FIGURE_6 | {"active": {"A": "x" * 90}}, 'active.A is "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...:'),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exit_code_2(tmp_path: Path, case: object, words: str) -> None:
    done = run(tmp_path, case, "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert words in line
    assert str(tmp_path / "case.json") in line


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "none.json", tmp_path / "bytes.json"):
        done = CliRunner().invoke(recover, ["map", "--from-file", str(path)])
        assert done.exit_code == 2
        assert done.exception is None or isinstance(done.exception, SystemExit)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**64) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6) | JSON
SIDES = st.dictionaries(st.sampled_from("AB"), PAIRS, max_size=2) | JSON
CASES = st.fixed_dictionaries(
    {"position": st.integers(0, 50) | JSON, "active": SIDES, "passive": SIDES},
    optional={"passive_log": st.tuples(st.integers(0, 9), st.integers(0, 60)) | JSON, "watermarks": SIDES},
)


@given(CASES | JSON)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_case_it_is_answered_or_refused(tmp_path: Path, case: Any) -> None:
    done = run(tmp_path, case, "--json")
    if done.exit_code == 0:
        start, end = case["passive_log"]
        assert start <= json.loads(done.stdout)["resume"] <= end
    else:
        assert done.exit_code == 2
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, "no such file"),
        ("clusters: [{id: a, bootstrap: a:1}]", "recovery.mirrors is empty"),
        (
            "clusters: [{id: a, bootstrap: a:1, security: {tls: {ca: none.pem}}}, {id: b, bootstrap: b:1}]\n"
            "recovery: {mirrors: [{source: a, destination: b}]}",
            "TLS cannot be set up from",
        ),
    ],
)
def test_what_real_clusters_are_asked_with_is_checked_in_one_line(
    tmp_path: Path, text: str | None, line: str
) -> None:
    file = tmp_path / "fleet.yaml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(recover, ["plan", "--config", str(file)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr.lower() or line in done.stderr
