"""A study of the solvers: what each reaches, by passes over the data and by processor time."""
