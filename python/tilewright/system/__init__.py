"""What this machine offers a process: cores, time, files, other processes, and NVIDIA's assembler."""
