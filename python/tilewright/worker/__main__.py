"""`python -m tilewright.worker` is the process in which the compilers run."""

from tilewright.worker.serving import main

main()
