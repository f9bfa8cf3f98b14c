"""The command line; `tilewright.cli.main.main` assembles the commands."""
