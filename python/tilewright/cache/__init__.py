"""The compilation cache: programs on disk, found by the content of everything that they were compiled from."""
