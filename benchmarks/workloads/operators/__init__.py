"""Models of unrelated single operators, of which every result is compared: a file for each family of operators."""
