"""From a model to a program: the stages of `tilewright.compile`."""
