# A recipe for Spack: copy it to packages/junctura/package.py of a repository of recipes. Only its syntax is tested.
# ruff: noqa

from spack.package import *


class Junctura(Package):
    """Hands scientific data over by meaning, through memory: the library for C, C++ and Fortran."""

    homepage = "https://github.com/junctura/junctura"
    git = "https://github.com/junctura/junctura.git"

    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("gmake", type="build")

    # One library for all programs, with MPI of any kind and without it.
    def install(self, spec, prefix):
        cargo = which("cargo")
        cargo("build", "--release", "--locked", "-p", "junctura-c", "-p", "junctura-cli")
        Executable("tools/install_c.sh")(prefix, "target/release")
        mkdirp(prefix.bin)
        install("target/release/junctura", prefix.bin)

    def setup_run_environment(self, env):
        env.prepend_path("PKG_CONFIG_PATH", self.prefix.lib.pkgconfig)
        env.prepend_path("CMAKE_PREFIX_PATH", self.prefix)
