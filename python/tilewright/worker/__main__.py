"""Runs the process of the compilers: `python -m tilewright.worker`."""

from tilewright.worker.serving import main

main()
