from contextlib import nullcontext
from pathlib import Path
from threading import Event

import pytest

from fleetgauge_pipelines.jobs import lake_session
from fleetgauge_pipelines.quality import gate


def test_great_expectations_is_imported_while_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = Event()
    monkeypatch.setattr(gate, "load_great_expectations", imported.set)
    monkeypatch.setattr(lake_session, "open_lake_for_writing", lambda *_: nullcontext(("spark", "lake")))
    with lake_session.open_lake_for_pipeline(str(tmp_path)) as opened:
        assert imported.wait(10)
    assert opened == ("spark", "lake")
