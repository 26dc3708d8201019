"""Pages over a lake on a slow disk, and over one of ten thousand clusters.

The slow disk is a folder mounted with a limit of bytes per second (bindfs), which requires root and FUSE;
elsewhere the test is skipped.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect

from fleetgauge_dashboards.single_flight import RESULT_TIMEOUT_S
from tests.benchmarks import _great_lake
from tests.browser.conftest import OpenPage, ServeLake
from tests.browser.lake import write


@contextmanager
def _mount_slowly(folder: Path, at: Path, bytes_per_s: int) -> Iterator[Path]:
    at.mkdir()
    if shutil.which("bindfs") is None:
        pytest.skip("a slow disk requires bindfs: apt-get install bindfs")
    mounted = subprocess.run(
        ["bindfs", f"--read-rate={bytes_per_s}", str(folder), str(at)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a slow disk requires root and FUSE: {mounted.stderr.strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def test_a_slow_disk_shows_a_notice_until_the_page_is_ready(
    tmp_path: Path, serve_lake: ServeLake, open_page: OpenPage
) -> None:
    write(tmp_path / "lake", datetime.now(UTC))
    with _mount_slowly(tmp_path / "lake", tmp_path / "slow", 4_000) as lake:
        site = serve_lake(lake)
        page = open_page(site.url)
        expect(page.locator(".fg-empty")).to_contain_text("The lake answers slowly")
        expect(page.locator("#age")).to_have_text("▲ the lake answers slowly")
        began = time.monotonic()
        with urlopen(f"{site.url}/livez", timeout=20) as response:
            assert response.status == 200
        with urlopen(f"{site.url}/readyz", timeout=60) as response:
            assert b'"status":"slow"' in response.read().replace(b" ", b"")
        assert time.monotonic() - began < 10 * RESULT_TIMEOUT_S
        # Results are cached: what was read once is used for later requests.
        expect(page.locator("h1")).to_contain_text("Fleet, week of", timeout=180_000)
        expect(page.locator("#age")).to_contain_text("data age", timeout=60_000)


@pytest.fixture(scope="module")
def great(tmp_path_factory: pytest.TempPathFactory, serve_lake: ServeLake) -> str:
    root = tmp_path_factory.mktemp("great")
    _great_lake.write_lake(root, 10_000, datetime.now(UTC), weeks=3, with_minutes=5)
    return serve_lake(root).url


def test_the_worst_of_ten_thousand_clusters_are_listed_and_all_can_be_found(
    great: str, open_page: OpenPage
) -> None:
    page = open_page(great)
    expect(page.locator("#fleet-found")).to_have_text(
        "the worst 500 of 10,000 clusters; search to find others"
    )
    expect(page.locator(".ag-center-cols-container [row-index='0']")).to_be_visible()
    page.get_by_role("textbox", name="Search for clusters").fill("cluster-07123")
    rows = page.locator(".ag-center-cols-container [row-index]")
    expect(rows).to_have_count(1)
    rows.get_by_role("link", name="cluster-07123").click()
    expect(page.locator("h1")).to_contain_text("cluster-07123, week of")


def test_the_csv_file_and_table_contain_all_ten_thousand_clusters(great: str, open_page: OpenPage) -> None:
    page = open_page(great)
    expect(page.locator("#fleet-clusters-tools a").first).to_be_visible()
    with page.expect_download(timeout=60_000) as download:
        page.locator("#fleet-clusters-tools").get_by_role("link", name="CSV").click()
    assert Path(download.value.path()).read_text().count("\n") == 10_001
    page.locator("#fleet-clusters-tools").get_by_role("link", name="clusters as a table").click()
    expect(page.locator("#numbers-title")).to_contain_text("10,000 rows")
    expect(page.locator(".ag-paging-panel")).to_contain_text(re.compile("10,000"))


def test_an_unknown_cluster_of_ten_thousand_shows_similar_names(great: str, open_page: OpenPage) -> None:
    page = open_page(f"{great}/cluster/cluster-0712")
    expect(page.locator(".fg-empty")).to_contain_text(
        "The lake has 10,000 clusters; the most similar names are:"
    )
    expect(page.locator(".fg-empty").get_by_role("link", name="cluster-07128")).to_be_visible()
