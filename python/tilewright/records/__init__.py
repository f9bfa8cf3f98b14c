"""The data that the stages of a compilation pass to each other and to users: signatures, targets, plans, reports."""
