"""Reads ecCodes' definition files into plain Python data.

The definitions travel inside the shared library of the `eccodeslib` wheel. `Library` takes them out of there;
`parse` turns one of them into a list of statements; `concepts` reads the rows of a concept file. Nothing here
knows what Junctura makes of it: see make_tables.py.
"""

import ctypes
import pathlib
import re
import sys

TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<str>"[^"]*"|'[^']*'|`[^`]*`)|(?P<num>\d+(?:\.\d*)?)"""
    r"""|(?P<id>[A-Za-z_][A-Za-z0-9_.]*)|(?P<op>==|!=|<=|>=|&&|\|\||[-+*/%^(){}\[\];:,=!<>|])"""
)
WORDS = {"is": "is", "isnot": "isnot", "and": "&&", "or": "||", "not": "!"}


class Library:
    """The definition and sample files inside the wheel."""

    def __init__(self):
        import eccodeslib

        path = pathlib.Path(eccodeslib.__file__).parent / "lib64" / "libeccodes_memfs.so"
        self.data = path.read_bytes()
        self.lib = ctypes.CDLL(str(path))
        self.libc = ctypes.CDLL(None)
        self.lib.codes_memfs_open.restype = ctypes.c_void_p
        self.lib.codes_memfs_open.argtypes = [ctypes.c_char_p]
        self.libc.fread.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
        self.libc.fclose.argtypes = [ctypes.c_void_p]
        names = {m.group(1).decode() for m in re.finditer(rb"/MEMFS/definitions/([\w./+\-]+)", self.data)}
        self.names = sorted(names)

    def read(self, name):
        """The text of a definition file, or None."""
        stream = self.lib.codes_memfs_open(b"/MEMFS/definitions/" + name.encode())
        if not stream:
            return None
        out = b""
        while True:
            block = ctypes.create_string_buffer(1 << 20)
            got = self.libc.fread(block, 1, 1 << 20, stream)
            if got == 0:
                break
            out += block.raw[:got]
        self.libc.fclose(stream)
        return out.decode("utf-8", "replace")


def tokens(text):
    at, out = 0, []
    while at < len(text):
        m = TOKEN.match(text, at)
        if not m:
            raise ValueError(f"cannot read {text[at : at + 40]!r}")
        at = m.end()
        kind = m.lastgroup
        if kind == "str":
            out.append(("str", m.group()[1:-1]))
        elif kind == "num":
            out.append(("num", int(float(m.group()))))
        elif kind == "id":
            word = m.group()
            out.append(("op", WORDS[word]) if word in WORDS else ("id", word))
        elif kind == "op":
            out.append(("op", m.group()))
    return out


class Parser:
    """Statements: (verb, ...). Expressions: ("num", n), ("str", s), ("id", name), ("call", name, args) and
    (operator, left, right) or (operator, operand)."""

    BINARY = [
        ["||"],
        ["&&"],
        ["==", "!=", "is", "isnot", "<", ">", "<=", ">="],
        ["|"],
        ["+", "-"],
        ["*", "/", "%", "^"],
    ]

    def __init__(self, text):
        self.t, self.i = tokens(text), 0

    def peek(self, k=0):
        return self.t[self.i + k] if self.i + k < len(self.t) else ("end", None)

    def next(self):
        token = self.peek()
        self.i += 1
        return token

    def at(self, op, k=0):
        return self.peek(k) == ("op", op)

    def take(self, op):
        if not self.at(op):
            raise ValueError(f"expected {op}, found {self.t[self.i : self.i + 6]}")
        self.i += 1

    def block(self):
        self.take("{")
        out = []
        while not self.at("}"):
            out += self.statement()
        self.take("}")
        return out

    def all(self):
        out = []
        while self.i < len(self.t):
            out += self.statement()
        return out

    def skip_to_semicolon(self):
        """Returns the flags after a colon."""
        depth, flags, in_flags = 0, [], False
        while not (self.at(";") and depth == 0):
            if self.peek()[0] == "end" or (self.at("}") and depth == 0):
                return flags  # some lines of the definitions lack their semicolon
            token = self.next()
            if token in (("op", "("), ("op", "{")):
                depth += 1
            elif token in (("op", ")"), ("op", "}")):
                depth -= 1
            elif token == ("op", ":") and depth == 0:
                in_flags = True
            elif in_flags and token[0] == "id":
                flags.append(token[1])
        self.take(";")
        return flags

    def statement(self):
        if self.at(";"):
            self.next()
            return []
        kind, word = self.next()
        if kind != "id":
            raise ValueError(f"statement starts with {word!r} near {self.t[max(0, self.i - 6) : self.i + 6]}")
        if word in ("if", "_if"):
            self.take("(")
            condition = self.expression()
            self.take(")")
            then, other = self.block(), []
            if self.peek() == ("id", "else"):
                self.next()
                other = self.block() if self.at("{") else self.statement()
            return [("if", condition, then, other)]
        if word == "when":
            self.take("(")
            self.expression()
            self.take(")")
            if self.at("{"):
                self.block()
                if self.peek() == ("id", "else"):
                    self.next()
                    self.block()
                if self.at(";"):
                    self.next()
            else:
                self.statement()
            return []
        if word == "alias":
            name = self.next()[1]
            self.take("=")
            value = self.next()
            self.skip_to_semicolon()
            return [("alias", name, value)]
        if word in ("unalias", "remove"):
            name = self.next()[1]
            self.skip_to_semicolon()
            return [("unalias", name)] if word == "unalias" else []
        if word in ("constant", "transient"):
            name = self.next()[1]
            self.take("=")
            value = self.expression()
            self.skip_to_semicolon()
            return [("set", name, value)]
        if word == "meta":
            name, function = self.next()[1], self.next()[1]
            args = self.arguments()
            self.skip_to_semicolon()
            return [("set", name, ("call", function, args))]
        if word in ("concept", "concept_nofail"):
            return [self.concept()]
        if word in ("include", "template", "template_nofail"):
            if word != "include":
                self.next()
            name = self.next()[1]
            if self.at(";"):
                self.next()
            return [("include", name, word)]
        if self.at("list"[0]) or self.peek() == ("id", "list"):
            self.next()
            self.take("(")
            count = self.expression()
            self.take(")")
            return [("list", count, self.block())]
        return self.field(word)

    def field(self, word):
        sized = (
            "unsigned",
            "signed",
            "ascii",
            "codetable",
            "flags",
            "byte",
            "ksec1expver",
            "section_length",
            "bytes",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "int8",
            "int16",
            "int32",
            "int64",
        )
        if word in sized and self.at("["):
            self.take("[")
            length = self.next()[1]
            self.take("]")
            name = self.next()[1]
            count = None
            if self.at("["):
                self.take("[")
                count = self.expression()
                self.take("]")
            table = None
            j = self.i
            while self.t[j] in (("op", "("),):
                j += 1
            if word == "codetable" and self.t[j][0] == "str":
                table = self.t[j][1]
            flags = self.skip_to_semicolon()
            return [("field", word, length, name, count, table, flags)]
        if word in ("ieeefloat", "ibmfloat"):
            name = self.next()[1]
            count = None
            if self.at("["):
                self.take("[")
                count = self.expression()
                self.take("]")
            self.skip_to_semicolon()
            return [("field", word, 4, name, count, None, [])]
        if word == "pad":
            self.next()
            args = self.arguments()
            self.skip_to_semicolon()
            return [("pad", args[0])]
        if word in ("section_padding", "padto", "padtoeven", "padtomultiple"):
            self.skip_to_semicolon()
            return [("stop",)]
        self.skip_to_semicolon()
        return []

    def concept(self):
        name = self.next()[1]
        default = files = None
        if self.at("("):
            self.take("(")
            default = self.next()
            files = []
            while not self.at(")"):
                token = self.next()
                if token != ("op", ","):
                    files.append(token)
            self.take(")")
        rows = None
        if self.at("{"):
            self.take("{")
            rows = []
            while not self.at("}"):
                value = self.next()[1]
                self.take("=")
                self.take("{")
                conditions = []
                while not self.at("}"):
                    key = self.next()[1]
                    self.take("=")
                    conditions.append((key, self.expression()))
                    self.take(";")
                self.take("}")
                rows.append((str(value), conditions))
            self.take("}")
        if self.at(":") or self.at(";"):
            self.skip_to_semicolon()
        return ("concept", name, default, files, rows)

    def arguments(self):
        self.take("(")
        out = []
        while not self.at(")"):
            out.append(self.expression())
            if self.at(","):
                self.next()
        self.take(")")
        return out

    def expression(self, level=0):
        if level == len(self.BINARY):
            return self.unary()
        left = self.expression(level + 1)
        while self.peek()[0] == "op" and self.peek()[1] in self.BINARY[level]:
            op = self.next()[1]
            left = (op, left, self.expression(level + 1))
        return left

    def unary(self):
        if self.at("!") or self.at("-"):
            op = self.next()[1]
            return (op, self.unary())
        if self.at("("):
            self.take("(")
            value = self.expression()
            self.take(")")
            return value
        if self.at("["):
            self.take("[")
            items = []
            while not self.at("]"):
                items.append(self.expression())
                if self.at(","):
                    self.next()
            self.take("]")
            return ("array", items)
        kind, word = self.next()
        if kind == "id" and self.at("("):
            return ("call", word, self.arguments())
        return (kind, word)


def parse(text):
    return Parser(text).all()


def concepts(text):
    """The rows of a concept file: (value, [(key, expression)])."""
    p = Parser("concept x { " + text + "\n}")
    p.next()
    return p.concept()[4]


if __name__ == "__main__":
    library = Library()
    for n in sys.argv[1:]:
        print(n, parse(library.read(n)))
