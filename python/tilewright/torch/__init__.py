"""The back end of `torch.compile`: `torch.compile(model, backend="tilewright")`."""
