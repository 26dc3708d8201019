"""The module that collects each list."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

from tests.promises import (
    cli_promises,
    environment_promises,
    exit_code_promises,
    fleet_yaml_promises,
    json_promises,
    message_promises,
    metric_promises,
    packaging_promises,
    stored_promises,
    table_promises,
    topic_promises,
    url_promises,
    word_promises,
)

#: Compared by ``python -m tests.promises --check``.
QUICK: Mapping[str, ModuleType] = {
    "cli": cli_promises,
    "environment": environment_promises,
    "exit_codes": exit_code_promises,
    "fleet_yaml": fleet_yaml_promises,
    "json_keys": json_promises,
    "messages": message_promises,
    "metrics": metric_promises,
    "packaging": packaging_promises,
    "stored_json": stored_promises,
    "tables": table_promises,
    "topics": topic_promises,
    "urls": url_promises,
    "words": word_promises,
}
#: Compared by tests/unit/promises, as they write a lake or import Dash or Spark.
_SLOW = {"json_keys_of_runs": "run_promises", "pages": "page_promises", "spark": "spark_promises"}


def slow() -> Mapping[str, ModuleType]:
    """Import and return the modules that need a lake, Dash or Spark."""
    return {name: import_module(f"tests.promises.{module}") for name, module in _SLOW.items()}
