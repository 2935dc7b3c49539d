"""Projection makes the space: PCA, MCA or FAMD fitted on the originals, and coordinates of raw tables in it."""

from cloaking.projection.fit import fit
from cloaking.projection.model import Model
from cloaking.projection.transform import check, transform

__all__ = ["Model", "check", "fit", "transform"]
