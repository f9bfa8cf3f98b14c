"""Tests of how the end-to-end tests count launches."""

from __future__ import annotations

from compiled import Launches, count_launches

_STREAM = """
"builtin.module"() ({
  "util.initializer"() <{function_type = () -> ()}> ({
    "stream.cmd.dispatch"(%0) <{entry_points = [@weights::@transpose]}> : (index) -> ()
  }) : () -> ()
  "util.func"() <{sym_name = "main"}> ({
    %1 = "stream.cmd.execute"(%0) ({
      "stream.cmd.fill"(%2, %3) : (!stream.resource<transient>, i32) -> ()
      "stream.cmd.copy"(%2, %4) : (!stream.resource<transient>, !stream.resource<external>) -> ()
      "stream.cmd.concurrent"() ({
        "stream.cmd.dispatch"(%0) <{entry_points = [@tilewright_kernels::@reduce_0]}> : (index) -> ()
        "stream.cmd.dispatch"(%0) <{entry_points = [@main_dispatch_0::@matmul]}> : (index) -> ()
        "stream.cmd.dispatch"(%0) <{entry_points = [@main_dispatch_1::@transpose]}> : (index) -> ()
      }) : () -> ()
    }) : (index) -> !stream.timepoint
  }) : () -> ()
}) : () -> ()
"""


def test_counts_what_a_call_launches() -> None:
    """Launches of an initializer, which runs once at load, are not counted."""
    assert count_launches(_STREAM) == Launches(ours=1, others=2, copies=1, fills=1)
