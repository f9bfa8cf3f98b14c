"""Interfaces to the operating system and machine: cores, time, files, processes, and NVIDIA's assembler."""
