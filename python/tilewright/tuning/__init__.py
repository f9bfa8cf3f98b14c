"""Plans chosen by measurement: `tilewright.tune` measures, a database stores the winners, and compilations use them.

- `subprograms`: the units of tuning, and the keys of their decisions
- `service`: compiles plans in the worker
- `timer`: times them
- `database`: stores measurements and decisions in SQLite
- `substitute`: carries decisions into the plan of a whole program
- `tuner`: runs all of it in order
- `deciding`, `paired`: determine which plan won, and by how much
- `bundle`, `on_gpu`: do the same for a GPU in another machine
"""
