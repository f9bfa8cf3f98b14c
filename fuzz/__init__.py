"""Fuzzing: random graphs held to float64, and hostile inputs that must end in an error and never in a crash.

`graphs` draws models that every correct compiler agrees on, `op_table` lists single operators, `judge` compiles and
compares, `hunt` does so for many seeds in processes that may die, `shrink` makes a small model of one that fails, and
`hostile` feeds the front end and `tilewright-opt` what no exporter would write. `python -m fuzz` is all of it.
"""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
"""Where the package `fuzz` is found."""
