"""Fit PCA, MCA or FAMD on the originals, and project raw tables into that space."""

from cloaking.projection.fit import fit
from cloaking.projection.model import Model
from cloaking.projection.transform import check, transform

__all__ = ["Model", "check", "fit", "transform"]
