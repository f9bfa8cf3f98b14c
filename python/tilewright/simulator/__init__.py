"""Devices that are not here: kernels and whole programs on a simulated GPU, and traffic through simulated caches."""
