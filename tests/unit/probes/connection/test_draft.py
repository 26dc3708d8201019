import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetgauge_core.fleet import load
from fleetgauge_probes.connection.draft import Draft, refusal, render

IDS = st.from_regex(r"[A-Za-z0-9._-]{1,128}", fullmatch=True)
BOOTSTRAPS = st.from_regex(r"[a-z0-9.]{1,20}:[0-9]{1,5}(,[a-z0-9.]{1,20}:[0-9]{1,5}){0,2}", fullmatch=True)
CLUSTERS = st.lists(
    st.fixed_dictionaries({"id": IDS, "bootstrap": BOOTSTRAPS}),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one["id"],
)
LAKES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).map(lambda text: f"/{text}")


@given(clusters=CLUSTERS, telemetry=BOOTSTRAPS, lake=LAKES, for_editor=st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_file_says_what_was_answered(
    tmp_path: Path, clusters: list[dict[str, str]], telemetry: str, lake: str, for_editor: bool
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(render(Draft(clusters, telemetry, lake), path.name, for_editor), encoding="utf-8")
    fleet = load(path)
    assert [{"id": one.id, "bootstrap": one.bootstrap} for one in fleet.clusters] == clusters
    assert fleet.telemetry
    assert fleet.telemetry.bootstrap == telemetry
    assert fleet.lake == str(Path(lake).resolve())


def test_what_it_offers_in_comments_is_allowed(tmp_path: Path) -> None:
    draft = Draft([{"id": "orders", "bootstrap": "orders:9092"}], "telemetry:9092", "./lake")
    text = render(draft, "fleet.yaml", for_editor=False)
    offered, count = re.subn(r"^( *)# ((?:  )?- \{|[a-z_]+:(?: [\"{]|$))", r"\1\2", text, flags=re.MULTILINE)
    path = tmp_path / "fleet.yaml"
    path.write_text(offered, encoding="utf-8")
    fleet = load(path)
    assert count == 6
    assert (fleet.clusters[0].tier, fleet.clusters[0].cloud) == ("multi-zone", "aws")
    assert (fleet.clusters[0].region, fleet.clusters[0].labels) == ("eu-west-1", {"team": "checkout"})
    assert fleet.notifiers


def test_the_first_line_leads_an_editor_to_the_schema_only_where_that_helps() -> None:
    draft = Draft([{"id": "a", "bootstrap": "a:1"}], "a:1", "./lake")
    with_schema = render(draft, "fleet.yaml", for_editor=True)
    assert with_schema.splitlines()[0] == "# yaml-language-server: $schema=fleet.schema.json"
    assert "yaml-language-server" not in render(draft, "fleet.yaml", for_editor=False)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"clusters": [{"id": "a", "bootstrap": "a:1"}]}, None),
        ({"clusters": [{"id": "a b", "bootstrap": "a:1"}]}, "wanted: 1 to 128 letters"),
        ({"clusters": [{"id": "a", "bootstrap": "a:1"}] * 2}, "id 'a' is given twice"),
    ],
)
def test_a_refusal_is_the_models(document: dict[str, object], reason: str | None) -> None:
    found = refusal(document)
    assert found is None if reason is None else reason in (found or "")
