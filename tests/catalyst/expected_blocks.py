"""What ``programs/blocks.c`` hands over, computed from its description."""

from __future__ import annotations

from typing import Any

import numpy as np


def tetrahedra(rank: int, step: int) -> dict[str, Any]:
    points = np.array([[0, 1, 0, 0, 1], [0, 0, 1, 0, 1], [0, 0, 0, 1, 1]], "<f8")
    return {
        "coordsets": {"coords": {"type": "explicit", "values": dict(zip("xyz", points, strict=True))}},
        "topologies": {
            "tets": {
                "type": "unstructured",
                "coordset": "coords",
                "elements": {"shape": "tet", "connectivity": np.array([0, 1, 2, 3, 1, 2, 3, 4], "<i8")},
            }
        },
        "fields": {
            "T": {"association": "vertex", "topology": "tets", "values": 300 + np.arange(5.0) + 0.125 * step},
            "number": {
                "association": "element",
                "topology": "tets",
                "values": np.array([2 * rank, 2 * rank + 1], "<i4"),
            },
            "flags": {"association": "element", "topology": "tets", "values": np.array([7, 250], "<u1")},
        },
        "state": {"note": '"caf\u00e9"\\\n\ufffd'},
    }


def blocks(rank: int, step: int, shift: int = 0) -> dict[str, Any]:
    k, j, i = np.mgrid[0:3, 0:4, 0:5].reshape(3, -1).astype("<f8")
    three = np.array([3], "<i8")
    half = np.array([0.5], "<f8")
    vertices = np.arange(60, dtype="<f4")
    return {
        "box": {
            "coordsets": {
                "coords": {
                    "type": "explicit",
                    "values": {"x": i + 10 * rank + shift, "y": j * 0.5, "z": k * 0.25},
                }
            },
            "topologies": {
                "box": {
                    "type": "structured",
                    "coordset": "coords",
                    "elements": {
                        "dims": {axis: np.array([n], "<i4") for axis, n in zip("ijk", (4, 3, 2), strict=True)}
                    },
                }
            },
            "fields": {
                "rho": {
                    "association": "element",
                    "topology": "box",
                    "values": 1000.0 * rank + 10 * step + np.arange(24.0),
                },
                "velocity": {
                    "association": "vertex",
                    "topology": "box",
                    "values": {name: vertices + np.float32(100 * c + step) for c, name in enumerate("uvw")},
                },
            },
        },
        "grid": {
            "coordsets": {
                "coords": {
                    "type": "uniform",
                    "dims": {"i": three, "j": three, "k": three},
                    "spacing": {"dx": half, "dy": half, "dz": half},
                }
            },
            "topologies": {"grid": {"type": "uniform", "coordset": "coords"}},
            "fields": {"p": {"association": "element", "topology": "grid", "values": -np.arange(8.0) - step}},
        },
        "tets": tetrahedra(rank, step),
    }


def assert_equal(found: Any, expected: Any, path: str = "") -> None:
    """Same names in the same order, same types, same bits."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), path
        assert list(found) == list(expected), path
        for name in expected:
            assert_equal(found[name], expected[name], f"{path}/{name}")
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype, path
        np.testing.assert_array_equal(found, expected, err_msg=path)
    else:
        assert found == expected, path
