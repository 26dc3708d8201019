import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetgauge_core.fleet import load_fleet
from fleetgauge_probes.connection.draft import FleetDraft, find_validation_error, render_fleet_file

IDS = st.from_regex(r"[A-Za-z0-9._-]{1,128}", fullmatch=True)
_HOSTS = st.from_regex(r"[a-z][a-z0-9]{0,9}(\.[a-z0-9]{1,9}){0,2}", fullmatch=True)
_ADDRESSES = st.builds("{}:{}".format, _HOSTS, st.integers(1, 65535))
BOOTSTRAPS = st.lists(_ADDRESSES, min_size=1, max_size=3).map(",".join)
CLUSTERS = st.lists(
    st.fixed_dictionaries({"id": IDS, "bootstrap": BOOTSTRAPS}),
    min_size=1,
    max_size=4,
    unique_by=lambda cluster: cluster["id"],
)
LAKES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).map(lambda text: f"/{text}")


@given(clusters=CLUSTERS, telemetry=BOOTSTRAPS, lake=LAKES, has_schema=st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_rendered_file_has_the_values_of_its_draft(
    tmp_path: Path, clusters: list[dict[str, str]], telemetry: str, lake: str, has_schema: bool
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(
        render_fleet_file(FleetDraft(clusters, telemetry, lake), path.name, has_schema), encoding="utf-8"
    )
    fleet = load_fleet(path)
    assert [{"id": cluster.id, "bootstrap": cluster.bootstrap} for cluster in fleet.clusters] == clusters
    assert fleet.telemetry
    assert fleet.telemetry.bootstrap == telemetry
    assert fleet.lake == str(Path(lake).resolve())


def test_the_optional_keys_in_comments_are_valid(tmp_path: Path) -> None:
    draft = FleetDraft([{"id": "orders", "bootstrap": "orders:9092"}], "telemetry:9092", "./lake")
    text = render_fleet_file(draft, "fleet.yaml", has_schema=False)
    uncommented, count = re.subn(
        r"^( *)# ((?:  )?- \{|[a-z_]+:(?: [\"{]|$))", r"\1\2", text, flags=re.MULTILINE
    )
    path = tmp_path / "fleet.yaml"
    path.write_text(uncommented, encoding="utf-8")
    fleet = load_fleet(path)
    assert count == 6
    assert (fleet.clusters[0].tier, fleet.clusters[0].cloud) == ("multi-zone", "aws")
    assert (fleet.clusters[0].region, fleet.clusters[0].labels) == ("eu-west-1", {"team": "checkout"})
    assert fleet.notifiers


def test_the_first_line_refers_to_the_schema_only_if_there_is_one() -> None:
    draft = FleetDraft([{"id": "a", "bootstrap": "a:1"}], "a:1", "./lake")
    with_schema = render_fleet_file(draft, "fleet.yaml", has_schema=True)
    assert with_schema.splitlines()[0] == "# yaml-language-server: $schema=fleet.schema.json"
    assert "yaml-language-server" not in render_fleet_file(draft, "fleet.yaml", has_schema=False)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"clusters": [{"id": "a", "bootstrap": "a:1"}]}, None),
        ({"clusters": [{"id": "a b", "bootstrap": "a:1"}]}, "expected 1 to 128 letters"),
        ({"clusters": [{"id": "a", "bootstrap": "a:1"}] * 2}, "id 'a' is given twice"),
    ],
)
def test_a_validation_error_is_that_of_the_fleet_model(
    document: dict[str, object], reason: str | None
) -> None:
    message = find_validation_error(document)
    assert message is None if reason is None else reason in (message or "")
