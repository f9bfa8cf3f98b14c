"""A check of our kernels on a machine with a GPU, which has neither a network nor a compiler.

`bundle` gathers here what it needs in one folder; `start`, which lies there as `run.py`, runs it there.
"""
