"""The process in which the compilers run, and how the user's process talks to it."""
