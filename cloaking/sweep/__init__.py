"""Sweep over k: simulate avatars by the published method at several k, and count each set exactly."""
