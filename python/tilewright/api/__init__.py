"""The stages of `tilewright.compile`, which turn a model into a program."""
