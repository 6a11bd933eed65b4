"""Makes src/tables/ from ecCodes' definitions.

    pip install eccodes==2.50.0 && python crates/junctura-grib/tools/make_tables.py

What comes out is derived from the definitions of ecCodes (C) Copyright 2005- ECMWF, Apache License 2.0; see NOTICE.
docs/formats/grib.md describes the files. The run prints what it could not translate.
"""

import collections
import pathlib
import re

import defs
import eccodes

OUT = pathlib.Path(__file__).resolve().parent.parent / "src" / "tables"
LIB = defs.Library()
MISSING = 2147483647
NOTE = f"derived from the definitions of ecCodes {eccodes.codes_get_api_version()}, (C) 2005- ECMWF, Apache-2.0; made by tools/make_tables.py"

# Keys that the reader computes: (f name).
COMPUTED = """stepRange startStep endStep dataDate dataTime paramId level levtype typeOfLevel stepType MTG2Switch
    globalDomain gridName global stattype timeSpan datasetForLocal""".split()
SAME = {
    "class": "marsClass",
    "type": "marsType",
    "stream": "marsStream",
    "editionNumber": "edition",
    "timespan": "timeSpan",
    "date": "dataDate",
    "time": "dataTime",
    "step": "endStep",
    "originatingCentre": "centre",
    "stepInHours": "endStep",
    "unitOfTimeRange": "indicatorOfUnitOfTimeRange",
    "statType": "stattype",
    "gribTablesVersionNo": "table2Version",
    "process": "generatingProcessIdentifier",
    "stepTypeInternal": "stepType",
}
FUNCTIONS = {
    "sprintf",
    "g2date",
    "time",
    "g1verificationdate",
    "g1monthlydate",
    "validity_date",
    "validity_time",
    "g1fcperiod",
    "g1forecastmonth",
    "from_scale_factor_scaled_value",
    "element",
    "scale",
    "round",
    "divdouble",
    "max",
    "g1day_of_the_year_date",
    "g1date",
    "multdouble",
}
# Keys that the reader sets itself, so that they must have a number, and those it asks for by name.
RUST_KEYS = """edition centre subCentre discipline tablesVersion localTablesVersion productionStatusOfProcessedData typeOfProcessedData
    productDefinitionTemplateNumber parameterCategory parameterNumber typeOfFirstFixedSurface scaleFactorOfFirstFixedSurface
    scaledValueOfFirstFixedSurface typeOfSecondFixedSurface scaleFactorOfSecondFixedSurface scaledValueOfSecondFixedSurface
    indicatorOfUnitOfTimeRange forecastTime numberOfTimeRanges indicatorOfUnitForTimeRange lengthOfTimeRange typeOfTimeIncrement
    typeOfStatisticalProcessing gridDefinitionTemplateNumber numberOfGridUsed numberOfGridInReference pressureUnits
    table2Version indicatorOfParameter indicatorOfTypeOfLevel level topLevel bottomLevel timeRangeIndicator P1 P2
    generatingProcessIdentifier backgroundProcess marsClass marsType marsStream dummy true month year day hour minute second
    centuryOfReferenceTimeOfData yearOfCentury localDefinitionNumber grib2LocalSectionNumber section2Used localUsePresent
    numberIncludedInAverage latitudeOfFirstGridPoint longitudeOfFirstGridPoint latitudeOfLastGridPoint longitudeOfLastGridPoint
    isHindcast extraDimensionPresent dimension dimensionType perturbationNumber numberOfForecastsInEnsemble modelName
    is_chemical is_chemical_distfn is_chemical_srcsink is_aerosol is_aerosol_optical grib2LocalSectionPresent
    experimentVersionNumber stream typeOfGeneratingProcess N
    stepType stattype dataTime MTG2Switch typeOfLevel levtype paramId gridName global section4Length chemId NV""".split()

problems = collections.Counter()
key_numbers = {}
needed = set()


def key(name):
    name = SAME.get(name, name)
    needed.add(name.split("#")[0])
    return key_numbers.setdefault(name, len(key_numbers))


def table(name):
    """A code table as [(code, abbreviation)]."""
    rows = []
    for line in (LIB.read(name) or "").splitlines():
        m = re.match(r"(\d+)\s+(\S+)", line)
        if m:
            rows.append((int(m[1]), m[2]))
    return rows


TABLES = {
    "class": table("mars/class.table"),
    "type": table("mars/type.table"),
    "stream": table("mars/stream.table"),
    "c1": table("common/c-1.table"),
    "c11": table("common/c-11.table"),
    "levtype1": table("grib1/3.table"),
    "levtype1.ecmf": table("grib1/local/ecmf/3.table"),
    "levtype1.rjtd": table("grib1/local/rjtd/3.table"),
}
TABLE_OF = {
    "marsClass": "class",
    "marsType": "type",
    "marsStream": "stream",
    "centre": "c1",
    "indicatorOfTypeOfLevel": "levtype1",
}


def code(name, text):
    """The number that a code table gives to an abbreviation."""
    rows = TABLES[TABLE_OF[name]]
    return next((c for c, a in rows if a.lower() == text.lower()), int(text) if text.isdigit() else None)


class Untranslatable(Exception):
    pass


def quoted(text):
    return '"' + text.replace('"', "") + '"'


# Expressions, to the form the reader takes.
def expression(e, refs):
    kind = e[0]
    if kind == "num":
        return str(e[1])
    if kind == "str":
        return quoted(e[1])
    if kind == "id":
        name = SAME.get(e[1], e[1])
        if name in COMPUTED:
            return f"(f {name})"
        constant = {"zero": "0", "one": "1", "oneConstant": "1", "true": "1", "false": "0", "hundred": "100"}
        if name in constant:
            return constant[name]
        refs.add(name)
        return f"k<{name}>"
    if kind == "call":
        if e[1] == "evaluate":
            return expression(e[2][0], refs)
        if e[1] == "missing" and not e[2]:
            return str(MISSING)
        if e[1] == "new":
            return "0"
        if e[1] not in FUNCTIONS:
            raise Untranslatable(e[1])
        return f"(f {e[1]} {' '.join(expression(a, refs) for a in e[2])})"
    if kind in "+-*/%" and len(e) == 3:
        return f"({kind} {expression(e[1], refs)} {expression(e[2], refs)})"
    if kind == "-" and e[1][0] == "num":
        return str(-e[1][1])
    raise Untranslatable(kind)


def operand(e, other, refs):
    """One side of a comparison; a string beside a coded key becomes the code."""
    if e[0] == "str" and other[0] == "id":
        name = SAME.get(other[1], other[1])
        if name in TABLE_OF:
            number = code(name, e[1])
            return str(-1 if number is None else number)
    return expression(e, refs)


def condition(e, refs):
    kind = e[0]
    if kind in ("&&", "||"):
        return f"({'&' if kind == '&&' else '|'} {condition(e[1], refs)} {condition(e[2], refs)})"
    if kind == "!":
        return f"(! {condition(e[1], refs)})"
    if kind == "call" and e[1] == "defined":
        name = SAME.get(e[2][0][1], e[2][0][1])
        if name in COMPUTED:
            return f"(D (f {name}))"
        refs.add(name)
        return f"(D k<{name}>)"
    if kind == "call" and e[1] == "missing":
        return f"(= {expression(e[2][0], refs)} {MISSING})"
    if kind == "call" and e[1] == "is_one_of":
        return f"(in {expression(e[2][0], refs)} {' '.join(operand(x, e[2][0], refs) for x in e[2][1:])})"
    if kind in ("==", "is"):
        return f"(= {operand(e[1], e[2], refs)} {operand(e[2], e[1], refs)})"
    if kind in ("!=", "isnot"):
        return f"(! (= {operand(e[1], e[2], refs)} {operand(e[2], e[1], refs)}))"
    if kind in ("<", ">", "<=", ">="):
        return f"({kind} {expression(e[1], refs)} {expression(e[2], refs)})"
    return f"(! (= {expression(e, refs)} 0))"


# Statements, to operations: (op, text or parts, names it needs, name it defines).
MARKED = {
    "grib2/templates/template.4.horizontal.def": "horizontal",
    "grib2/templates/template.4.statistical.def": "statistical",
    "grib2/templates/template.4.point_in_time.def": "instant",
}
CONVERSION = {
    "productDefinitionTemplateNumber",
    "grib2LocalSectionNumber",
    "grib2LocalSectionPresent",
    "forecastTime",
    "typeOfStatisticalProcessing",
    "indicatorOfUnitForTimeRange",
    "lengthOfTimeRange",
    "typeOfTimeIncrement",
}
SILENT = re.compile(r"^(local|ls|parameter|time|vertical|geography)\.")
chunks = {}
inline_concepts = {}
file_concepts = set()


def translate(statements, where):
    out = []
    for s in statements:
        try:
            out += one(s, where)
        except Untranslatable as e:
            problems[f"{e} in {where}"] += 1
    return out


def one(s, where):
    verb = s[0]
    if verb == "field":
        _, kind, length, name, count, tab, flags = s
        name = SAME.get(name, name)
        if name.startswith("section") and name.endswith("Length"):
            return [("read", "u", length, name)]
        if tab and "/" in tab and "[" not in tab and name not in TABLE_OF:
            TABLES.setdefault(tab, table(tab))
            TABLE_OF[name] = tab
        letter = {"signed": "s", "ascii": "a", "ksec1expver": "a"}.get(kind, "s" if kind.startswith("int") else "u")
        letter += "m" if "can_be_missing" in flags else ""
        if length > 8 and letter[0] != "a" or kind in ("ieeefloat", "ibmfloat"):
            letter, name = "u", "ignored"
        op = ("read", letter, length, name)
        if count is not None:
            refs = set()
            return [("list", expression(count, refs), [("read", letter, length, "ignored")], refs)]
        return [op]
    if verb == "pad":
        refs = set()
        return [("pad", expression(s[1], refs), refs)]
    if verb == "list":
        refs = set()
        return [("list", expression(s[1], refs), translate(s[2], where), refs)]
    if verb == "stop":
        return [("stop",)]
    if verb == "if":
        refs = set()
        return [("if", condition(s[1], refs), translate(s[2], where), translate(s[3], where), refs)]
    if verb == "unalias":
        return [("unalias", s[1][5:])] if s[1].startswith("mars.") else []
    if verb == "alias":
        if SILENT.match(s[1]):
            return []
        if s[1].startswith("mars."):
            refs = set()
            return [("alias", s[1][5:], expression(s[2], refs), refs)]
        if s[1] in (
            "domain",
            "origin",
            "number",
            "stream",
            "type",
            "class",
            "expver",
            "step",
            "date",
            "time",
            "param",
            "levtype",
            "levelist",
        ):
            # A bare alias of a name that is a mars key already moves that key too.
            refs = set()
            return [define(s[1], s[2]), ("move", s[1], expression(s[2], refs), refs)]
        return [define(s[1], s[2])]
    if verb == "set":
        return [define(s[1], s[2])]
    if verb == "include":
        if "[" in s[1]:
            return dynamic(s[1])
        text = LIB.read(s[1])
        if text is None:
            raise Untranslatable(f"no {s[1]}")
        if s[1] in ("grib2/stepUnits.def",):
            return []
        label = "t/" + re.sub(r".*/|template\.4\.|\.def$", "", s[1])
        if label not in chunks:
            chunks[label] = []
            body, mark = defs.parse(text), MARKED.get(s[1])
            if mark:
                fields = [x for x in body if x[0] in ("field", "list", "pad")]
                chunks[label] = translate(fields, s[1]) + [("builtin", mark)]
            else:
                chunks[label] = translate(body, s[1])
        return [("call", label)]
    if verb == "concept":
        _, name, default, files, rows = s
        if rows is not None:
            label = f"{name}@{where}"
            inline_concepts[label] = (name, default, rows)
            return [
                (
                    "set",
                    name,
                    f"(f concept @{label} {default_of(default[1], where) if default else quoted('unknown')})",
                    set(),
                )
            ]
        file_concepts.add(files[0][1])
        label = ("1." if where.startswith("grib1/") else "") + files[0][1][:-4]
        own = "+" if files[-1] == ("id", "conceptsLocalDirAll") and where.startswith("grib2/") else ""
        return [("set", name, f"(f concept @{own}{label} {default_of(default[1], where)})", set())]
    return []


# Includes whose file is named by a key: where they start, and the family of programs they are.
DYNAMIC = {
    "grib2/local.destine.[": "destine/",
    "grib1/local.[centre:l].[": "1/",
    "grib1/local_no_mars.98.[": "1n/",
    "grib2/local.98.[": "2/",
}


def dynamic(path):
    for start, family in DYNAMIC.items():
        if path.startswith(start):
            name = re.match(r"[A-Za-z0-9]+", path[len(start) :])[0]
            return [("dynamic", family, name)]
    return [("stop",)]


def default_of(name, where):
    """What a concept is where no row holds: the constant of that name, which a file may give another value."""
    for statement in defs.parse(LIB.read(where)):
        if statement[:2] == ("set", name) and statement[2][0] == "str":
            return quoted(statement[2][1])
    return {"zero": "0", "false": "0", "minus_one": "-1"}.get(name, quoted(name))


def define(name, value):
    refs = set()
    name = SAME.get(name, name)
    if name in TABLE_OF and value[0] == "str":
        number = code(name, value[1])
        return ("set", name, str(-1 if number is None else number), refs)
    try:
        return ("set", name, expression(value, refs), refs)
    except Untranslatable as e:
        return ("set", name, None, {f"!{e}"})


def want(ops):
    """Adds to `needed` what these operations ask for; true where something was new."""
    before = len(needed)
    for op in ops:
        if op[0] in ("alias", "move"):
            needed.update(op[3])
        elif op[0] == "dynamic":
            needed.add(op[2])
        elif op[0] == "if":
            if effective(op):
                needed.update(op[4])
            want(op[2])
            want(op[3])
        elif op[0] == "list":
            needed.update(op[3])
            want(op[2])
        elif op[0] == "pad":
            needed.update(op[2])
        elif op[0] == "set" and op[1] in needed:
            needed.update(r for r in op[3] if r[0] != "!")
    return len(needed) > before


def effective(op):
    def matters(o):
        if o[0] == "set":
            return o[1] in needed
        if o[0] == "call":
            return any(matters(x) for x in chunks[o[1]])
        return o[0] != "if" or effective(o)

    return any(matters(o) for o in op[2] + op[3])


def emit(ops):
    out, skip = [], 0
    for op in ops:
        if op[0] == "read" and op[3] not in needed:
            skip += op[2]
            continue
        if op[0] in ("set", "if") and not (op[1] in needed if op[0] == "set" else effective(op)):
            continue
        if skip:
            out.append(f"(p {skip})")
            skip = 0
        if op[0] == "read":
            out.append(f"(r <{op[3]}> {op[2]} {op[1]})")
        elif op[0] == "pad":
            out.append(f"(p {op[1]})")
        elif op[0] == "list":
            out.append(f"(l {op[1]} {emit(op[2])})")
        elif op[0] == "stop":
            out.append("(z)")
        elif op[0] == "move":
            out.append(f"(s {op[1]} {op[2]})")
        elif op[0] == "dynamic":
            out.append(f"(x {op[1]} <{op[2]}>)")
        elif op[0] == "alias":
            out.append(f"(a {op[1]} {op[2]})")
        elif op[0] == "unalias":
            out.append(f"(u {op[1]})")
        elif op[0] == "call":
            if chunks[op[1]] and emit(chunks[op[1]]):
                out.append(f"(c {op[1]})")
        elif op[0] == "builtin":
            out.append(f"(b {op[1]})")
        elif op[0] == "set":
            if op[2] is None:
                problems[f"{op[1]} = {sorted(op[3])[0][1:]}(...)"] += 1
            else:
                out.append(f"(d <{op[1]}> {op[2]})")
        elif op[0] == "if":
            out.append(f"(i {op[1]} ({emit(op[2])}) ({emit(op[3])}))")
    if skip:
        out.append(f"(p {skip})")
    return " ".join(out)


def chunk_sources():
    for name in LIB.names:
        for pattern, prefix in [
            (r"grib1/local\.98\.(\d+)\.def", "1/"),
            (r"grib2/local\.98\.(\d+)\.def", "2/"),
            (r"grib2/templates/template\.4\.(\d+)\.def", "4/"),
            (r"grib2/local/ecmf/template\.4\.(\d+)\.def", "4e/"),
            (r"mars/grib\.([a-z0-9]+\.[a-z0-9]+)\.def", "m/"),
            (r"grib2/products_(\d+)\.def", "p/"),
            (r"grib2/local\.(?:uerra)\.(\d+)\.def", "uerra/"),
            (r"grib2/local\.tigge\.(\d+)\.def", "tigge/"),
            (r"grib2/local\.crra\.(\d+)\.def", "crra/"),
            (r"grib2/local\.destine\.(\d+)\.def", "destine/"),
            (r"grib2/local\.lcgcr\.(\d+)\.def", "lcgcr/"),
            (r"grib2/local\.wpmip\.(\d+)\.def", "wpmip/"),
            (r"grib2/local/(ecmf|hydro|fire|destine)/section4_extras\.def", "x/"),
            (r"grib2/post_meta_data\.hook\.products_(\d+)\.def", "h/"),
            (r"(grib2/mars_labeling)\.def", "label/"),
            (r"grib1/local_no_mars\.98\.(\d+)\.def", "1n/"),
            (r"grib2/local\.destine\.([a-z][a-z\-]*-dt)\.def", "destine/"),
        ]:
            m = re.fullmatch(pattern, name)
            if m:
                yield prefix + m[1].replace("grib2/mars_labeling", "2"), name


# Concept rows: "value<TAB>conditions", each condition `key=number`, `key=a|b` or `key="text"`.
def row_condition(name, e):
    name = SAME.get(name, name)
    if name == "true":
        if e[0] == "num":
            return [f"{key('true')}={e[1]}"]
        if e[0] == "==" and e[1][0] == "call" and e[1][1] == "element":
            return [f"{key(e[1][2][0][1] + '#' + str(e[1][2][1][1]))}={e[2][1]}"]
        if e[0] == "call" and e[1] == "is_one_of":
            subject = SAME.get(e[2][0][1], e[2][0][1])
            return [f"{key(subject)}=" + "|".join(row_value(subject, x) for x in e[2][1:])]
        raise Untranslatable("true")
    if e[0] == "array":
        return [f"{key(name + '#n')}~{len(e[1])}"] + [f"{key(f'{name}#{i}')}={x[1]}" for i, x in enumerate(e[1])]
    return [f"{key(name)}={row_value(name, e)}"]


def row_value(name, e):
    if e[0] == "num":
        return str(e[1])
    if e[0] == "-":
        return str(-e[1][1])
    if e == ("call", "missing", []):
        return str(MISSING)
    if e[0] == "str":
        if name == "dataTime":
            return str(int(e[1]))
        if name in TABLE_OF:
            return str(code(name, e[1]))
        return quoted(e[1])
    raise Untranslatable(str(e))


def rows_text(rows, coded=None):
    out = []
    for value, conditions in rows:
        try:
            parts = [c for k, e in conditions for c in row_condition(k, e)]
        except Untranslatable as e:
            problems[f"concept condition {e}"] += 1
            continue
        if coded:
            number = code(coded, value)
            value = str(-1 if number is None else number)
        # An array of n counts as n matches: the extra condition on its length is marked so as not to count.
        out.append((value, tuple(parts)))
    return out


def concept_files():
    """(concept, set, rows) of all concept files that are used, but the parameter ones."""
    plain = {
        "marsLevtypeConcept",
        "marsLevtypeConcept.lte33",
        "marsLevtypeConcept.chemsplit",
        "typeOfLevelConcept",
        "timespanConcept",
        "stattypeConcept",
        "MTG2SwitchConcept",
        "MTG2SwitchViaTablesVersionConcept",
        "modelNameConcept",
        "postProcessingConcept",
        "chemId",
    }
    used = {m for ops in chunks.values() for m in re.findall(r"@[+]?([\w.]+)", emit(ops))}
    plain |= {f[:-4] for f in file_concepts if f[:-4] in used}
    for name in LIB.names:
        m = re.fullmatch(r"grib2/(?:localConcepts/(\w+)/)?([\w.]+)\.def", name)
        if m and m[2] in plain and not (m[1] is None and m[2] == "MTG2SwitchConcept"):
            yield m[2], m[1] or "master", name
        m = re.fullmatch(
            r"grib1/(?:localConcepts/(\w+)/)?(stepType|typeOfLevel|cluster_domain|tube_domain|sensitive_area_domain)\.def",
            name,
        )
        if m:
            yield "1." + m[2], m[1] or "master", name
    yield "wave_domain", "master", "mars/wave_domain.def"


def numbered(text):
    return re.sub(r"k?<([\w.#]+)>", lambda m: ("k" if m[0][0] == "k" else "") + str(key(m[1])), text)


def write(name, text):
    text = numbered(text)
    (OUT / name).write_text(text, encoding="utf-8")
    print(f"{name}: {len(text.encode())} bytes")


def params():
    """params.txt, g1params.txt, g2params.txt: names of parameters, and the rows that find them."""
    names, units, rows1, rows2 = {}, {}, [], collections.OrderedDict()
    clashes = 0

    def read(folder, variant, edition):
        out = []
        text = LIB.read(f"{folder}/paramId{variant}.def")
        if text is None:
            return out
        ids = defs.concepts(text)
        shorts = defs.concepts(LIB.read(f"{folder}/shortName{variant}.def") or "")
        unit = defs.concepts(LIB.read(f"{folder}/units{variant}.def") or "")
        by_conditions = {str(c): v for v, c in shorts}
        unit_by = {str(c): v for v, c in unit}
        for value, conditions in ids:
            short = by_conditions.get(str(conditions), "unknown")
            try:
                parts = [c for k, e in conditions for c in row_condition(k, e)]
            except Untranslatable as e:
                problems[f"parameter condition {e}"] += 1
                continue
            out.append((int(value), short, unit_by.get(str(conditions), "~"), parts, conditions))
        return out

    def put(param, short, unit):
        nonlocal clashes
        if param not in names:
            names[param], units[param] = short, unit
        if (names[param], units[param]) == (short, unit):
            return ""
        clashes += 1
        return f":{short if names[param] != short else ''}" + (f":\0{unit}\0" if units[param] != unit else "")

    def place(parts, wanted):
        """Takes the leading keys out of the conditions."""
        found = dict(p.split("=", 1) for p in parts if "=" in p)
        lead = [found.get(str(key(k))) for k in wanted]
        rest = [p for p in parts if p.split("=", 1)[0] not in {str(key(k)) for k in wanted}]
        return lead, rest

    def centres(edition):
        found = {n.split("/")[2] for n in LIB.names if re.match(rf"grib{edition}/localConcepts/\w+/paramId", n)}
        return ["master"] + sorted(found - LEFT_OUT[edition])

    for where in centres(1):
        folder = "grib1" if where == "master" else f"grib1/localConcepts/{where}"
        for param, short, unit, parts, _ in read(folder, "", 1):
            (tab, number), rest = place(parts, ["table2Version", "indicatorOfParameter"])
            if tab is None or number is None:
                problems[f"GRIB1 parameter row without table or number in {where}: {parts}"] += 1
                continue
            rows1.append((where, int(tab), int(number), f"{param}{put(param, short, unit)}", " ".join(rest)))
    for where in centres(2):
        folder = "grib2" if where == "master" else f"grib2/localConcepts/{where}"
        for mark, variant in (("n", ""), ("o", ".lte33"), ("c", ".chemsplit"), ("l", ".legacy")):
            for i, (param, short, unit, parts, _) in enumerate(read(folder, variant, 2)):
                (d, c, n), rest = place(parts, ["discipline", "parameterCategory", "parameterNumber"])
                if None in (d, c, n):
                    problems["parameter row without its triple"] += 1
                    continue
                row = (where, d, c, n, f"{param}{put(param, short, unit)}", " ".join(rest))
                rows2.setdefault(row, []).append(mark)
    print(f"{len(names)} parameters, {len(rows1)} + {len(rows2)} rows, {clashes} names that differ by row")
    used = collections.Counter(units.values()) + collections.Counter(
        re.findall("\0([^\0]*)\0", " ".join(r[3] for r in rows1))
    )
    used += collections.Counter(re.findall("\0([^\0]*)\0", " ".join(r[4] for r in rows2)))
    unit_numbers = {unit: i for i, (unit, _) in enumerate(used.most_common())}
    rows1 = [(*r[:3], re.sub("\0([^\0]*)\0", lambda m: str(unit_numbers[m[1]]), r[3]), r[4]) for r in rows1]
    rows2 = {
        (*r[:4], re.sub("\0([^\0]*)\0", lambda m: str(unit_numbers[m[1]]), r[4]), r[5]): m for r, m in rows2.items()
    }
    text = f"# {NOTE}\n" + "\t".join(unit_numbers) + "\n"
    previous = 0
    for param in sorted(names):
        text += f"{param - previous} {names[param]} {unit_numbers[units[param]] or ''}".rstrip() + "\n"
        previous = param
    write("params.txt", text)
    text = f"# {NOTE}\n"
    for where in centres(1):
        text += f"@{where}\n"
        last = None
        for w, tab, number, param, rest in rows1:
            if w == where:
                # Most local rows say what their parameter number says: table * 1000 + number.
                usual = str(tab * 1000 + number if tab != 128 else number)
                head = f"{tab}." if tab != last else ""
                text += f"{head}{number} {'' if param == usual else param} {rest}".rstrip() + "\n"
                last = tab
    write("g1params.txt", text)
    text = f"# {NOTE}\n"
    for where in centres(2):
        groups = collections.OrderedDict()
        for (w, d, c, n, param, rest), marks in rows2.items():
            if w == where:
                groups.setdefault("".join(marks), []).append((d, c, n, param, rest))
        for marks, rows in groups.items():
            text += f"@{where} {marks}\n"
            last = None
            for d, c, n, param, rest in rows:
                usual = str(int(c) * 1000 + int(n) if c != "128" else int(n)) if d == "192" else None
                head = f"{d}.{c}." if (d, c) != last else ""
                text += f"{head}{n} {'' if param == usual else param} {rest}".rstrip() + "\n"
                last = (d, c)
    write("g2params.txt", text)


LEFT_OUT = {1: set(), 2: set()}


def product_flags():
    """Which product templates ecCodes takes for chemical, aerosol, ..."""
    out = collections.defaultdict(list)
    for name in LIB.names:
        m = re.fullmatch(r"grib2/templates/template\.4\.(\d+)\.def", name)
        if not m:
            continue
        handle = eccodes.codes_grib_new_from_samples("GRIB2")
        try:
            eccodes.codes_set(handle, "productDefinitionTemplateNumber", int(m[1]))
            for flag in (
                "is_chemical",
                "is_chemical_distfn",
                "is_chemical_srcsink",
                "is_aerosol",
                "is_aerosol_optical",
            ):
                if eccodes.codes_get(handle, flag, int):
                    out[flag].append(int(m[1]))
        except eccodes.CodesInternalError as e:
            problems[f"template 4.{m[1]}: {e}"] += 1
        eccodes.codes_release(handle)
    return out


def main():
    OUT.mkdir(exist_ok=True)
    for name in RUST_KEYS:
        key(name)
    for label, source in chunk_sources():
        chunks[label] = translate(defs.parse(LIB.read(source)), source)
    params()
    while any([want(ops) for ops in chunks.values()]):
        pass
    concepts = collections.OrderedDict()
    for concept, where, source in concept_files():
        concepts[(concept, where)] = rows_text(
            defs.concepts(LIB.read(source)), "marsStream" if concept == "none" else None
        )
    for statement in defs.parse(LIB.read("grib2/section.4.def")):
        if statement[:2] == ("concept", "datasetForLocal"):
            concepts[("datasetForLocal", "inline")] = rows_text(statement[4])
    for label, (name, default, rows) in inline_concepts.items():
        concepts[(label, "inline")] = rows_text(rows, name if name in TABLE_OF else None)
    while any([want(ops) for ops in chunks.values()]):
        pass
    needed.discard("ignored")
    text, seen = f"# {NOTE}\n", {}
    for label in sorted(chunks):
        body = emit(chunks[label])
        if body in seen:
            text += f"{label}\t={seen[body]}\n"
        else:
            seen[body] = label
            text += f"{label}\t{body}\n"
    write("chunks.txt", text)
    text = f"# {NOTE}\n"
    for (concept, where), rows in concepts.items():
        text += f"@{concept} {where}\n"
        for value, parts in rows:
            text += f"{value}\t{' '.join(parts)}\n"
    write("concepts.txt", text)
    text = f"# {NOTE}\n"
    labels = {t: i for i, t in enumerate(TABLES)}
    for name, rows in TABLES.items():
        users = " ".join(str(key_numbers[k]) for k, t in TABLE_OF.items() if t == name and k in key_numbers)
        text += f"@{name} {users}\n" + "".join(f"{c} {a}\n" for c, a in rows if a != str(c))
    for flag, numbers in product_flags().items():
        text += f"@{flag}\n" + "".join(f"{n} 1\n" for n in numbers)
    write("codes.txt", text)
    lines = [
        f"//! Numbers of the keys that the tables name; {NOTE.replace('tools/make_tables.py', '`tools/make_tables.py`')}.",
        "",
        f"pub(crate) const COUNT: usize = {len(key_numbers)};",
    ]
    for name in RUST_KEYS:
        constant = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).upper()
        lines.append(f"pub(crate) const {constant}: u16 = {key_numbers[SAME.get(name, name)]};")
    lists = sorted({name.split("#")[0] for name in key_numbers if "#" in name})
    lines += [
        "",
        "/// Keys of lists: the key, how many there are, and the first elements.",
        "pub(crate) const LISTS: &[(u16, u16, &[u16])] = &[",
    ]
    for name in lists:
        elements = []
        while f"{name}#{len(elements)}" in key_numbers:
            elements.append(key_numbers[f"{name}#{len(elements)}"])
        lines.append(f"    ({key(name)}, {key(name + '#n')}, &{elements}),")
    lines[2] = f"pub(crate) const COUNT: usize = {len(key_numbers)};"
    lines.append("];")
    write("keys.rs", "\n".join(lines) + "\n")
    for problem, count in sorted(problems.items()):
        print(f"left out: {problem} ({count})")
    print(len(key_numbers), "keys")


if __name__ == "__main__":
    main()
