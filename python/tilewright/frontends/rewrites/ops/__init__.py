"""Rules, one file for each op or family; each file has a tuple `RULES`."""
