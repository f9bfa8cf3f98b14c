"""`python -m tilewright` is `tilewright`."""

from tilewright.cli import main

main()
