"""The command line: `tilewright.cli.main.main` puts the commands together."""
