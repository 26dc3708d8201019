"""The Grafana board: its metrics exist, and its panels are distinct and do not overlap."""

import json
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from tests.deployment.manifests import INFRA, load_document
from tests.deployment.metrics import find_unknown_names

BOARD = json.loads((INFRA / "grafana/boards/fleetgauge.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]


def list_expressions() -> list[str]:
    queries = [target["expr"] for panel in PANELS for target in panel["targets"]]
    return queries + [annotation["expr"] for annotation in BOARD["annotations"]["list"]]


def test_the_board_queries_promised_metrics_only() -> None:
    variables = [variable["query"]["query"] for variable in BOARD["templating"]["list"]]
    assert len(list_expressions()) > len(PANELS)
    assert find_unknown_names([*list_expressions(), *variables]) == []


def test_prometheus_parses_every_expression(promtool: str, tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$cluster", "orders")}
        for number, expression in enumerate(list_expressions())
    ]
    path = tmp_path / "board.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    result = subprocess.run([promtool, "check", "rules", path], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_panel_has_a_unique_title_and_the_provisioned_source() -> None:
    (source,) = load_document(INFRA / "grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    assert {panel["datasource"]["uid"] for panel in PANELS} == {source["uid"]}
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_panels_do_not_overlap_or_leave_the_grid() -> None:
    def list_cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
        at = panel["gridPos"]
        return {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}

    for panel, other in combinations(BOARD["panels"], 2):
        assert not list_cells(panel) & list_cells(other), f"{panel['title']} and {other['title']}"
    assert max(x for panel in BOARD["panels"] for x, _ in list_cells(panel)) == 23
