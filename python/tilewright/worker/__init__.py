"""The process in which the compilers run, and the protocol between it and the user's process."""
