"""Checks of solvers, losses, features and targets, for packages that make some.

Each takes a part that is ready for use, and ends silently, or raises an AssertionError that says
what does not hold. What is drawn at random has fixed seeds.
"""

from .numerics import check_loss, check_solver
from .reading import check_features, check_target

__all__ = ["check_features", "check_loss", "check_solver", "check_target"]
