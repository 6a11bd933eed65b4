"""Messages to compare on, made by ecCodes: its own samples, and samples with keys changed in many ways.

Each is (what it is, bytes). A change that ecCodes refuses is left out; `made()` says how many.
"""

import itertools
import os
import re

import eccodes

LEVELS2 = [
    (100, 0, 50000),
    (100, 0, 50),
    (100, 0, 12345),
    (100, -2, 500),
    (100, 2, 5000),
    (103, 0, 2),
    (103, 0, 100),
    (103, 1, 15),
    (105, 0, 137),
    (107, 0, 320),
    (109, 9, 2000),
    (106, 2, 7),
    (1, None, None),
    (8, None, None),
    (101, None, None),
    (151, 0, 1),
    (152, 0, 2),
    (160, 0, 100),
    (162, None, None),
    (168, 0, 3),
    (174, None, None),
    (10, None, None),
    (200, None, None),
    (20, 2, 27315),
    (117, None, None),
    (118, 0, 3),
    (254, 0, 0),
]
LAYERS2 = [
    (106, 0, 0, 106, 2, 7),
    (151, 0, 0, 151, 0, 1),
    (100, 0, 30000, 100, 0, 0),
    (105, 0, 1, 105, 0, 2),
    (152, 0, 0, 152, 0, 4),
    (160, 0, 0, 160, 0, 300),
    (1, None, None, 8, None, None),
    (103, 0, 10, 103, 0, 20),
    (168, 0, 1, 168, 0, 2),
]
STEPS2 = [
    (1, 0),
    (1, 6),
    (1, 240),
    (0, 30),
    (0, 90),
    (0, 60),
    (13, 3600),
    (13, 90),
    (2, 1),
    (10, 3),
    (11, 2),
    (12, 1),
    (3, 1),
    (1, -6),
    (1, 10027008),
]
RANGES2 = [
    (1, 0, 1, 24),
    (1, 6, 1, 6),
    (0, 90, 0, 30),
    (13, 5400, 1, 1),
    (1, 0, 0, 30),
    (2, 1, 1, 24),
    (1, 3, 1, 0),
    (0, 0, 0, 10),
    (1, 24, 2, 1),
    (2, 0, 1, 0),
]
STREAMS = [
    "oper",
    "enfo",
    "wave",
    "waef",
    "enda",
    "scda",
    "mnth",
    "moda",
    "mmsf",
    "msmm",
    "efov",
    "enfh",
    "eefo",
    "elda",
    "lwda",
    "dcda",
    "efhs",
    "enwh",
    "wasf",
    "edmo",
    "ewda",
    "efas",
    "esmm",
    "mofc",
    "eehs",
]
TYPES = [
    "an",
    "fc",
    "cf",
    "pf",
    "em",
    "es",
    "ep",
    "4v",
    "fg",
    "cl",
    "cd",
    "efi",
    "ses",
    "ssd",
    "me",
    "fcmean",
    "fcmax",
    "ea",
    "4i",
    "pb",
    "taem",
]


def sample_names():
    """The GRIB samples inside the wheel."""
    import pathlib

    import eccodeslib

    library = (pathlib.Path(eccodeslib.__file__).parent / "lib64" / "libeccodes_memfs.so").read_bytes()
    names = {m.group(1).decode() for m in re.finditer(rb"/MEMFS/samples/([\w.\-]+)\.tmpl", library)}
    return sorted(n for n in names if not re.search("BUFR|budg|diag|hdf5|wrap", n))


class Maker:
    """Collects messages. `every` thins out the long series unless JUNCTURA_LONG_TESTS is set."""

    def __init__(self):
        self.messages, self.refused, self.every, self.asked = [], 0, 1, 0

    def add(self, what, sample, changes):
        self.asked += 1
        if self.asked % self.every:
            return
        handle = eccodes.codes_grib_new_from_samples(sample)
        try:
            for key, value in changes:
                if value is None:
                    eccodes.codes_set_missing(handle, key)
                elif isinstance(value, list):
                    eccodes.codes_set_array(handle, key, value)
                else:
                    eccodes.codes_set(handle, key, value)
            self.messages.append((what, eccodes.codes_get_message(handle)))
        except eccodes.CodesInternalError:
            self.refused += 1
        finally:
            eccodes.codes_release(handle)


def samples(maker):
    for name in sample_names():
        maker.add(f"sample {name}", name, [])


def surface(which, kind, scale, value):
    return [
        (f"typeOf{which}FixedSurface", kind),
        (f"scaleFactorOf{which}FixedSurface", scale),
        (f"scaledValueOf{which}FixedSurface", value),
    ]


def levels(maker):
    for local, tables in itertools.product([0, 1], [33, 35]):
        start = [("tablesVersion", tables)] + [("setLocalDefinition", 1)] * local
        for kind, scale, value in LEVELS2:
            maker.add(
                f"level {kind} {scale} {value} local={local} tables={tables}",
                "regular_ll_pl_grib2",
                start + surface("First", kind, scale, value),
            )
        for a, b, c, d, e, f in LAYERS2:
            maker.add(
                f"layer {a} {b} {c} {d} {e} {f} local={local} tables={tables}",
                "regular_ll_pl_grib2",
                start + surface("First", a, b, c) + surface("Second", d, e, f),
            )
    maker.add("missing level of edition 1", "regular_ll_pl_grib1", [("level", None)])
    for kind in range(256):
        maker.add(f"level type {kind} of edition 1", "regular_ll_pl_grib1", [("indicatorOfTypeOfLevel:i", kind)])


def steps(maker):
    for unit, time in STEPS2:
        maker.add(
            f"step {time} of unit {unit}",
            "regular_ll_pl_grib2",
            [("indicatorOfUnitOfTimeRange", unit), ("forecastTime", time)],
        )
    for (unit, time, unit2, length), process, tables in itertools.product(RANGES2, [0, 1, 2, 3, 6], [33, 35]):
        maker.add(
            f"range {time} of {unit} + {length} of {unit2}, process {process}, tables {tables}",
            "regular_ll_sfc_grib2",
            [
                ("tablesVersion", tables),
                ("setLocalDefinition", 1),
                ("productDefinitionTemplateNumber", 8),
                ("typeOfStatisticalProcessing", process),
                ("typeOfTimeIncrement", 2),
                ("indicatorOfUnitOfTimeRange", unit),
                ("forecastTime", time),
                ("indicatorOfUnitForTimeRange", unit2),
                ("lengthOfTimeRange", length),
            ],
        )
    for ranges in (0, 3):
        maker.add(
            f"{ranges} ranges",
            "regular_ll_sfc_grib2",
            [("productDefinitionTemplateNumber", 8), ("numberOfTimeRanges", ranges)],
        )
    for increments in ([1, 2], [2, 1]):
        maker.add(
            f"two ranges {increments}",
            "regular_ll_sfc_grib2",
            [
                ("productDefinitionTemplateNumber", 8),
                ("numberOfTimeRanges", 2),
                ("typeOfStatisticalProcessing", [0, 2]),
                ("typeOfTimeIncrement", increments),
                ("indicatorOfUnitForTimeRange", [2, 1]),
                ("lengthOfTimeRange", [30, 24]),
            ],
        )
    for indicator, unit, (p1, p2) in itertools.product(
        [0, 1, 2, 3, 4, 5, 10, 113, 118, 119, 123, 124],
        [0, 1, 2, 10, 11, 12, 13, 14, 254],
        [(0, 0), (0, 12), (6, 12), (60, 120), (4, 8)],
    ):
        for sample in ("regular_ll_sfc_grib1", "polar_stereographic_sfc_grib1"):
            centre = [("centre", 7)] if "polar" in sample else []
            maker.add(
                f"P1={p1} P2={p2} unit={unit} indicator={indicator} {sample}",
                sample,
                centre
                + [("timeRangeIndicator", indicator), ("indicatorOfUnitOfTimeRange", unit), ("P1", p1), ("P2", p2)],
            )


def dates(maker):
    for hour, minute in [(0, 0), (5, 7), (23, 59), (255, 0), (6, 255)]:
        for edition in (1, 2):
            maker.add(
                f"{hour}:{minute} edition {edition}",
                f"regular_ll_pl_grib{edition}",
                [("hour", hour), ("minute", minute)],
            )
    for year, month, day in [(1, 2, 28), (100, 12, 31), (255, 3, 255), (255, 3, 7), (20, 13, 1)]:
        maker.add(
            f"date {year} {month} {day}",
            "regular_ll_pl_grib1",
            [("yearOfCentury", year), ("month", month), ("day", day)],
        )


def locals_(maker):
    """Local sections, streams and types of ECMWF in both editions."""
    for number in range(0, 60):
        maker.add(
            f"local section {number} of edition 2",
            "regular_ll_pl_grib2",
            [("setLocalDefinition", 1), ("localDefinitionNumber", number)],
        )
        for stepped in (0, 12):
            maker.add(
                f"local definition {number} of edition 1, step {stepped}",
                "regular_ll_pl_grib1",
                [("localDefinitionNumber", number), ("step", stepped)],
            )
    for stream, kind in itertools.product(STREAMS, TYPES):
        for number in (1, 15, 26, 30, 36):
            maker.add(
                f"{stream} {kind} local {number} edition 1",
                "regular_ll_pl_grib1",
                [("localDefinitionNumber", number), ("stream", stream), ("type", kind), ("step", 24)],
            )
        for template, tables in itertools.product((0, 1, 11), (32, 35)):
            maker.add(
                f"{stream} {kind} template {template} tables {tables} edition 2",
                "regular_ll_pl_grib2",
                [
                    ("tablesVersion", tables),
                    ("setLocalDefinition", 1),
                    ("productDefinitionTemplateNumber", template),
                    ("stream", stream),
                    ("type", kind),
                    ("number", 7) if template else ("forecastTime", 6),
                ],
            )
    streams = ["lwda", "elda", "dcda", "efas", "enda", "mmsf", "msmm", "eehs"]
    numbers = [12, 16, 20, 28, 38, 39, 41, 44, 45, 46, 60]
    for stream, kind, number, template in itertools.product(
        streams, ["an", "fc", "4v", "me", "ses", "cd"], numbers, [0, 11]
    ):
        what = f"{stream} {kind} local section {number} template {template}"
        start = [("tablesVersion", 35), ("setLocalDefinition", 1), ("productDefinitionTemplateNumber", template)]
        labels = [("stream", stream), ("type", kind), ("localDefinitionNumber", number)]
        maker.add(what, "regular_ll_pl_grib2", start + labels)
    for kind, expver in itertools.product(
        ["rd", "ea", "ei", "mc", "c3", "ai", "e6", "l5", "ti"], ["0001", "abcd", "1605"]
    ):
        for edition in (1, 2):
            maker.add(
                f"class {kind} {expver} edition {edition}",
                f"reduced_gg_pl_grib{edition}",
                [("setLocalDefinition", 1)] * (edition - 1) + [("class", kind), ("expver", expver)],
            )


def ensembles(maker):
    for template in (
        list(range(0, 16))
        + [40, 41, 42, 43, 44, 45, 46, 48, 49, 50, 51, 60, 61, 99, 100, 103, 104]
        + list(range(70, 80))
        + [88, 91, 105, 106, 107, 110, 111, 112, 113, 114, 119, 120, 121, 143, 1000]
    ):
        for local, tables in itertools.product([0, 1], [33, 36]):
            for more in ([], [("perturbationNumber", 3), ("numberOfForecastsInEnsemble", 51)]):
                maker.add(
                    f"template {template} local={local} tables={tables} {more}",
                    "regular_ll_pl_grib2",
                    [("tablesVersion", tables)]
                    + [("setLocalDefinition", 1)] * local
                    + [("productDefinitionTemplateNumber", template)]
                    + more,
                )
    for status, processed, template in itertools.product(range(0, 12), [0, 1, 2, 3, 4], [0, 1, 8, 11, 60]):
        maker.add(
            f"status {status} processed {processed} template {template}",
            "regular_ll_pl_grib2",
            [
                ("productionStatusOfProcessedData", status),
                ("typeOfProcessedData", processed),
                ("productDefinitionTemplateNumber", template),
            ],
        )


def parameters(maker):
    for table, number in itertools.product(
        [1, 2, 3, 128, 129, 131, 132, 140, 151, 162, 171, 174, 200, 201, 210, 228, 230, 234, 254], range(0, 256, 5)
    ):
        maker.add(
            f"table {table} parameter {number}",
            "regular_ll_sfc_grib1",
            [("table2Version", table), ("indicatorOfParameter", number)],
        )
    for centre, table in itertools.product([7, 34, 54, 74, 85, 96, 46], [1, 2, 3, 129, 130, 131, 200]):
        for number in range(0, 256, 17):
            maker.add(
                f"centre {centre} table {table} parameter {number}",
                "polar_stereographic_sfc_grib1",
                [("centre", centre), ("table2Version", table), ("indicatorOfParameter", number)],
            )
    for centre, (discipline, category) in itertools.product(
        [98, 7, 74, 78, 84, 34],
        [
            (0, 0),
            (0, 1),
            (0, 2),
            (0, 3),
            (0, 4),
            (0, 6),
            (0, 7),
            (0, 19),
            (1, 0),
            (2, 0),
            (2, 3),
            (10, 0),
            (10, 3),
            (10, 4),
            (192, 128),
            (192, 140),
        ],
    ):
        for number in list(range(0, 40, 3)) + [192, 193, 200, 255]:
            for template in (0, 8):
                maker.add(
                    f"centre {centre} {discipline}.{category}.{number} template {template}",
                    "regular_ll_sfc_grib2",
                    [
                        ("centre", centre),
                        ("discipline", discipline),
                        ("productDefinitionTemplateNumber", template),
                        ("parameterCategory", category),
                        ("parameterNumber", number),
                    ],
                )


def by_identifier(maker):
    """Parameters that ecCodes itself encodes, so that the conditions of its rows hold."""
    for param in list(range(1, 260)) + [
        3009,
        3041,
        3062,
        228001,
        228002,
        228006,
        228029,
        228228,
        228246,
        235033,
        235034,
        260015,
        260018,
        260038,
        260057,
        260074,
        260087,
        260109,
        260199,
        261001,
        262000,
        262100,
        140229,
        140230,
        140232,
        210073,
        210121,
        210203,
        212001,
        231002,
        237055,
        237084,
        238130,
        239134,
    ]:
        for tables in (32, 35):
            maker.add(
                f"paramId {param} tables {tables}",
                "regular_ll_sfc_grib2",
                [("setLocalDefinition", 1), ("tablesVersion", tables), ("paramId", param)],
            )


def all_messages():
    maker = Maker()
    long = bool(os.environ.get("JUNCTURA_LONG_TESTS"))
    for part in (samples, levels, steps, dates, locals_, ensembles, parameters, by_identifier):
        maker.every = 1 if long or part not in (locals_, parameters) else 5
        part(maker)
    return maker
