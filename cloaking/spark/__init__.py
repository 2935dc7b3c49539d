"""Spark spreads: two projected tables are linked, checked, counted in parallel and summarised."""
