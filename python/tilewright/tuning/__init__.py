"""Plans chosen by measurement: `tilewright.tune` measures, a database stores the winners, and compilations use them.

- `subprograms`: the units of tuning, which are subprograms and regions, and the keys of their decisions
- `service`: compiles plans in the worker
- `timer`: times them
- `database`: stores measurements and decisions in SQLite
- `contest`: compiles and times plans that compute the same, and decides
- `substitute`: carries decisions into the plan of a whole program
- `regions`: contests across the borders of a plan's kernels
- `tuner`: runs all of it in order
- `deciding`, `paired`: determine which plan won, and by how much
- `bundle`, `on_gpu`: do the same for a GPU in another machine
"""
