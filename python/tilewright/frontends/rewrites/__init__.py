"""Rewrites of a model before IREE imports it; they replace ops that IREE refuses or miscomputes."""
