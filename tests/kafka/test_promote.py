"""`fleetgauge recover promote` on real regions: it promotes when all holds, and refuses what does not."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from deltalake import DeltaTable

from fleetgauge_core.fleet import load
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import REGIONS
from fleetgauge_operations.recovery.cli import recover
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.primaries.lease_store_reader import claims_now, findings_now
from fleetgauge_operations.recovery.primaries.live import scene_of
from fleetgauge_operations.recovery.primaries.plan.primary_lease import Claim
from fleetgauge_operations.recovery.primaries.plan.primary_state import Kind
from fleetgauge_operations.recovery.primaries.plan.promotion import Name
from fleetgauge_operations.recovery.primaries.promotion_executor import Outcome, Promoter
from fleetgauge_operations.recovery.regions import regions_of
from tests.regions import DEADLINE_S, admin, call, client, merged, produce
from tests.waiting import wait_until

#: What no mirror takes.
LABELS = "fleetgauge.labels"
TOPIC, GROUP = "orders", "billing-1"
LOST_AT_MOST = 10


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """Records of both regions in both aggregates, of which a group has read some in north-all."""
    with LocalFleet(tmp_path_factory.mktemp("promote"), REGIONS.clusters, mirrors=REGIONS.mirrors) as fleet:
        merged(fleet, TOPIC, 60)
        reader = Consumer({**client(fleet, "north-all"), "group.id": GROUP, "enable.auto.commit": False})
        reader.commit(offsets=[TopicPartition(TOPIC, 0, 100)], asynchronous=False)
        reader.close()
        yield fleet


def described(fleet: LocalFleet, folder: Path, primaries: Mapping[str, Any]) -> Path:
    document = yaml.safe_load(fleet.fleet_file.read_text())
    document["lake"] = str(folder / "lake")
    document["recovery"] |= {
        "limits": {"stale_s": 30, "lost_records": LOST_AT_MOST},
        "capacities": [{"cluster": "south-all", "records_per_s": 1e6}],
        "primaries": {"services": {"billing": "billing-.*"}, **primaries},
    }
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def python(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n{body}\n")
    path.chmod(0o755)
    return str(path)


def file_store(folder: Path, *claims: Mapping[str, Any]) -> dict[str, Any]:
    """Claims in a file; who is promoted is the only one that is left."""
    kept = folder / "claims.json"
    kept.write_text(json.dumps(claims))
    file = f"kept = pathlib.Path({str(kept)!r})"
    lists = python(folder, "list", f"{file}\nprint(kept.read_text())")
    promotes = python(
        folder,
        "promote",
        f"{file}\nservice, _, to, epoch = sys.argv[1:]\n"
        "kept.write_text(json.dumps([{'service': service, 'primary': to, 'epoch': int(epoch)}]))",
    )
    return {"command": [lists], "promote": [promotes, "{service}", "{from}", "{to}", "{epoch}"]}


def promote(config: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    way = ("promote", "--service", "billing", "--from", "north-all", "--to", "south-all", "--json")
    done = CliRunner().invoke(recover, [*way, *arguments, "--config", str(config)])
    assert done.stdout, done.output
    return done.exit_code, json.loads(done.stdout)


def promoted(config: Path, *arguments: str) -> dict[str, Any]:
    """When a dry run has said that it may be."""
    found: dict[str, Any] = {}

    def may_be() -> bool:
        found.update(promote(config)[1])
        return bool(found["allowed"])

    wait_until(may_be, DEADLINE_S, "all to hold")
    assert found["outcome"] == "DRY_RUN"
    code, done = promote(config, "--execute", *arguments)
    assert (code, done["outcome"]) == (0, "PROMOTED"), done
    return done


def against(found: Mapping[str, Any]) -> set[str]:
    return {one["name"] for one in found["preconditions"] if not one["holds"]}


def words(found: Mapping[str, Any], name: str) -> str:
    return next(str(one["words"]) for one in found["preconditions"] if one["name"] == name)


def claim(primary: str, epoch: int) -> dict[str, Any]:
    return {"service": "billing", "primary": primary, "epoch": epoch}


def write_labels(fleet: LocalFleet, labels: Sequence[tuple[str, Mapping[str, Any] | None]]) -> None:
    """In a transaction, as a store that compares and swaps may."""
    producer = Producer({**client(fleet, "south"), "transactional.id": "labels"})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    for key, value in labels:
        producer.produce(LABELS, json.dumps(value).encode() if value else None, key=key.encode())
    producer.commit_transaction(DEADLINE_S)


def test_it_promotes_when_all_holds_by_the_labels_of_a_topic(regions: LocalFleet, tmp_path: Path) -> None:
    compacted = NewTopic(LABELS, 1, 1, config={"cleanup.policy": "compact"})
    making = admin(regions, "south")
    making.create_topics([compacted])[LABELS].result(DEADLINE_S)
    write_labels(regions, [("was", claim("south", 2)), ("billing", claim("north", 2))])
    write_labels(regions, [("was", None), ("billing", claim("north", 3))])
    hook = python(
        tmp_path,
        "promote",
        "from confluent_kafka import Producer\n"
        f"producer = Producer({client(regions, 'south')!r})\n"
        "label = {'service': sys.argv[1], 'primary': sys.argv[2], 'epoch': int(sys.argv[3])}\n"
        f"producer.produce({LABELS!r}, json.dumps(label).encode(), key=sys.argv[1].encode())\n"
        f"sys.exit(producer.flush({DEADLINE_S}))",
    )
    store = {"topic": LABELS, "cluster": "south", "promote": [hook, "{service}", "{to}", "{epoch}"]}
    config = described(regions, tmp_path, store)
    # A promotion writes no offsets: until somebody has, its groups are not ready.
    wait_until(lambda: against(promote(config)[1]) == {"groups"}, DEADLINE_S, "all else to hold")
    assert "not_written" in words(promote(config)[1], "groups")
    assert call(config, "sync", "--group", GROUP, "--execute").exit_code == 0
    done = promoted(config, "--author", "an operator")
    assert (done["epoch"], against(done)) == (4, set())
    fleet = load(config)
    assert fleet.recovery.primaries is not None
    assert claims_now(fleet.recovery.primaries, fleet) == (Claim("billing", "south-all", 4),)
    code, again = promote(config, "--execute")
    assert (code, again["outcome"], against(again)) == (1, "REFUSED", {"label"})
    # What was refused has changed nothing, and is no act.
    (row,) = DeltaTable(str(tmp_path / "lake/ops/actions")).to_pyarrow_table().to_pylist()
    assert (row["kind"], row["cluster_id"], row["author"]) == ("promote", "south-all", "an operator")
    assert row["reason"].startswith("billing: PROMOTED: the primary is now south-all at epoch 4")
    assert row["starts"] <= row["ends"]
    assert (
        json.loads(row["detail"]).items() >= {"service": "billing", "from": "north-all", "epoch": 4}.items()
    )


def test_it_refuses_while_two_claim_to_be_the_primary(regions: LocalFleet, tmp_path: Path) -> None:
    store = file_store(tmp_path, claim("north", 3), claim("south", 4))
    config = described(regions, tmp_path, store)
    code, found = promote(config, "--execute")
    assert (code, found["outcome"]) == (1, "REFUSED")
    assert words(found, "label").startswith("2 claim it: south at epoch 4, without an end; north at epoch 3")
    assert len(json.loads((tmp_path / "claims.json").read_text())) == 2


def test_it_refuses_while_the_mirror_into_the_new_one_hangs(regions: LocalFleet, tmp_path: Path) -> None:
    config = described(regions, tmp_path, file_store(tmp_path, claim("north-all", 3)))
    regions.fault_mirror("hang", "south-all")
    try:
        produce(regions, "north", TOPIC, ["on its way"] * (5 * LOST_AT_MOST))
        found: dict[str, Any] = {}

        def is_known() -> bool:
            found.update(promote(config, "--execute")[1])
            return {"aggregates", "input_lag"} <= against(found)

        wait_until(is_known, DEADLINE_S, "the difference to be known")
        assert found["outcome"] == "REFUSED"
        assert f"at most {5 * LOST_AT_MOST} records on their way into south-all" in words(found, "input_lag")
        assert f"orders/0 of north is {5 * LOST_AT_MOST} records apart" in words(found, "aggregates")
        assert json.loads((tmp_path / "claims.json").read_text()) == [claim("north-all", 3)]
    finally:
        regions.fault_mirror("heal", "south-all")
    regions.wait_ready()


def test_a_dead_regions_primary_is_told_and_another_one_may_be_made(
    regions: LocalFleet, tmp_path: Path
) -> None:
    config = described(regions, tmp_path, file_store(tmp_path, claim("north", 3)))
    for cluster in ("north", "north-all"):
        regions.fault("kill", cluster, 1)
    rest = [Name.AGGREGATES, Name.INPUT_LAG, Name.GROUPS, Name.HEADROOM]
    with regions_of(config, None) as seen:
        scene = scene_of(seen, "billing", Pair("north-all", "south-all"), True, time.sleep)
        done = Promoter(scene, time.monotonic, time.sleep).run(True, rest)
        file_store(tmp_path, claim("north", 3))
        (finding,) = findings_now(seen.fleet, seen.collector.answering, datetime.now(UTC))
    assert (finding.kind, finding.service) == (Kind.PRIMARY_DEAD, "billing")
    assert finding.words == "north at epoch 3, without an end: nothing answers of north, north-all"
    assert done.outcome is Outcome.PROMOTED
    assert done.words == "the primary is now south-all at epoch 4, without an end"
    by_name = {one.name: one for one in done.promotion.preconditions}
    assert by_name[Name.LABEL].holds
    assert by_name[Name.INPUT_LAG].words.startswith("nobody knows of north now")
    assert [by_name[one].holds for one in (Name.INPUT_LAG, Name.GROUPS, Name.HEADROOM)] == [None] * 3
