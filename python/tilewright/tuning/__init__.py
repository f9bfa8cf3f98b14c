"""Plans chosen by the clock: `tilewright.tune` measures, a database keeps what won, compilations use it.

- `subprograms`: what is tuned, and the key under which its decision is found again
- `service`: plans compiled, in the worker
- `timer`: how long they take
- `database`: what was measured, in SQLite
- `substitute`: decisions carried into the plan of a whole program
- `tuner`: all of it in order
- `deciding`, `paired`: which plan won, and by how much
- `bundle`, `on_gpu`: the same for a GPU somewhere else
"""
