"""The paths of copies, checksums and products for one level of instructions: ``isa.py portable|avx2``.

The caller sets JUNCTURA_ISA, which the code obeys, and NPY_DISABLE_CPU_FEATURES for NumPy. A level that the processor
does not have is left out, and so is its highest one, which all other suites use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUST = ["junctura-copy/lib", "junctura-copy/integration"]
# Checksums of stores have two paths: with AVX-512, and without.
WITHOUT_AVX512 = ["junctura-store/lib"]
ARRAYS = ["junctura/facade", "arrays", "between", "handover"]
# Of interpolations one: the reference computes most of their time, and obeys none of the two variables.
INTERPOLATION = "tests/products/test_interpolate.py::test_results_have_the_bits_of_mir[O16]"
PRODUCTS = [INTERPOLATION, "tests/products/test_operations.py", "tests/products/test_decode.py"]
PYTHON = ["tests/python/test_arrays.py", "tests/python/test_arrays_vectors.py", "tests/python/test_field_simple.py"]


def main() -> int:
    level = sys.argv[1]
    flags = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
    if level == "avx2" and "avx2" not in flags:
        print("left out: this processor has no AVX2")
        return 0
    has_avx512 = "avx512f" in flags
    if level == "avx2" and not has_avx512:
        print("left out: AVX2 is the highest level of this processor, which all other suites use")
        return 0
    if os.environ.get("JUNCTURA_ISA") != level:
        print(f"failed: JUNCTURA_ISA must be {level}")
        return 1
    rust = [sys.executable, "tests/rust.py"]
    programs = RUST + (WITHOUT_AVX512 if level == "portable" and has_avx512 else [])
    commands = [[*rust, program] for program in programs]
    commands.append([*rust, *ARRAYS])
    commands.append([sys.executable, "-m", "pytest", "-q", *PRODUCTS, *PYTHON])
    return max(subprocess.run(command, cwd=ROOT, check=False).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main())
