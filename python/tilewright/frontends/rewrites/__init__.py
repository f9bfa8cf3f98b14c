"""Rewrites of a model before IREE imports it: what IREE refuses, or would compute wrongly, is spelled out."""
