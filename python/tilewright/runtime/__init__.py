"""Compiled programs: storing, loading and running them."""
