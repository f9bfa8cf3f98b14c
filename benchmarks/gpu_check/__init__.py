"""Checks our kernels on a machine with a GPU but without network or compiler.

`bundle` collects what it needs in one folder; `start`, which is copied there as `run.py`, runs it.
"""
