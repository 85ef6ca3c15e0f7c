"""Checks of solvers, losses, features and targets.

Each check takes an object that is ready for use, and raises an AssertionError with the violated
requirement if it fails. Random numbers have fixed seeds.
"""

from .numerics import check_loss, check_solver
from .reading import check_features, check_target

__all__ = ["check_features", "check_loss", "check_solver", "check_target"]
