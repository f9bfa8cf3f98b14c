"""Makes `python -m tilewright` run the command line `tilewright`."""

from tilewright.cli.main import main

main()
