"""Puts the L2 in the state that a workload meets among others: full of data that others have read.

A large buffer is overwritten first. That also keeps the GPU busy while the host launches the timed work, so that the
GPU does not wait for the host between the two events of a sample. Then the buffer is read: lines that were only written
would have to go to memory during the workload and would use its bandwidth.
"""

from __future__ import annotations

from tilewright.runtime.cuda import Cuda

FLUSHED_BYTES = 512 << 20
"""Bytes of the buffer: more than any L2, and overwriting takes about as long as a few dozen launches on the host."""
LEAST_SECONDS = 2e-4
"""Least seconds that a GPU takes to fill the L2: it writes and reads a gigabyte."""
READER = "read_all"
_BLOCKS, _THREADS, _TURNS = 1024, 256, 128

# In each iteration, all threads together read 4 MB. The conditional store, which never happens, keeps the loads from
# being removed.
_CODE = f"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry {READER}(.param .u64 buffer)
{{
  .reg .pred %p; .reg .b32 %i, %v<4>, %t<3>; .reg .b64 %a;
  ld.param.u64 %a, [buffer];
  cvta.to.global.u64 %a, %a;
  mov.u32 %t0, %ctaid.x; mov.u32 %t1, %tid.x;
  mad.lo.u32 %t0, %t0, {_THREADS}, %t1;
  mad.wide.u32 %a, %t0, 16, %a;
  mov.u32 %i, {_TURNS}; mov.u32 %t2, 0;
again:
  ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%a];
  or.b32 %v0, %v0, %v1; or.b32 %v2, %v2, %v3; or.b32 %t2, %t2, %v0; or.b32 %t2, %t2, %v2;
  add.u64 %a, %a, {_BLOCKS * _THREADS * 16};
  sub.u32 %i, %i, 1;
  setp.ne.u32 %p, %i, 0;
  @%p bra again;
  setp.eq.u32 %p, %t2, 0xffffffff;
  @%p st.global.u32 [%a+-16], %t2;
  ret;
}}
"""


class ColdCache:
    """Callable that cools the L2 before a sample, in order with the launches on the default stream."""

    def __init__(self, cuda: Cuda) -> None:
        assert _BLOCKS * _THREADS * _TURNS * 16 == FLUSHED_BYTES
        self._buffer = cuda.allocate(FLUSHED_BYTES)
        self._read = cuda.load(_CODE.encode()).kernel(READER).bind(_BLOCKS, _THREADS, [self._buffer])

    def __call__(self) -> None:
        self._buffer.fill(0)
        self._read()
