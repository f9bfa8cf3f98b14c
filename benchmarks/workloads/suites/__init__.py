"""Tables of the workloads, and the functions that make workloads of them: a file for each kind of model."""
