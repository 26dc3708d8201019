"""The command `fleetgauge recover map` with cases from files."""

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


def run_map(folder: Path, case: object, *arguments: str) -> dict[str, Any]:
    invocation = run(folder, case, "--json", *arguments)
    assert invocation.exit_code == 0, invocation.stderr
    result: dict[str, Any] = json.loads(invocation.stdout)
    return result


def test_figure_6_by_each_rule(tmp_path: Path) -> None:
    assert run_map(tmp_path, FIGURE_6, "--rule", "uber") == {
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
    result = [run_map(tmp_path, FIGURE_6, "--rule", rule)["resume"] for rule in ("plus_one", "watermark")]
    assert result == [2, 2]


def test_without_a_rule_the_best_rule_is_used_and_reported(tmp_path: Path) -> None:
    result = run_map(tmp_path, FIGURE_6)
    assert (result["resume"], result["rule"]) == (2, "plus_one")


def test_text_output_explains_each_source_and_the_resume_offset(tmp_path: Path) -> None:
    invocation = run(tmp_path, FIGURE_6)
    assert (invocation.exit_code, invocation.stdout) == (0, "")
    assert invocation.stderr.splitlines() == [
        "A: from 2 on: active has 1 at 3, passive 1 at 1",
        "B: from 8 on: active has 3 at 5, passive 3 at 7",
        "resume at 2, by plus_one: at most 6 before the first unconsumed record",
    ]


@pytest.mark.parametrize("watermarks", [{"A": [[10, 1010]]}, {"passive": {"A": [[10, 1010]]}}])
def test_watermarks_belong_to_passive_unless_sides_are_given(
    tmp_path: Path, watermarks: dict[str, Any]
) -> None:
    of_b = [[n, n + 10] for n in range(0, 1000, 100)]
    side = {"A": [[0, 0], [9, 9]], "B": of_b}
    case = {"position": 1010, "active": side, "passive": side, "passive_log": [0, 1010]}
    assert run_map(tmp_path, case)["resume"] == 10
    result = run_map(tmp_path, case | {"watermarks": watermarks})
    assert (result["resume"], result["rule"]) == (911, "watermark")
    assert result["per_source"]["A"]["why"] == "watermark"
    assert run_map(tmp_path, case | {"watermarks": watermarks}, "--rule", "uber")["resume"] == 9


def test_watermarks_of_active_prove_what_is_consumed(tmp_path: Path) -> None:
    side = {"A": [[0, 0]], "B": [[90, 100]]}
    case = {"position": 110, "active": side, "passive": side, "passive_log": [0, 110]}
    both = {"active": {"A": [[10, 105]]}, "passive": {"A": [[10, 105]]}}
    assert run_map(tmp_path, case | {"watermarks": {"A": [[10, 105]]}})["resume"] == 1
    assert run_map(tmp_path, case | {"watermarks": both})["resume"] == 101
    assert (
        "A: from 105 on: active has watermark 10 at 105" in run(tmp_path, case | {"watermarks": both}).stderr
    )


def test_a_source_may_have_the_name_of_a_side(tmp_path: Path) -> None:
    side = {"active": [[0, 0], [9, 9]]}
    case = {"position": 50, "active": side, "passive": side, "passive_log": [0, 60]}
    assert run_map(tmp_path, case | {"watermarks": {"active": [[10, 40]]}})["resume"] == 40


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
def test_without_a_checkpoint_on_one_side_the_whole_log_is_read_again(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    for rule in ("uber", "plus_one", "watermark"):
        result = run_map(tmp_path, FIGURE_6 | {"passive_log": [4, 8]} | change, "--rule", rule)
        assert (result["resume"], result["unbounded"], result["early_at_most"]) == (4, True, None)


def test_text_output_names_unbounded_sources(tmp_path: Path) -> None:
    lines = run(tmp_path, FIGURE_6 | {"passive": {"A": [[1, 1]]}}).stderr.splitlines()
    assert lines[1] == ("B: unbounded: no checkpoint in passive at or before the consumed offset")
    assert lines[2].startswith("resume at 0, by uber: the whole log is read again")


def test_offsets_that_go_back_start_a_new_run_or_discard_earlier_pairs(tmp_path: Path) -> None:
    restarted = FIGURE_6 | {"passive": {"A": [[0, 0], [1, 1], [0, 2], [1, 4]], "B": [[3, 7]]}}
    assert run_map(tmp_path, restarted)["resume"] == 5
    recreated = FIGURE_6 | {"passive": {"A": [[0, 5], [1, 6], [1, 1]], "B": [[3, 7]]}}
    assert run_map(tmp_path, recreated)["resume"] == 2
    assert (
        "passive.A: 2 discarded, because later offsets in passive go back" in run(tmp_path, recreated).stderr
    )


def test_possible_loss_is_reported(tmp_path: Path) -> None:
    case = FIGURE_6 | {"passive_log": [3, 8]}
    assert (run_map(tmp_path, case)["resume"], run_map(tmp_path, case)["possible_loss"]) == (3, True)
    assert run(tmp_path, case).stderr.endswith("unconsumed records may have expired\n")


def test_unknown_keys_are_reported_and_ignored(tmp_path: Path) -> None:
    case = FIGURE_6 | {"note": "figure 6"}
    assert run_map(tmp_path, case)["resume"] == 2
    assert run(tmp_path, case).stderr.startswith("ignored: note\n")


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "\u2028", "\ud800"])
def test_unprintable_source_names_are_escaped(tmp_path: Path, name: str) -> None:
    case = FIGURE_6 | {"active": {name: [[1, 3]]}, "passive": {name: [[1, 1]]}, name: 1}
    invocation = run(tmp_path, case, "--json")
    assert list(json.loads(invocation.stdout)["per_source"]) == [name]
    assert len(invocation.stderr.splitlines()) == 3
    assert f"{json.dumps(name)}: from 2 on" in invocation.stderr
    refused = run(tmp_path, case | {"passive": {name: 3}})
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)


HUGE = 2**63


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("", "line 1 is not valid JSON"),
        ("{", "line 1 is not valid JSON"),
        ('{"position": 6,\n "active"}', "line 2 is not valid JSON"),
        ("[]", "the case is []: give an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"position": ' + "9" * 5000 + "}", "an offset has more than 64 bits"),
        ('{"position": NaN}', "NaN is not an offset"),
        ('{"position": 1, "position": 2}', "position is given twice"),
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
        (
            FIGURE_6 | {"watermarks": {"A": [[1, 5]]}},
            "watermarks of passive.A: [1, 5] goes back or contradicts a checkpoint",
        ),
        (FIGURE_6 | {"active": {"A": "x" * 90}}, 'active.A is "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...:'),
    ],
)
def test_an_invalid_case_fails_with_one_line_and_exit_code_2(
    tmp_path: Path, case: object, message: str
) -> None:
    invocation = run(tmp_path, case, "--json")
    assert (invocation.exit_code, invocation.stdout) == (2, "")
    (line,) = invocation.stderr.splitlines()
    assert message in line
    assert str(tmp_path / "case.json") in line


def test_an_unreadable_file_fails_with_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "none.json", tmp_path / "bytes.json"):
        invocation = CliRunner().invoke(recover, ["map", "--from-file", str(path)])
        assert invocation.exit_code == 2
        assert invocation.exception is None or isinstance(invocation.exception, SystemExit)


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
def test_any_json_is_mapped_or_rejected_in_one_line(tmp_path: Path, case: Any) -> None:
    invocation = run(tmp_path, case, "--json")
    if invocation.exit_code == 0:
        start, end = case["passive_log"]
        assert start <= json.loads(invocation.stdout)["resume"] <= end
    else:
        assert invocation.exit_code == 2
        assert len(invocation.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, "no such file"),
        ("clusters: [{id: a, bootstrap: a:1}]", "recovery.mirrors is empty"),
        (
            "clusters: [{id: a, bootstrap: a:1, security: {tls: {ca: none.pem}}}, {id: b, bootstrap: b:1}]\n"
            "recovery: {mirrors: [{source: a, destination: b}]}",
            "none.pem cannot be read: No such file or directory",
        ),
    ],
)
def test_an_invalid_fleet_file_fails_with_one_line_and_exit_code_2(
    tmp_path: Path, text: str | None, line: str
) -> None:
    file = tmp_path / "fleet.yaml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    invocation = CliRunner().invoke(recover, ["plan", "--config", str(file)])
    assert (invocation.exit_code, invocation.stdout) == (2, "")
    assert line in invocation.stderr.lower() or line in invocation.stderr
