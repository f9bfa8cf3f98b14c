"""Runs the fuzzer: `python -m fuzz`, in a checkout."""

from fuzz.cli import main

main()
