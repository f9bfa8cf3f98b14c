"""Compiled programs: how they are stored, loaded and run."""
