"""Installs the package into the environment of this Python, with the extension that cargo has compiled.

``maturin develop`` does the same, but compiles the extension again, with other features. The package stays in
``python/``; the environment gets a path to it, its metadata, and the command's entry points.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import sysconfig
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SOURCE = ROOT / "python"


def entry_points(project: dict[str, Any]) -> str:
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    parts = []
    for group, entries in groups.items():
        parts.append(f"[{group}]")
        parts += [f"{name} = {place}" for name, place in entries.items()]
    return "\n".join(parts) + "\n"


def metadata(project: dict[str, Any], version: str) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}"]
    lines += [f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {needed}" for needed in project["dependencies"]]
    for extra, packages in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {needed}; extra == "{extra}"' for needed in packages)]
    return "\n".join(lines) + "\n"


def command(scripts: Path, name: str, place: str) -> Path:
    module, _, function = place.partition(":")
    path = scripts / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!{sys.executable}\nimport sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    extension = TARGET / sys.argv[1] / "lib_native.so"
    for old in (SOURCE / "junctura").glob("_native*.so"):
        old.unlink()
    shutil.copy2(extension, SOURCE / "junctura/_native.abi3.so")
    places = {name: Path(sysconfig.get_path(name)) for name in ("purelib", "scripts")}
    for old in places["purelib"].glob("junctura-*.dist-info"):
        shutil.rmtree(old)
    path = places["purelib"] / "junctura.pth"
    path.write_text(f"{SOURCE}\n")
    info = places["purelib"] / f"junctura-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata(project, version))
    (info / "entry_points.txt").write_text(entry_points(project))
    (info / "INSTALLER").write_text("tools/develop.py\n")
    commands = [command(places["scripts"], name, place) for name, place in project["scripts"].items()]
    files = [path, *info.iterdir(), info / "RECORD", *commands]
    (info / "RECORD").write_text("".join(f"{os.path.relpath(file, places['purelib'])},,\n" for file in files))
    print(f"develop: junctura {version} from {extension}")


if __name__ == "__main__":
    main()
