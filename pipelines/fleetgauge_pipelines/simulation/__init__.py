"""A believable fleet's history, made from a seed: pure numpy, no file, no clock.

Everything is a function of the seed and of where it lies, so any cluster's any
week can be made alone, in any order and on any machine, and comes out the same.

A probe's latency follows a Frechet distribution around the minute's median:
``median * (depth / ln 2) ** -TAIL`` with ``depth`` standard exponential. The
slowest few of a minute's 100 probes are drawn as what they are, the order
statistics (Renyi's spacings); the others, drawn only where somebody looks at
single probes, lie beyond them. So the minutes of many weeks, the broker-minutes
under them and whole probe records are one draw seen from three distances, and
agree to the microsecond.
"""

from fleetgauge_pipelines.simulation.fleet import SimulatedFleet
from fleetgauge_pipelines.simulation.incidents import Incident, Kind
from fleetgauge_pipelines.simulation.part import Part

__all__ = ["Incident", "Kind", "Part", "SimulatedFleet"]
