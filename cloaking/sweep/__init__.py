"""Sweep tries k: avatars simulated by the published method at several k, each set counted exactly."""
