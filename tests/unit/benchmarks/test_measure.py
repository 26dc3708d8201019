"""What a benchmark says is what was measured."""

from tests.benchmarks._measure import Options, Result, alternating, growth_exponent, peak_memory


def test_a_result_is_a_ratio_to_the_fastest_peer() -> None:
    found = Result("p99", 10, 3.0, {"slow": 6.0, "fast": 1.5}, 100, {"runs": 5}).document()
    assert found == {
        "name": "p99",
        "rows": 10,
        "ours_s": 3.0,
        "peers": {"slow": 6.0, "fast": 1.5},
        "ratio_to_fastest_peer": 2.0,
        "peak_mb": 100,
        "runs": 5,
    }


def test_without_a_peer_there_is_no_ratio() -> None:
    assert Result("week", 10, 3.0).document()["ratio_to_fastest_peer"] is None


def test_runs_alternate_after_each_had_one_to_warm_up() -> None:
    calls: list[str] = []
    times = alternating({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, runs=2)
    assert calls == ["a", "b", "a", "b", "a", "b"]
    assert set(times) == {"a", "b"}


def test_the_growth_of_a_line_is_one_and_of_a_square_two() -> None:
    assert growth_exponent([1, 2, 4], [3, 6, 12]) == 1
    assert growth_exponent([1, 2, 4], [3, 12, 48]) == 2


def test_a_scale_leaves_at_least_one_row() -> None:
    assert Options(scale=0.1).rows(1000) == 100
    assert Options(scale=0.0001).rows(1000) == 1


def test_the_peak_covers_what_was_held_meanwhile() -> None:
    with peak_memory() as peak:
        held = bytearray(200 * 2**20)
        held[::4096] = b"x" * len(held[::4096])
        while peak() == 0:
            pass
        assert peak() >= 200
