"""Four shapes of 64 x 64 pixels, two types of noise, and the noisy images as encoded graphs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spacy_sparsecrf.crf.graphs.encoded_graphs import EncodedGraph, GraphBuilder, Observed

Picture = NDArray[np.float64]
SIZE = 64
NOISES = ("gaussian", "bimodal")
# Standard deviation of the Gaussian noise on pixels of 0 and 1. Bimodal noise: means and standard
# deviations of the two modes of a black and of a white pixel, drawn with equal probability.
_DEVIATION = 0.3
_MODES = (((0.08, 0.03), (0.46, 0.03)), ((0.55, 0.02), (0.42, 0.10)))
# Tied weights: the two labels y = -1, 1 have one weight for each number, with opposite signs.
NODE_TIES = np.array([[-1.0], [1.0]])
PAIR_TIES = np.array([[1.0], [-1.0], [-1.0], [1.0]])


def shapes(size: int = SIZE) -> list[NDArray[np.int64]]:
    """Return a ring, a star, a pair of hooks and a house, each [size, size] of 0 and 1."""
    y, x = (np.mgrid[:size, :size] + 0.5) / size - 0.5
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    ring = (radius < 0.4) & (radius > 0.22)
    star = radius < 0.27 + 0.13 * np.cos(5.0 * angle)
    hooks = (np.abs(np.abs(x) - 0.2) < 0.08) & (np.abs(y) < 0.38)
    hooks |= (np.abs(y - np.where(x < 0.0, 0.3, -0.3)) < 0.08) & (np.abs(x) < 0.4)
    roof = (np.abs(x) < y + 0.4) & (y < -0.05)
    house = roof | ((np.abs(x) < 0.28) & (y >= -0.05) & (y < 0.4))
    house &= ~((np.abs(x) < 0.07) & (y > 0.15))
    return [each.astype(np.int64) for each in (ring, star, hooks, house)]


def noisy(truth: NDArray[np.int64], noise: str, rng: np.random.Generator) -> Picture:
    """Return the grey values of an image with noise."""
    if noise == "gaussian":
        return truth + _DEVIATION * rng.normal(size=truth.shape)
    means, deviations = np.moveaxis(np.array(_MODES), -1, 0)
    mode = rng.integers(0, 2, truth.shape)
    return means[truth, mode] + deviations[truth, mode] * rng.normal(size=truth.shape)


def lattice(height: int, width: int) -> NDArray[np.int64]:
    """Return the edges of a lattice, [E, 2]."""
    place = np.arange(height * width).reshape(height, width)
    pairs = (place[:, :-1], place[:, 1:]), (place[:-1], place[1:])
    return np.concatenate([np.column_stack((a.ravel(), b.ravel())) for a, b in pairs])


def _observed(numbers: Sequence[Picture], first: int) -> Observed:
    values = np.column_stack(numbers)
    names = np.arange(first, first + len(numbers), dtype=np.uint64)
    return Observed(np.tile(names, (len(values), 1)), values)


def encode(
    truths: Sequence[NDArray[np.int64]], greys: Sequence[Picture], with_edges: bool = True
) -> EncodedGraph:
    """Encode images as graphs with h_i = [1, s_i] and h_ij = [1, |s_i - s_j|]."""
    builder = GraphBuilder()
    for truth, grey in zip(truths, greys, strict=True):
        ends, s = lattice(*truth.shape), grey.ravel()
        if not with_edges:
            ends = ends[:0]
        steps = np.abs(s[ends[:, 0]] - s[ends[:, 1]])
        nodes = _observed((np.ones(s.size), s), 1)
        builder.add(nodes, ends, _observed((np.ones(len(ends)), steps), 3), truth.ravel())
    return builder.build(NODE_TIES, PAIR_TIES)
