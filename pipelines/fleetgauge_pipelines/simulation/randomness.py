"""One seed, and a generator of its own for every part of the simulation."""

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a generator is for; streams never meet, so that drawing more from one changes no other."""

    PROFILE = 0
    RELEASES = 1
    INCIDENTS = 2
    PACE = 3
    CLIENT = 4
    LEADER = 5
    CLIENT_SAMPLES = 6
    LEADER_SAMPLES = 7
    RUN = 8


def generator(seed: int, stream: Stream, *where: int) -> np.random.Generator:
    """The generator of one place, such as (cluster, week)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(stream, *where))))
