# SPDX-License-Identifier: LGPL-2.1-or-later
"""Structures and enums as the library's headers have them, so that they stand once."""
import ctypes
import re

_NUMBERS = {
    "double": ctypes.c_double,
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "int64_t": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
}


class Header:
    """enums: {enum: {constant: value}}; structure(name): a ctypes.Structure."""

    def __init__(self, *paths):
        self._text = re.sub(r"/\*.*?\*/", " ", "".join(path.read_text(encoding="utf-8") for path in paths), flags=re.S)
        self.version = re.search(r'#define GMXFMM_VERSION "([^"]+)"', self._text).group(1)
        self.enums = {}
        for body, name in re.findall(r"typedef enum\s*\{([^{}]*)\}\s*(\w+)\s*;", self._text):
            value, constants = -1, {}
            for constant, given in re.findall(r"(\w+)\s*(?:=\s*(\d+))?\s*(?:,|$)", body.strip()):
                value = int(given) if given else value + 1
                constants[constant] = value
            self.enums[name] = constants

    def _type(self, base, pointer, name):
        if pointer:
            return ctypes.c_char_p if base == "char" else ctypes.c_void_p
        return ctypes.c_int if base in self.enums else _NUMBERS.get(base) or self.structure(base)

    def structure(self, name):
        body = re.search(r"typedef struct\s*\{([^{}]*)\}\s*" + name + r"\s*;", self._text).group(1)
        fields = []
        for declaration in filter(None, (line.strip() for line in body.split(";"))):
            base, rest = re.fullmatch(r"(?:const\s+)?(\w+)\b(.*)", declaration, re.S).groups()
            for pointer, field, length in re.findall(r"(\*?)\s*(\w+)\s*(?:\[(\d+)\])?", rest):
                kind = self._type(base, pointer, field)
                fields.append((field, kind * int(length) if length else kind))
        return type(name, (ctypes.Structure,), {"_fields_": fields})
