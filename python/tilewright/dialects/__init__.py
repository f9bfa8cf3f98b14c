"""Classes for the operations of the dialects that `tilewright.ir` builds: `tile`, `arith`, `func` and `math`.

`mlir-tblgen` generates them from the definitions of the dialects when the extension module is built.
"""
