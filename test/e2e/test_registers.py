"""Tests that the registers which plans assume for contractions on GPUs are those that NVIDIA's assembler needs."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tilewright.ir.opt import find_opt
from tilewright.system.ptxas import KernelResources, find_ptxas, read_resources

pytestmark = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")

_REGISTERS_OF_SM, _REGISTER_UNIT = 65536, 8  # of an H200; a warp gets whole units for each lane


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product of M x K and K x N, and the tile of a block; a bias and a GELU follow."""

    kernel: str
    element: str
    tile: tuple[int, int]
    threads: int
    units: tuple[int, int]
    stages: int
    slices: int = 1
    rows_of_terms: bool = False
    """True if K is innermost in the right operand."""
    odd: bool = False
    """True if sizes are not multiples of anything."""

    @property
    def sizes(self) -> tuple[int, int, int]:
        return (2045, 1021, 16379) if self.odd else (2048, 1024, 16384)

    @property
    def copied_bytes(self) -> int:
        """Bytes that a thread copies at once where rows have odd lengths: an element, or the two in a word."""
        return {"i8": 1, "bf16": 4 if self.kernel.startswith("mma") else 2, "f32": 4}[self.element]

    @property
    def gemm(self) -> str:
        line = 64 if self.kernel.startswith("fma") or self.slices > 1 else 128  # bytes of a step
        step = self.slices * line // {"i8": 1, "f16": 2, "bf16": 2, "f32": 4}[self.element]
        m, n = self.units
        tiling = f"m = {m}, n = {n}, k_slices = {self.slices}, step = {step}, stages = {self.stages}"
        copy = self.copied_bytes if self.odd else 16
        return f"#tile.gemm<{tiling}, lhs_copy = {copy}, rhs_copy = {copy}>"

    def __str__(self) -> str:
        tile = "x".join(map(str, self.tile))
        odd = " odd" if self.odd else ""
        return f"{self.kernel} {self.element} {tile} of {self.threads}{odd}"

    def program(self, name: str) -> str:
        m, k, n = self.sizes
        (tm, tn), element = self.tile, self.element
        exact = element == "i8"
        sums, zero = ("i32", "0 : i32") if exact else ("f32", "0.0 : f32")
        multiply, add = ("arith.muli", "arith.addi") if exact else ("arith.mulf", "arith.addf")
        widen, u, v = "arith.extsi" if exact else "arith.extf", "%u", "%v"
        widened = ""
        if element != "f32":
            u, v = "%ue", "%ve"
            widened = "\n".join(f"{x}e = {widen} {x} : {element} to {sums}" for x in ("%u", "%v"))
        right, at = (f"{n}x{k}", "(n, k)") if self.rows_of_terms else (f"{k}x{n}", "(k, n)")
        tile, y = f"!tile.slice<{tm}x{tn}x{sums}, block>", f"!tile.slice<{m}x{n}xf32, global>"
        dims = "affine_map<(m, n, k)[s0, s1, s2] ->"
        number = "%t = arith.sitofp %s : i32 to f32" if exact else "%t = arith.addf %s, %w : f32"
        return f"""
tile.program @{name} outputs 1 {{
^bb0(%a: !tile.slice<{m}x{k}x{element}, global>, %b: !tile.slice<{right}x{element}, global>,
     %c: !tile.slice<{n}xf32, global>, %y: {y}):
  tile.parallel [{m}, {n}] tiles [{tm}, {tn}] workgroups {-(-m // tm) * -(-n // tn)}
      attributes {{tile.threads = {self.threads} : i64, tile.group = 0 : i64}} {{
  tile.walk {{
  ^bb0(%i: index, %j: index):
    %kept = tile.alloc : {tile}
    tile.compute [{m}, {n}, {k}] sizes [{tm}, {tn}, {k}] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%kept : {tile}) at [{dims} (m - s0, n - s1)>]
        inits [{zero}] kinds ["add"] attributes {{micro_kernel = "{self.kernel}", gemm = {self.gemm}}} {{
    ^bb0(%s: {sums}):
      %u = tile.load %a at {dims} (m, k)> : !tile.slice<{m}x{k}x{element}, global> -> {element}
      %v = tile.load %b at {dims} {at}> : !tile.slice<{right}x{element}, global> -> {element}
      {widened}
      %p = {multiply} {u}, {v} : {sums}
      %n = {add} %s, %p : {sums}
      tile.yield %n : {sums}
    }}
    tile.sync <block>
    tile.compute [{m}, {n}] sizes [{tm}, {tn}] offsets [0, 1] (%i, %j) vector 1 reduce [] {{
      %s = tile.load %kept at affine_map<(m, n)[s0, s1] -> (m - s0, n - s1)> : {tile} -> {sums}
      %w = tile.load %c at affine_map<(m, n)[s0, s1] -> (n)> : !tile.slice<{n}xf32, global> -> f32
      {number}
      %x = arith.addf %t, %w : f32
      %e = math.erf %x : f32
      %g = arith.mulf %e, %x : f32
      tile.store %g, %y at affine_map<(m, n)[s0, s1] -> (m, n)> : f32, {y}
      tile.yield
    }}
  }}
  }}
}}
"""


def _products() -> list[Product]:
    tiles = {
        "mma_sync-16x8": (
            ((16, 64), 64, (1, 2), 5),
            ((64, 64), 128, (2, 2), 5),
            ((128, 128), 256, (2, 4), 3),
        ),
        "wgmma-64x8": (
            ((64, 64), 128, (1, 1), 4),
            ((128, 128), 256, (2, 1), 3),
            ((128, 256), 256, (2, 1), 4),
        ),
        "fma-8x8": (((64, 64), 128, (8, 16), 4), ((128, 128), 256, (16, 16), 4)),
    }
    products = [
        Product(
            kernel=kernel,
            element=element,
            tile=tile,
            threads=threads,
            units=units,
            stages=stages,
            rows_of_terms=element == "i8",
        )
        for kernel, element in (
            ("mma_sync-16x8", "f16"),
            ("mma_sync-16x8", "i8"),
            ("wgmma-64x8", "f16"),
            ("wgmma-64x8", "i8"),
            ("fma-8x8", "f32"),
        )
        for tile, threads, units, stages in tiles[kernel]
    ]
    tf32 = (("mma_tf32-16x8", (128, 128), (2, 4), 3), ("wgmma_tf32-64x8", (128, 256), (2, 1), 4))
    products += [
        Product(
            kernel=kernel,
            element="f32",
            tile=tile,
            threads=256,
            units=units,
            stages=stages,
            rows_of_terms=True,
        )
        for kernel, tile, units, stages in tf32
    ]
    products += [  # several threads share K
        Product(
            kernel="mma_sync-16x8",
            element="f16",
            tile=(16, 32),
            threads=256,
            units=(1, 2),
            stages=4,
            slices=4,
        ),
        Product(
            kernel="fma-8x8", element="f32", tile=(16, 16), threads=256, units=(4, 8), stages=3, slices=8
        ),
    ]
    products += [
        Product(
            kernel=kernel,
            element=element,
            tile=tile,
            threads=threads,
            units=units,
            stages=stages,
            odd=True,
            rows_of_terms=True,
        )
        for kernel, element, tile, threads, units, stages in (
            ("mma_sync-16x8", "bf16", (16, 64), 64, (1, 2), 5),
            ("mma_tf32-16x8", "f32", (64, 64), 64, (1, 2), 5),
            ("wgmma-64x8", "bf16", (128, 128), 256, (2, 1), 3),
            ("wgmma-64x8", "i8", (64, 256), 128, (1, 1), 4),
            ("wgmma_tf32-64x8", "f32", (128, 128), 128, (1, 1), 4),
        )
    ]
    return products


def _resources(programs: str, folder: Path) -> tuple[dict[str, KernelResources], str]:
    """Assembles programs; returns what their kernels need, and their PTX."""
    source, ptx = folder / "products.mlir", folder / "products.ptx"
    source.write_text(f"module {{\nmodule @tilewright_kernels {{{programs}}}\n}}\n")
    pipeline = f"builtin.module(tilewright-cuda-codegen{{target=cuda:h200 object-path={ptx}}})"
    subprocess.run([find_opt(), str(source), f"--pass-pipeline={pipeline}", "-o", "/dev/null"], check=True)
    command = [str(find_ptxas()), "-arch=sm_90a", "-v", str(ptx), "-o", "/dev/null"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "serialized" not in said
    return read_resources(said), ptx.read_text()


def test_blocks_share_an_sm_as_planned_without_spills(tmp_path: Path) -> None:
    """The assembler is told how many blocks per SM the plan assumes, and finds registers for them."""
    products = {f"product_{number}": product for number, product in enumerate(_products())}
    found_resources, ptx = _resources(
        "".join(product.program(name) for name, product in products.items()), tmp_path
    )
    found = re.findall(r"\.entry (\w+)\((?:.*\n)*?\.minnctapersm (\d+)", ptx)
    planned = {name: int(blocks) for name, blocks in found}
    assert planned.keys() == products.keys()
    assert found_resources.keys() == products.keys()
    for name, resources in found_resources.items():
        product, taken = products[name], -(-resources.registers // _REGISTER_UNIT) * _REGISTER_UNIT
        assert resources.spill_bytes == 0, f"{product}: {resources}"
        assert _REGISTERS_OF_SM // (taken * product.threads) >= planned[name], f"{product}: {resources}"
    two = {str(product) for name, product in products.items() if planned[name] == 2}
    assert "wgmma-64x8 f16 128x128 of 256" in two
    assert "wgmma-64x8 f16 128x256 of 256" not in two


def _chain(products: int) -> str:
    """Returns a program whose blocks compute several products one after the other, each from the one before."""
    held, sums = "!tile.slice<16x152xf16, block>", "!tile.slice<16x152xf32, block>"
    weights, rows = "!tile.slice<144x144xf16, global>", "!tile.slice<64x144xf16, global>"
    local, dims = "affine_map<(m, n)[s0, s1] -> (m - s0, n)>", "affine_map<(m, n, k)[s0, s1, s2] ->"
    given = f"%x at {dims} (m, k)> : {rows}"
    body = ""
    for i in range(products):
        result = f"%y at affine_map<(m, n)[s0, s1] -> (m, n)> : f16, {rows}"
        if i + 1 < products:
            body += f"%h{i} = tile.alloc : {held}\n"
            result = f"%h{i} at {local} : f16, {held}"
        body += f"""
    %s{i} = tile.alloc : {sums}
    tile.compute [64, 144, 144] sizes [16, 144, 144] offsets [0] (%i) vector 1 reduce [2]
        into (%s{i} : {sums}) at [{dims} (m - s0, n)>] inits [0.0 : f32] kinds ["add"]
        attributes {{micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 4, step = 64, stages = 3>}} {{
    ^bb0(%s: f32):
      %u = tile.load {given} -> f16
      %v = tile.load %w{i} at {dims} (k, n)> : {weights} -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }}
    tile.sync <block>
    tile.compute [64, 144] sizes [16, 144] offsets [0] (%i) vector 1 reduce [] {{
      %s = tile.load %s{i} at {local} : {sums} -> f32
      %t = arith.truncf %s : f32 to f16
      tile.store %t, {result}
      tile.yield
    }}
"""
        if i + 1 < products:
            body += "tile.sync <block>\n"
        given = f"%h{i} at {dims} (m - s0, k)> : {held}"
    arguments = ", ".join(f"%w{i}: {weights}" for i in range(products))
    return f"""
tile.program @chain_{products} outputs 1 {{
^bb0(%x: {rows}, {arguments}, %y: {rows}):
  tile.parallel [64] tiles [16] workgroups 4 attributes {{tile.threads = 128 : i64, tile.group = 0 : i64}} {{
  tile.walk {{
  ^bb0(%i: index):
    {body}
  }}
  }}
}}
"""


def test_registers_do_not_grow_with_the_products_of_a_block(tmp_path: Path) -> None:
    """Addresses of one product would have registers until the last one, if products shared them."""
    found, _ = _resources(_chain(2) + _chain(9), tmp_path)
    assert found["chain_9"].registers <= found["chain_2"].registers
