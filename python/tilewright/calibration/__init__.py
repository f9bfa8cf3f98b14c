"""Descriptions of machines from measurements: of this processor, and of a GPU from the results of the GPU check."""
