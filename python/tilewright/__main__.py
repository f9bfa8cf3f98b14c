"""`python -m tilewright` is `tilewright`."""

from tilewright.cli.main import main

main()
