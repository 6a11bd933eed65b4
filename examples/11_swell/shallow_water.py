"""The shallow-water equations on the rotating sphere, stepped in spectral space.

One layer of fluid with a free surface: the smallest model with the winds, waves and instabilities that make weather.
The state is vorticity, divergence and geopotential (gravity times the layer's depth) as spherical harmonics. In each
step winds and products are computed on the grid, and their curl and divergence in coefficients. Gravity waves, the
fastest motions, are treated implicitly, so that the step can be as long as the wind allows.

- Time: leapfrog, the linear gravity-wave terms averaged over the steps before and after; the filter of Williams
  (2009, Monthly Weather Review 137, 2538-2546) keeps even and odd steps together.
- Space: triangular truncation on a Gaussian grid without aliasing of quadratic terms.
- Diffusion of the eighth order, implicit; the scale at the truncation's end decays by e in a given time.
- Mass is conserved exactly: the coefficient that is the mean depth is never changed.

The equations in this form are those of Hack and Jakob (1992, NCAR Technical Note 343).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from harmonics import Coefficients, Floats, Harmonics

from junctura.errors import InvalidArgument

RADIUS_M = 6.37122e6
ROTATION_PER_S = 7.292e-5
GRAVITY_M_S2 = 9.80616
DIFFUSION_H = 1.0
TRUNCATION_MIN, TRUNCATION_MAX = 10, 341

_KEPT_BYTES = 24 << 20
_FILTER, _FILTER_SHARE = 0.02, 0.53
_DIFFUSION_ORDER = 8
# The step times the truncation: what the jet of 80 m/s allows, with room.
_STEP_TIMES_TRUNCATION_S = 56_700


class State(NamedTuple):
    """One time level: coefficients [vorticity 1/s, divergence 1/s, geopotential m^2/s^2], each [m, n - m]."""

    spectra: Coefficients

    @property
    def vorticity(self) -> Coefficients:
        vorticity: Coefficients = self.spectra[0]
        return vorticity

    @property
    def divergence(self) -> Coefficients:
        divergence: Coefficients = self.spectra[1]
        return divergence

    @property
    def geopotential(self) -> Coefficients:
        geopotential: Coefficients = self.spectra[2]
        return geopotential


class Gridded(NamedTuple):
    """The same on the rows that this rank has: wind towards east and north in m/s, the layer's depth in m."""

    u: Floats
    v: Floats
    depth: Floats


@dataclass(frozen=True)
class Budget:
    """What the equations conserve without diffusion: means over the sphere, of a fluid of density 1.

    Attributes
    ----------
    mass : float
        Depth, m.
    energy : float
        Kinetic and potential, m^3/s^2.
    enstrophy : float
        Potential enstrophy, 1/(m s^2).

    """

    mass: float
    energy: float
    enstrophy: float


def default_step_s(truncation: int) -> int:
    """The longest time step, in seconds, that is safe at a truncation and goes evenly into an hour."""
    return max(step for step in range(1, 3601) if 3600 % step == 0 and step * truncation <= _STEP_TIMES_TRUNCATION_S)


class Model:
    """A forecast in the making: two time levels and how to make the next.

    Attributes
    ----------
    steps_done : int
        Time steps since the start.
    now, before : State
        The latest two time levels; at the start they are the same.

    """

    def __init__(
        self, harmonics: Harmonics, start: State, *, step_s: int | None = None, diffusion_h: float = DIFFUSION_H
    ) -> None:
        truncation = harmonics.truncation
        if not TRUNCATION_MIN <= truncation <= TRUNCATION_MAX:
            raise InvalidArgument(f"truncation {truncation}", f"expected {TRUNCATION_MIN} to {TRUNCATION_MAX}")
        _keep_memory()
        self.harmonics = harmonics
        self.step_s = default_step_s(truncation) if step_s is None else step_s
        if self.step_s < 1 or diffusion_h <= 0:
            raise InvalidArgument(f"step {step_s} s, diffusion {diffusion_h} h", "both must be more than 0")
        self.now = self.before = start
        self.steps_done = 0
        self._mean = float(start.geopotential[0, 0].real)
        wave = harmonics.total * (harmonics.total + 1) / (truncation * (truncation + 1))
        self._damping = wave ** (_DIFFUSION_ORDER // 2) / (diffusion_h * 3600)
        self._laplacian = harmonics.laplacian * harmonics.kept
        self._coriolis = 2 * ROTATION_PER_S * harmonics.sine[harmonics.rows, None]

    @property
    def hour(self) -> float:
        """Since the start."""
        return self.steps_done * self.step_s / 3600

    def resume(self, steps_done: int, before: State, now: State) -> None:
        """Goes on from two time levels of an earlier run, bit for bit as that would have."""
        self.steps_done, self.before, self.now = steps_done, before, now

    def step(self) -> None:
        """One time step; the first is a single step forward, as there is no level before the start."""
        span = self.step_s if self.steps_done == 0 else 2 * self.step_s
        after = self._implicit(self._tendencies(self.now), span)
        if self.steps_done > 0:
            bend = (_FILTER / 2) * (self.before.spectra - 2 * self.now.spectra + after)
            # Not even round-off may change the mean depth.
            bend[:, 0, 0] = 0
            self.now = State(self.now.spectra + _FILTER_SHARE * bend)
            after += (_FILTER_SHARE - 1) * bend
        self.before, self.now = self.now, State(after)
        self.steps_done += 1

    def gridded(self) -> Gridded:
        """The latest time level; all ranks ask for it.

        Raises
        ------
        InvalidArgument
            The forecast has become unstable: the time step is too long.
        Conflict
            The ranks have not the same state.

        """
        ranks = self.harmonics.ranks
        ranks.check_same(self.now.spectra)
        depth = self.harmonics.synthesise(self.now.geopotential) / GRAVITY_M_S2
        if ranks.smallest(float(depth.min()) if np.isfinite(depth).all() else -np.inf) <= 0:
            raise InvalidArgument(f"step {self.step_s} s", f"the forecast is unstable at hour {self.hour:g}: take less")
        return Gridded(*self.harmonics.wind(self.now.vorticity, self.now.divergence), depth)

    def budget(self) -> Budget:
        """What should stay as it is; raises as `gridded` does."""
        u, v, depth = self.gridded()
        vorticity, mean = self.harmonics.synthesise(self.now.vorticity), self.harmonics.mean
        energy = mean(depth * (u**2 + v**2 + GRAVITY_M_S2 * depth) / 2)
        enstrophy = mean((vorticity + self._coriolis) ** 2 / (2 * depth))
        return Budget(float(self.now.geopotential[0, 0].real) / GRAVITY_M_S2, energy, enstrophy)

    def _tendencies(self, state: State) -> Coefficients:
        """All terms but the linear ones of gravity waves: [vorticity, divergence, geopotential] a second."""
        harmonics = self.harmonics
        anomaly = state.geopotential.copy()
        anomaly[0, 0] -= self._mean
        winds = harmonics.wind_images(state.vorticity, state.divergence)
        # Winds times the cosine of latitude.
        vorticity, anomaly_there, u, v = harmonics.synthesise(np.stack([state.vorticity, anomaly, *winds]))
        over, absolute = 1 / harmonics.cosine_squared, vorticity + self._coriolis
        absolute *= over
        anomaly_there *= over
        kinetic = (u * u + v * v) * (over / 2)
        products = [absolute * u, absolute * v, anomaly_there * u, anomaly_there * v, kinetic]
        spectra = harmonics.analyse(np.stack(products))
        tendencies = np.empty_like(state.spectra)
        tendencies[0] = -harmonics.divergence(spectra[0], spectra[1])
        tendencies[1] = harmonics.curl(spectra[0], spectra[1]) - self._laplacian * spectra[4]
        tendencies[2] = -harmonics.divergence(spectra[2], spectra[3])
        tendencies[:, 0, 0] = 0
        return tendencies

    def _implicit(self, tendencies: Coefficients, span: float) -> Coefficients:
        """The level after, from that before: gravity waves and diffusion are solved for, coefficient by coefficient."""
        old, half, laplacian = self.before, span / 2, self._laplacian
        after = self.before.spectra + span * tendencies
        after[1] -= half * laplacian * old.geopotential
        after[2] -= half * self._mean * old.divergence
        after[1] = (after[1] - half * laplacian * after[2]) / (1 - half**2 * self._mean * laplacian)
        after[2] -= half * self._mean * after[1]
        after /= 1 + span * self._damping
        # The mean depth: no term of the equations changes it.
        after[2, 0, 0] = old.geopotential[0, 0]
        return after


def _keep_memory() -> None:
    """Lets the C library keep memory for the arrays of the next step, which glibc otherwise gives back after each.

    Taking it anew costs as much time as half the arithmetic. Once a block of some size has been freed, glibc keeps
    blocks up to that size; other libraries are not disturbed by it.
    """
    np.empty(_KEPT_BYTES, np.uint8)
