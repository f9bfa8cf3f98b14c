"""Fuzzing with random graphs, compared with float64, and with hostile inputs, which must give an error and never
crash.

`graphs` draws models on which all correct compilers agree, `op_table` lists single operators, `judge` compiles and
compares, `hunt` does so for many seeds in processes that may die, `shrink` reduces a failing model, and `hostile`
feeds the front end and `tilewright-opt` inputs that no exporter writes. `python -m fuzz` is the command line.
"""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
"""Folder that contains the package `fuzz`."""
