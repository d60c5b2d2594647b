"""Build the optional native kernels; everything else is in pyproject.toml.

``src/vhe/native`` becomes a plain shared library that ctypes loads: it uses nothing of Python, so
one wheel serves all versions. It is not built without a C compiler (GCC or Clang), or with
``VHE_NATIVE=0``; the package then works without it and its wheel is pure.
"""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

WINDOWS = sys.platform == "win32"
NATIVE = Path("src/vhe/native")


class BuildKernels(build_ext):
    """Builds a shared library instead of a Python module."""

    def initialize_options(self):
        super().initialize_options()
        if WINDOWS:  # the vector types are those of GCC
            self.compiler = "mingw32"

    def get_ext_filename(self, fullname):
        return os.path.join(*fullname.split(".")) + (".dll" if WINDOWS else ".so")

    def get_export_symbols(self, ext):
        return ext.export_symbols

    def get_libraries(self, ext):
        return ext.libraries


class WheelForAllPythons(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


def compiler() -> str | None:
    named = os.environ.get("CC", "").split()
    candidates = [*named[:1], "gcc"] if WINDOWS else [*named[:1], "cc", "gcc", "clang"]
    return next(filter(None, map(shutil.which, candidates)), None)


kernels = Extension(
    "vhe.native.kernels",
    sources=[(NATIVE / f"{level}.c").as_posix() for level in ("baseline", "avx2", "avx512")],
    depends=sorted(
        file.as_posix()
        for file in NATIVE.glob("*.[ch]")
        if file.stem not in ("baseline", "avx2", "avx512")
    ),
    # -g0: debug symbols would be most of the file
    extra_compile_args=[
        *("-O3", "-g0", "-std=gnu11", "-fvisibility=hidden"),
        # GCC keeps 32-byte vectors on a stack that Windows aligns to 16 bytes (GCC bug 54412)
        *(["-Wa,-muse-unaligned-vector-move"] if WINDOWS else []),
    ],
    extra_link_args=["-static-libgcc"] if WINDOWS else ["-lm"],
    optional=True,
)
setup(
    ext_modules=[kernels] if os.environ.get("VHE_NATIVE") != "0" and compiler() else [],
    cmdclass={"build_ext": BuildKernels, "bdist_wheel": WheelForAllPythons},
)
