"""Independent random generators for every part of the simulation, all derived from one seed."""

from enum import IntEnum

import numpy as np


class RandomStream(IntEnum):
    """What a generator is used for; streams are independent, so drawing more from one changes no other."""

    PROFILE = 0
    RELEASES = 1
    INCIDENTS = 2
    PACE = 3
    CLIENT = 4
    LEADER = 5
    CLIENT_SAMPLES = 6
    LEADER_SAMPLES = 7
    RUN = 8
    CHANGES = 9
    FLEET_RELEASE = 10


def create_generator(seed: int, stream: RandomStream, *key: int) -> np.random.Generator:
    """Return the generator of a stream for a key such as (cluster, week)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(stream, *key))))
