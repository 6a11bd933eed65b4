"""Where forecasts start: a jet that rolls up, and a flow that should stay as it is.

The jet is the initial-value problem of Galewsky, Scott and Polvani (2004, Tellus A 56, 429-440): a narrow westerly jet
at middle latitudes of the northern hemisphere, a depth in balance with it, and a small bump of the depth that sets off
its barotropic instability. Member 0 is the paper's. The bump of other members is a little higher or lower, and lies a
little off, by numbers drawn from a generator that is seeded with the member's number: the jets start as one, and roll
up differently.

The steady flow is case 2 of Williamson and others (1992, Journal of Computational Physics 102, 211-224).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from harmonics import Floats, Harmonics
from shallow_water import GRAVITY_M_S2, RADIUS_M, ROTATION_PER_S, State

from junctura.errors import InvalidArgument

MEAN_DEPTH_M = 10_000.0
_FASTEST_M_S = 80.0
_SOUTH, _NORTH = np.pi / 7, np.pi / 2 - np.pi / 7
_SEED = 2004
# Points of the quadrature between two rows of the grid: more than round-off can tell apart.
_POINTS = 12


@dataclass(frozen=True)
class Bump:
    """What is added to the depth; widths are those at which it has decayed by e."""

    height_m: float = 120.0
    latitude: float = np.pi / 4
    longitude: float = 0.0
    width: float = 1 / 3
    height_width: float = 1 / 15

    def on(self, latitudes: Floats, longitudes: Floats) -> Floats:
        """In metres, on rows and columns in radians."""
        east = np.mod(longitudes - self.longitude + np.pi, 2 * np.pi) - np.pi
        across = np.cos(latitudes) * np.exp(-(((self.latitude - latitudes) / self.height_width) ** 2))
        bump: Floats = self.height_m * across[:, None] * np.exp(-((east / self.width) ** 2))
        return bump


def bump_of(member: int) -> Bump:
    """The bump of a member of the ensemble.

    Member 0 has the paper's. For others the height is multiplied by exp(0.3 a), and the centre is moved by 2 b degrees
    of latitude and 5 c degrees of longitude, a, b and c normally distributed.
    """
    if member < 0:
        raise InvalidArgument(f"member {member}", "members are counted from 0, the control")
    if member == 0:
        return Bump()
    height, north, east = np.random.default_rng([_SEED, member]).normal(size=3)
    return Bump(
        height_m=120.0 * float(np.exp(0.3 * height)),
        latitude=np.pi / 4 + float(np.radians(2 * north)),
        longitude=float(np.radians(5 * east)),
    )


def jet(harmonics: Harmonics, bump: Bump | None = None) -> State:
    """The jet, with a bump or without; its mean depth before the bump is 10 km."""
    latitudes = np.arcsin(harmonics.sine)
    depth = _balanced(_jet_wind, latitudes)
    depth += MEAN_DEPTH_M - harmonics.weights @ depth
    here = harmonics.rows
    field = np.repeat(depth[here, None], harmonics.shape[1], axis=1)
    if bump is not None:
        field = field + bump.on(latitudes[here], harmonics.longitudes)
    return _state(harmonics, _jet_wind(latitudes[here]), field)


def steady(harmonics: Harmonics) -> State:
    """Solid rotation towards the east, once around in 12 days, with the depth in balance with it."""
    speed = 2 * np.pi * RADIUS_M / (12 * 86400)
    sine = harmonics.sine[harmonics.rows]
    drop = (RADIUS_M * ROTATION_PER_S * speed + speed**2 / 2) * sine**2
    depth = np.repeat((2.94e4 - drop)[:, None] / GRAVITY_M_S2, harmonics.shape[1], axis=1)
    return _state(harmonics, speed * np.sqrt(1 - sine**2), depth)


def _jet_wind(latitudes: Floats) -> Floats:
    """Smooth, and zero outside its two edges."""
    inside = (latitudes > _SOUTH) & (latitudes < _NORTH)
    between = np.where(inside, (latitudes - _SOUTH) * (latitudes - _NORTH), -1.0)
    peak = np.exp(-4 / (_NORTH - _SOUTH) ** 2)
    wind: Floats = np.where(inside, _FASTEST_M_S / peak * np.exp(1 / between), 0.0)
    return wind


def _balanced(wind: Callable[[Floats], Floats], latitudes: Floats) -> Floats:
    """The depth, m, but for a constant, whose gradient keeps a zonal wind: integrated along a meridian, row by row."""
    edges = np.concatenate([[np.pi / 2], latitudes])
    nodes, weights = np.polynomial.legendre.leggauss(_POINTS)
    half = np.diff(edges)[:, None] / 2
    places = (edges[:-1, None] + edges[1:, None]) / 2 + half * nodes
    speed = wind(places)
    slope = speed * (2 * ROTATION_PER_S * np.sin(places) * RADIUS_M + np.tan(places) * speed)
    depth: Floats = -np.cumsum((slope * half) @ weights) / GRAVITY_M_S2
    return depth


def _state(harmonics: Harmonics, wind: Floats, depth: Floats) -> State:
    u = np.repeat(wind[:, None], harmonics.shape[1], axis=1)
    vorticity, divergence = harmonics.vorticity_and_divergence(u, np.zeros_like(u))
    geopotential = harmonics.analyse(GRAVITY_M_S2 * depth) * harmonics.kept
    return State(np.stack([vorticity, divergence, geopotential]))
