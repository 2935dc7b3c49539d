"""Measure exact Local Cloaking of avatar data: counts per original and their summary, from two projected tables.

Importing the package loads neither pyspark nor numpy; each name below is loaded at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloaking.errors import CloakingError as CloakingError
    from cloaking.kernel import AvatarIndex as AvatarIndex
    from cloaking.measure import LocalCloaking as LocalCloaking
    from cloaking.measure import local_cloaking as local_cloaking
    from cloaking.results import Summary as Summary

__version__ = "0.1.0"

_HOME = {
    "AvatarIndex": "cloaking.kernel",
    "CloakingError": "cloaking.errors",
    "LocalCloaking": "cloaking.measure",
    "Summary": "cloaking.results",
    "local_cloaking": "cloaking.measure",
}

__all__ = ["AvatarIndex", "CloakingError", "LocalCloaking", "Summary", "__version__", "local_cloaking"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cloaking' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
