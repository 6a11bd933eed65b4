"""GRIB messages: checked before ecCodes reads them, or decoded in a process of their own."""
