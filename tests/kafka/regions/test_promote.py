"""`fleetgauge recover promote` on real regions: promotion if all preconditions hold, else refusal."""

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

from fleetgauge_core.fleet import load_fleet
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.recovery.cli import recover
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.primaries.lease_store_reader import read_leases, read_primary_findings
from fleetgauge_operations.recovery.primaries.plan.precondition_name import PreconditionName
from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLease
from fleetgauge_operations.recovery.primaries.plan.primary_state import PrimaryFindingKind
from fleetgauge_operations.recovery.primaries.promotion_context import create_promotion_context
from fleetgauge_operations.recovery.primaries.promotion_executor import PromotionExecutor, PromotionOutcome
from fleetgauge_operations.recovery.recovery_context import open_recovery
from tests.regions import (
    DEADLINE_S,
    client_settings,
    create_admin_client,
    create_replicated_topic,
    produce,
    run_recover,
)
from tests.waiting import wait_until

#: A topic that no mirror replicates.
LABELS = "fleetgauge.labels"
TOPIC, GROUP = "billed", "billing-1"
MAX_LOST_RECORDS = 10


@pytest.fixture(scope="module", autouse=True)
def group(regions: LocalFleet) -> Iterator[None]:
    """Both aggregates hold the records of both regions; a group has read some of them in north-all."""
    create_replicated_topic(regions, TOPIC, 60)
    reader = Consumer(
        {**client_settings(regions, "north-all"), "group.id": GROUP, "enable.auto.commit": False}
    )
    reader.commit(offsets=[TopicPartition(TOPIC, 0, 100)], asynchronous=False)
    reader.close()
    yield
    for cluster in ("north", "north-all"):
        regions.fault("heal", cluster, 1)
    regions.wait_ready()


def write_fleet_file(fleet: LocalFleet, folder: Path, primaries: Mapping[str, Any]) -> Path:
    document = yaml.safe_load(fleet.fleet_file.read_text())
    document["lake"] = str(folder / "lake")
    document["recovery"] |= {
        "limits": {"stale_s": 30, "lost_records": MAX_LOST_RECORDS},
        "capacities": [{"cluster": "south-all", "records_per_s": 1e6}],
        "primaries": {"services": {"billing": "billing-.*"}, **primaries},
    }
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def write_script(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n{body}\n")
    path.chmod(0o755)
    return str(path)


def create_file_store(folder: Path, *leases: Mapping[str, Any]) -> dict[str, Any]:
    """Return a lease store that keeps leases in a file; a promotion replaces all of them."""
    leases_file = folder / "leases.json"
    leases_file.write_text(json.dumps(leases))
    file = f"leases = pathlib.Path({str(leases_file)!r})"
    list_script = write_script(folder, "list", f"{file}\nprint(leases.read_text())")
    promote_script = write_script(
        folder,
        "promote",
        f"{file}\nservice, _, to, epoch = sys.argv[1:]\n"
        "leases.write_text(json.dumps([{'service': service, 'primary': to, 'epoch': int(epoch)}]))",
    )
    return {"command": [list_script], "promote": [promote_script, "{service}", "{from}", "{to}", "{epoch}"]}


def promote(config: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    command = ("promote", "--service", "billing", "--from", "north-all", "--to", "south-all", "--json")
    result = CliRunner().invoke(recover, [*command, *arguments, "--config", str(config)])
    assert result.stdout, result.output
    return result.exit_code, json.loads(result.stdout)


def promote_when_allowed(config: Path, *arguments: str) -> dict[str, Any]:
    """Promote once a dry run allows it; return the JSON result."""
    dry_run: dict[str, Any] = {}

    def is_allowed() -> bool:
        dry_run.update(promote(config)[1])
        return bool(dry_run["allowed"])

    wait_until(is_allowed, DEADLINE_S, "all preconditions to hold")
    assert dry_run["outcome"] == "DRY_RUN"
    code, done = promote(config, "--execute", *arguments)
    assert (code, done["outcome"]) == (0, "PROMOTED"), done
    return done


def list_failed_preconditions(result: Mapping[str, Any]) -> set[str]:
    return {precondition["name"] for precondition in result["preconditions"] if not precondition["holds"]}


def find_explanation(result: Mapping[str, Any], name: str) -> str:
    return next(
        str(precondition["words"]) for precondition in result["preconditions"] if precondition["name"] == name
    )


def build_lease(primary: str, epoch: int) -> dict[str, Any]:
    return {"service": "billing", "primary": primary, "epoch": epoch}


def write_labels(fleet: LocalFleet, labels: Sequence[tuple[str, Mapping[str, Any] | None]]) -> None:
    """Write labels in a transaction, as a store with compare-and-swap may do."""
    producer = Producer({**client_settings(fleet, "south"), "transactional.id": "labels"})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    for key, value in labels:
        producer.produce(LABELS, json.dumps(value).encode() if value else None, key=key.encode())
    producer.commit_transaction(DEADLINE_S)


def test_a_promotion_writes_its_lease_to_a_topic_once_all_preconditions_hold(
    regions: LocalFleet, tmp_path: Path
) -> None:
    compacted = NewTopic(LABELS, 1, 1, config={"cleanup.policy": "compact"})
    label_admin = create_admin_client(regions, "south")
    label_admin.create_topics([compacted])[LABELS].result(DEADLINE_S)
    write_labels(regions, [("was", build_lease("south", 2)), ("billing", build_lease("north", 2))])
    write_labels(regions, [("was", None), ("billing", build_lease("north", 3))])
    hook = write_script(
        tmp_path,
        "promote",
        "from confluent_kafka import Producer\n"
        f"producer = Producer({client_settings(regions, 'south')!r})\n"
        "label = {'service': sys.argv[1], 'primary': sys.argv[2], 'epoch': int(sys.argv[3])}\n"
        f"producer.produce({LABELS!r}, json.dumps(label).encode(), key=sys.argv[1].encode())\n"
        f"sys.exit(producer.flush({DEADLINE_S}))",
    )
    store = {"topic": LABELS, "cluster": "south", "promote": [hook, "{service}", "{to}", "{epoch}"]}
    config = write_fleet_file(regions, tmp_path, store)
    # A promotion writes no offsets: its groups are not ready until they are synchronised.
    wait_until(
        lambda: list_failed_preconditions(promote(config)[1]) == {"groups"},
        DEADLINE_S,
        "the other preconditions to hold",
    )
    assert "not_written" in find_explanation(promote(config)[1], "groups")
    assert run_recover(config, "sync", "--group", GROUP, "--execute").exit_code == 0
    done = promote_when_allowed(config, "--author", "an operator")
    assert (done["epoch"], list_failed_preconditions(done)) == (4, set())
    fleet = load_fleet(config)
    assert fleet.recovery.primaries is not None
    assert read_leases(fleet.recovery.primaries, fleet) == (PrimaryLease("billing", "south-all", 4),)
    code, again = promote(config, "--execute")
    assert (code, again["outcome"], list_failed_preconditions(again)) == (1, "REFUSED", {"label"})
    # A refused promotion changes nothing, so it is not in the audit log.
    (row,) = DeltaTable(str(tmp_path / "lake/ops/actions")).to_pyarrow_table().to_pylist()
    assert (row["kind"], row["cluster_id"], row["author"]) == ("promote", "south-all", "an operator")
    assert row["reason"].startswith("billing: PROMOTED: the primary is now south-all at epoch 4")
    assert row["starts"] <= row["ends"]
    assert (
        json.loads(row["detail"]).items() >= {"service": "billing", "from": "north-all", "epoch": 4}.items()
    )


def test_a_promotion_is_refused_while_there_are_two_primaries(regions: LocalFleet, tmp_path: Path) -> None:
    store = create_file_store(tmp_path, build_lease("north", 3), build_lease("south", 4))
    config = write_fleet_file(regions, tmp_path, store)
    code, result = promote(config, "--execute")
    assert (code, result["outcome"]) == (1, "REFUSED")
    assert find_explanation(result, "label").startswith(
        "2 conflicting leases: south at epoch 4, without expiry; north at epoch 3"
    )
    assert len(json.loads((tmp_path / "leases.json").read_text())) == 2


def test_a_promotion_is_refused_while_the_mirror_into_the_new_primary_hangs(
    regions: LocalFleet, tmp_path: Path
) -> None:
    config = write_fleet_file(regions, tmp_path, create_file_store(tmp_path, build_lease("north-all", 3)))
    regions.fault_mirror("hang", "south-all")
    try:
        produce(regions, "north", TOPIC, ["not yet replicated"] * (5 * MAX_LOST_RECORDS))
        result: dict[str, Any] = {}

        def is_detected() -> bool:
            result.update(promote(config, "--execute")[1])
            return {"aggregates", "input_lag"} <= list_failed_preconditions(result)

        wait_until(is_detected, DEADLINE_S, "the difference to be detected")
        assert result["outcome"] == "REFUSED"
        assert (
            f"at most {5 * MAX_LOST_RECORDS} records are not yet replicated to south-all"
            in find_explanation(result, "input_lag")
        )
        assert f"{TOPIC}/0 of north differs by {5 * MAX_LOST_RECORDS} records" in find_explanation(
            result, "aggregates"
        )
        assert json.loads((tmp_path / "leases.json").read_text()) == [build_lease("north-all", 3)]
    finally:
        regions.fault_mirror("heal", "south-all")
    regions.wait_ready()


def test_a_dead_primary_is_reported_and_may_be_replaced_by_overriding_preconditions(
    regions: LocalFleet, tmp_path: Path
) -> None:
    config = write_fleet_file(regions, tmp_path, create_file_store(tmp_path, build_lease("north", 3)))
    for cluster in ("north", "north-all"):
        regions.fault("kill", cluster, 1)
    overridden = [
        PreconditionName.AGGREGATES,
        PreconditionName.INPUT_LAG,
        PreconditionName.GROUPS,
        PreconditionName.HEADROOM,
    ]
    with open_recovery(config, None) as recovery:
        context = create_promotion_context(
            recovery, "billing", ClusterPair("north-all", "south-all"), True, time.sleep
        )
        done = PromotionExecutor(context, time.monotonic, time.sleep).run(True, overridden)
        create_file_store(tmp_path, build_lease("north", 3))
        (finding,) = read_primary_findings(recovery.fleet, recovery.collector.reachable, datetime.now(UTC))
    assert (finding.kind, finding.service) == (PrimaryFindingKind.PRIMARY_DEAD, "billing")
    assert finding.message == "north at epoch 3, without expiry: unreachable: north, north-all"
    assert done.outcome is PromotionOutcome.PROMOTED
    assert done.message == "the primary is now south-all at epoch 4, without expiry"
    by_name = {precondition.name: precondition for precondition in done.plan.preconditions}
    assert by_name[PreconditionName.LABEL].holds
    assert by_name[PreconditionName.INPUT_LAG].explanation.startswith("the current lag of north is unknown")
    assert [
        by_name[name].holds
        for name in (PreconditionName.INPUT_LAG, PreconditionName.GROUPS, PreconditionName.HEADROOM)
    ] == [None] * 3
