"""`python -m fuzz` in a checkout runs the fuzzer."""

from fuzz.cli import main

main()
