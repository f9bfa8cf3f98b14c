"""What the commands of the command line do; `tilewright.cli` puts them together."""
