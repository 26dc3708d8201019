import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_pipelines.transforms.duplicates import find_repeated_keys

KEYS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=8)


def to_table(keys: list[tuple[str, int]]) -> pa.Table:
    return pa.table(
        {
            "run_id": pa.array([run for run, _ in keys], pa.string()),
            "sequence": pa.array([sequence for _, sequence in keys], pa.int64()),
        }
    )


@given(KEYS, KEYS, st.randoms(use_true_random=False))
def test_repeated_are_the_keys_that_are_stored_or_not_the_first_of_the_batch(
    keys: list[tuple[str, int]], stored: list[tuple[str, int]], random: np.random.Generator
) -> None:
    """A key may be stored twice: of records on two days that no batch has seen together."""
    positions = list(range(len(keys)))
    random.shuffle(positions)
    table = to_table(keys).append_column("position", pa.array(positions, pa.int64()))
    repeated = find_repeated_keys(table, to_table(stored))
    by_position = sorted(range(len(keys)), key=positions.__getitem__)
    first = {key: row for row in reversed(by_position) for key in [keys[row]]}
    wanted = {
        row: (stored.index(key), True) if key in stored else (first[key], False)
        for row, key in enumerate(keys)
        if key in stored or first[key] != row
    }
    actual = zip(
        repeated.row.tolist(),
        zip(repeated.winner.tolist(), repeated.is_stored.tolist(), strict=True),
        strict=True,
    )
    assert list(actual) == list(wanted.items())
