"""`tilewright explain --policy all` and `tilewright explain --edges`."""

from __future__ import annotations

import json

from tilewright.cli.model import model_argument, refuse_compiled
from tilewright.records.options import CompileOptions


def explain_policies(model: str, target: str, options: CompileOptions, as_json: bool) -> str:
    """Returns what every policy makes of a model, as a table or JSON."""
    refuse_compiled(model, "a compiled program has one plan, and policies plan a model")
    from tilewright.api.policies import compare_policies, table

    plans = compare_policies(model_argument(model), target, options)
    return json.dumps([plan.to_json() for plan in plans], indent=2) if as_json else table(plans)


def explain_edges(model: str, target: str, options: CompileOptions, *, as_json: bool, verbose: bool) -> str:
    """Returns the choices of a policy for all edges of a model, as text or JSON."""
    refuse_compiled(model, "the other scopes of a compiled program's edges are not known")
    from tilewright.api.edges import choices_json, choices_text, explain_choices

    edges = explain_choices(model_argument(model), target, options)
    return json.dumps(choices_json(edges), indent=2) if as_json else choices_text(edges, verbose=verbose)
