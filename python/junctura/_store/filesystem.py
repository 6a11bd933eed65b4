"""A store as a file system of fsspec's: what opens files by fsspec opens objects, without a copy of them on a disk.

The levels of a key are folders, under the name of the schema, and an object is a file:

```text
mars/class=od,expver=0001,stream=oper,date=20261120,time=0000/type=fc,levtype=pl/step=6,levelist=500,param=t
```
A level without attributes is ``-``; what has a meaning in paths stands in them as in URLs (``%2F``).
"""

from __future__ import annotations

import io
import re
from typing import Any, ClassVar, NoReturn, TypeAlias
from urllib.parse import quote, unquote

from fsspec.spec import AbstractFileSystem

from junctura._native import Listing, Store, Stored
from junctura.errors import InvalidSelector

# One level of a key: braces in quotes are none.
_LEVEL = re.compile(r'\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}')
# What a path may have as it is; all else has a meaning in paths, in patterns or in URLs.
_PLAIN = "=,:+._-"
# Schema, dataset and collocation.
_FOLDERS = 3


class StoreFileSystem(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """The objects of a store as files that can be read: ``fsspec.open("junctura://mars/…", store="archive")``.

    It shows one snapshot, for as long as the store keeps snapshots; `invalidate_cache` takes a new one.

    Parameters
    ----------
    store
        Where the store is: a path or URL, as `junctura.Store` takes it.
    selector
        Which of its objects there are; by default all.
    verified
        Whether a file is compared with its checksum when it is first read, and so read as a whole. False: ranges are
        read as they are asked for, and nobody sees whether they are what was archived.

    """

    protocol: ClassVar[str] = "junctura"
    root_marker: ClassVar[str] = ""
    # fsspec would give everybody the first one that was opened, whose snapshot grows old.
    cachable: ClassVar[bool] = False

    def __init__(self, store: str, selector: str = "", *, verified: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.store, self.selector, self.verified = Store(store), selector, verified
        self.invalidate_cache()

    def invalidate_cache(self, path: str | None = None) -> None:
        """Takes a snapshot of what is there now, whatever the path."""
        super().invalidate_cache(path)
        self._snapshot = self.store.snapshot()
        self._tree: _Tree | None = None

    @property
    def _folders(self) -> _Tree:
        # Whoever only opens files does not need to know all that there are.
        if self._tree is None:
            self._tree = _tree(self._snapshot.list(self.selector))
        return self._tree

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What is in a folder, or the object itself."""
        path = self._strip_protocol(path)
        found = self._folders.get(path)
        if found is None:
            infos = [self.info(path)]
        else:
            infos = [_info(f"{path}/{name}".lstrip("/"), found[name]) for name in sorted(found)]
        return infos if detail else [info["name"] for info in infos]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Name, size and type; of an object its key, checksum and commit, too."""
        path = self._strip_protocol(path)
        if path.count("/") == _FOLDERS:
            return _info(path, self.stored(path))
        if path not in self._folders:
            raise FileNotFoundError(path)
        return _info(path, None)

    def stored(self, path: str) -> Stored:
        """The object.

        Raises
        ------
        FileNotFoundError
            There is none of this path.

        """
        path = self._strip_protocol(path)
        schema, *levels = path.split("/")
        said = [unquote(level) for level in levels if level != "-"]
        try:
            found = self._snapshot.list(",".join(filter(None, [self.selector, *said])))
        except InvalidSelector as error:
            raise FileNotFoundError(path) from error
        # Others may say more than this one.
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
            # Verified before Python reserves memory for all of them.
            file.peek(1)
            return file.read(len(wanted))

    def created(self, path: str) -> NoReturn:
        raise NotImplementedError(f"{path}: a store does not say when an object was archived")

    modified = created

    def _refuse(self, path: str, *_: Any, **__: Any) -> NoReturn:
        raise OSError(f"{path}: objects are archived with their attributes, by junctura.Store.archive")

    pipe_file = mkdir = makedirs = rmdir = _rm = cp_file = touch = _refuse


# By folders what is in them; folders are no objects.
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
    """Where an object is, as a file: its schema, and the levels of its key."""
    return "/".join([stored.schema.name, *(quote(level, safe=_PLAIN) or "-" for level in _LEVEL.findall(stored.key))])
