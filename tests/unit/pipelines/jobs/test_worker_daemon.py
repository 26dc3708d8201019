import importlib
import sys
from io import BufferedReader, BufferedWriter, BytesIO
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

from fleetgauge_pipelines.jobs import worker_daemon


def test_a_task_begins_without_archives_to_read_and_still_imports_from_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "modules.zip"
    with ZipFile(archive, "w") as file:
        file.writestr("first_zipped_module.py", "")
        file.writestr("second_zipped_module.py", "")
    monkeypatch.syspath_prepend(str(archive))
    importlib.import_module("first_zipped_module")

    remembered: list[bool] = []

    def run_task(*_: object) -> None:
        remembered.append(any(isinstance(each, zipimporter) for each in sys.path_importer_cache.values()))
        importlib.import_module("second_zipped_module")

    monkeypatch.setattr(worker_daemon, "_run_task", run_task)
    worker_daemon._run_next_task(BufferedReader(BytesIO(b"a task")), BufferedWriter(BytesIO()))
    assert remembered == [False]
    assert "second_zipped_module" in sys.modules


def test_a_worker_without_a_further_task_ends() -> None:
    with pytest.raises(SystemExit):
        worker_daemon._run_next_task(BufferedReader(BytesIO()), BufferedWriter(BytesIO()))
