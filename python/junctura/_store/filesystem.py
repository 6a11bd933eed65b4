"""A store as an fsspec file system: programs that use fsspec open objects, without a copy on disk.

The levels of a key are folders, under the name of the schema, and an object is a file:

```text
mars/class=od,expver=0001,stream=oper,date=20261120,time=0000/type=fc,levtype=pl/step=6,levelist=500,param=t
```
A level without attributes is ``-``; characters with a meaning in paths are escaped as in URLs (``%2F``).
"""

from __future__ import annotations

import io
import re
from typing import Any, ClassVar, NoReturn, TypeAlias
from urllib.parse import quote, unquote

from fsspec.spec import AbstractFileSystem

from junctura._native import Listing, Store, Stored
from junctura.errors import InvalidSelector

# One level of a key: quoted braces are no delimiters.
_LEVEL = re.compile(r'\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}')
# Unescaped characters of a path; all others have a meaning in paths, in patterns or in URLs.
_PLAIN = "=,:+._-"
# Schema, dataset and collocation.
_FOLDERS = 3


class StoreFileSystem(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """The objects of a store as files that can be read: ``fsspec.open("junctura://mars/…", store="archive")``.

    It has one snapshot, for as long as the store keeps snapshots; `invalidate_cache` takes a new one.

    Parameters
    ----------
    store
        Path or URL of the store, as for `junctura.Store`.
    selector
        Selector of its objects; by default all.
    verified
        Whether a file is verified against its checksum on first read, which reads the whole file. False: only requested
        ranges are read, and corruption is not detected.

    """

    protocol: ClassVar[str] = "junctura"
    root_marker: ClassVar[str] = ""
    # fsspec would share the first instance, whose snapshot becomes stale.
    cachable: ClassVar[bool] = False

    def __init__(self, store: str, selector: str = "", *, verified: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.store, self.selector, self.verified = Store(store), selector, verified
        self.invalidate_cache()

    def invalidate_cache(self, path: str | None = None) -> None:
        """Takes a new snapshot, whatever the path."""
        super().invalidate_cache(path)
        self._snapshot = self.store.snapshot()
        self._tree: _Tree | None = None

    @property
    def _folders(self) -> _Tree:
        # Opening files does not need a list of all.
        if self._tree is None:
            self._tree = _tree(self._snapshot.list(self.selector))
        return self._tree

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Returns the contents of a folder, or the object itself."""
        path = self._strip_protocol(path)
        found = self._folders.get(path)
        if found is None:
            infos = [self.info(path)]
        else:
            infos = [_info(f"{path}/{name}".lstrip("/"), found[name]) for name in sorted(found)]
        return infos if detail else [info["name"] for info in infos]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Returns name, size and type; for an object its key, checksum and commit, too."""
        path = self._strip_protocol(path)
        if path.count("/") == _FOLDERS:
            return _info(path, self.stored(path))
        if path not in self._folders:
            raise FileNotFoundError(path)
        return _info(path, None)

    def stored(self, path: str) -> Stored:
        """Returns the object.

        Raises
        ------
        FileNotFoundError
            No object has this path.

        """
        path = self._strip_protocol(path)
        schema, *levels = path.split("/")
        said = [unquote(level) for level in levels if level != "-"]
        try:
            found = self._snapshot.list(",".join(filter(None, [self.selector, *said])))
        except InvalidSelector as error:
            raise FileNotFoundError(path) from error
        # Other objects may have more attributes than this one.
        for stored in found:
            if stored.schema.name == schema and path_of(stored) == path:
                return stored
        raise FileNotFoundError(path)

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode not in ("rb", "r", "rt"):
            self._refuse(path)
        return super().open(path, mode, **options)

    def _open(self, path: str, *_: Any, **__: Any) -> io.BufferedReader:
        return self.stored(path).open(verified=self.verified)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        stored = self.stored(path)
        if start is None and end is None:
            return stored.read()
        wanted = range(stored.nbytes)[start:end]
        if not self.verified:
            return stored._read_range(wanted.start, len(wanted))
        with stored.open() as file:
            file.seek(wanted.start)
            # Verified before Python reserves memory for all objects.
            file.peek(1)
            return file.read(len(wanted))

    def created(self, path: str) -> NoReturn:
        raise NotImplementedError(f"{path}: a store does not say when an object was archived")

    modified = created

    def _refuse(self, path: str, *_: Any, **__: Any) -> NoReturn:
        raise OSError(f"{path}: objects are archived with their attributes, by junctura.Store.archive")

    pipe_file = mkdir = makedirs = rmdir = _rm = cp_file = touch = _refuse


# The contents of folders, by folder; folders are not objects.
_Tree: TypeAlias = dict[str, dict[str, Stored | None]]


def _tree(listing: Listing) -> _Tree:
    tree: _Tree = {"": {}}
    for stored in listing:
        folder = ""
        *folders, name = path_of(stored).split("/")
        for inner in folders:
            tree[folder][inner] = None
            folder = f"{folder}/{inner}" if folder else inner
            tree.setdefault(folder, {})
        tree[folder][name] = stored
    return tree


def _info(path: str, stored: Stored | None) -> dict[str, Any]:
    if stored is None:
        return {"name": path, "size": 0, "type": "directory"}
    about = {"key": stored.key, "checksum": stored.checksum, "commit": stored.commit}
    return {"name": path, "size": stored.nbytes, "type": "file", **about}


def path_of(stored: Stored) -> str:
    """Returns the path of an object: its schema, and the levels of its key."""
    return "/".join([stored.schema.name, *(quote(level, safe=_PLAIN) or "-" for level in _LEVEL.findall(stored.key))])
