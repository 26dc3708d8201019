"""Pulses while the telemetry cluster's secrets cannot be read."""

from pathlib import Path

from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import keep_telemetry_topics
from fleetgauge_probes.agent.report_publisher import PulseProducer
from tests.unit.core.detection.pulses import broker, pulse


def test_pulses_fail_until_the_secret_of_the_telemetry_cluster_can_be_read(tmp_path: Path) -> None:
    secret, now_s = tmp_path / "password", [0.0]
    sasl = {"mechanism": "PLAIN", "username": "u", "password": {"file": str(secret)}}
    telemetry = Telemetry.model_validate({"bootstrap": "127.0.0.1:1", "security": {"sasl": sasl}})
    producer = PulseProducer(telemetry, keep_telemetry_topics(telemetry), lambda: now_s[0])
    producer.start()
    producer.send(pulse(0, broker(1)))
    assert producer.fault is not None
    assert "No such file" in producer.fault
    assert (producer.delivered, producer.failed) == (0, 1)
    secret.write_text("word")
    producer.send(pulse(5, broker(1)))
    # It is read again after a pause only.
    assert producer.failed == 2
    now_s[0] += 2
    producer.send(pulse(10, broker(1)))
    assert (producer.fault, producer.failed) == (None, 2)
    producer.stop()
    # What waited for a broker that is not there is discarded.
    assert producer.failed == 3
