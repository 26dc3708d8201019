"""The Grafana board: what it asks exists, and every panel can be read."""

import json
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from tests.deployment.manifests import INFRA, document
from tests.deployment.metrics import strangers

BOARD = json.loads((INFRA / "grafana/boards/fleetgauge.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]


def expressions() -> list[str]:
    asked = [target["expr"] for panel in PANELS for target in panel["targets"]]
    return asked + [annotation["expr"] for annotation in BOARD["annotations"]["list"]]


def test_the_board_asks_for_promised_metrics_only() -> None:
    variables = [variable["query"]["query"] for variable in BOARD["templating"]["list"]]
    assert len(expressions()) > len(PANELS)
    assert strangers([*expressions(), *variables]) == []


def test_prometheus_understands_every_expression(promtool: str, tmp_path: Path) -> None:
    asked = [
        {"record": f"panel:{number}", "expr": expression.replace("$cluster", "orders")}
        for number, expression in enumerate(expressions())
    ]
    path = tmp_path / "board.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": asked}]}))
    done = subprocess.run([promtool, "check", "rules", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_panel_has_a_title_of_its_own_and_the_provisioned_source() -> None:
    (source,) = document(INFRA / "grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    assert {panel["datasource"]["uid"] for panel in PANELS} == {source["uid"]}
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_no_panel_lies_on_another_or_leaves_the_grid() -> None:
    def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
        at = panel["gridPos"]
        return {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}

    for one, other in combinations(BOARD["panels"], 2):
        assert not cells(one) & cells(other), f"{one['title']} and {other['title']}"
    assert max(x for panel in BOARD["panels"] for x, _ in cells(panel)) == 23
