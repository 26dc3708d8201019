"""Simulate a realistic fleet's history from a seed, with numpy alone: no file is read, and no clock.

Everything is a function of the seed, the cluster and the week. So any week of any cluster can be simulated
alone, in any order and on any machine, with the same result.

A probe's latency follows a Frechet distribution around the median of its minute: ``median * (depth / ln 2) **
-TAIL_EXPONENT``, where ``depth`` is standard exponential. The slowest probes of a minute's 100 are drawn
directly as order statistics (Renyi's representation by exponential spacings). The other probes are drawn,
conditional on them, only where single probes are needed. So cluster-minutes, broker-minutes and probe records
come from the same draws and agree to the microsecond.
"""

from fleetgauge_pipelines.simulation.changes import SimulatedChange
from fleetgauge_pipelines.simulation.fleet import SimulatedFleet
from fleetgauge_pipelines.simulation.incidents import IncidentKind, SimulatedIncident
from fleetgauge_pipelines.simulation.simulated_week import SimulatedWeek

__all__ = ["IncidentKind", "SimulatedChange", "SimulatedFleet", "SimulatedIncident", "SimulatedWeek"]
