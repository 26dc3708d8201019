import fleetgauge_probes.quantile as agents
from fleetgauge_pipelines.slo import quantile as pipelines


def test_the_service_levels_rank_as_the_agents_pulses_do() -> None:
    for name in pipelines.__all__:
        assert getattr(pipelines, name) is getattr(agents, name)
