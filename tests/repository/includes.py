#!/usr/bin/env python3
"""Checks the files below src against the table in includes.txt: what they include, declare and call.

Usage: includes.py SRC TABLE

A row of the table is a folder of SRC, or a file of its own: what it may include. A folder may include its own files, a row
only rows above it: so there are no circles between rows, and files of one row are looked at one by one.

An include is not all that a file needs of another. A module is a header and the source of the same name beside it, or one of
them alone. So

- a header declares no function that a file in a row below defines, through which what may not include a row would call it:
  unless the header's row is marked !interface, or the file is of its module;
- modules do not include each other in a circle, and those of one row do not call each other in one.

- a line "@ EXPRESSION TYPE: OWNER..." of the table names an object that one file or folder alone writes, with functions of the
  folders behind it: others do not assign to it, to its members or to what these point to, reserve or release memory of them, or
  have a pointer to one of them that is not const. An object in it may have a line of its own. TYPE is - where it is a number.
  Where EXPRESSION begins with device->, the pointer is to one of a plan's GPUs, and may be called d;
- a file says in its second line what it is.

Functions are found in the text, without comments, strings and lines of the preprocessor. What is not understood is left out;
variables and types are not looked at.
"""
import collections
import re
import sys
from pathlib import Path

# ---- the table and includes

def read_table(path):
    """{row: rows that it may include}, and {row: its marks}."""
    table, marks = {}, {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line and not line.startswith("@"):
            unit, _, allowed = line.partition(":")
            name, *marked = unit.split()
            table[name], marks[name] = allowed.split(), marked
    return table, marks


def unit_of(name, table):
    """The row that a file belongs to: its own, or its folder's."""
    return name if name in table else name.rpartition("/")[0]


def module_of(name):
    return name.rpartition(".")[0]


def includes_of(text):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M)


# ---- functions in the text of a file

SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'', re.S)
CLOSING = {"(": ")", "<": ">", "[": "]"}
NO_TYPES = {"return", "else", "do", "case", "throw", "new", "delete", "goto", "sizeof"}


def without_comments(text):
    return SKIPPED.sub(lambda match: " " if match[0][0] == "/" else '""', text)


def tokens_of(text):
    """Words and signs, without comments and lines of the preprocessor; strings and characters are empty strings."""
    text = without_comments(text.replace("\\\n", " "))
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)
    return re.findall(r'""|[A-Za-z_]\w*|\d[\w.]*|::|->|<<|[=!]=|\S', text)


def end_of(tokens, start):
    """The place behind the bracket that closes the one at start."""
    opening, depth = tokens[start], 0
    for i in range(start, len(tokens)):
        depth += (tokens[i] == opening) - (tokens[i] == CLOSING[opening])
        if depth == 0:
            return i + 1
    return len(tokens)


def plain(head):
    """A statement without template <...>, [[...]] and __attribute__((...)) or the like; LEVEL(name) is name."""
    out, i = [], 0
    while i < len(head):
        token, after = head[i], head[i + 1:i + 2]
        if token == "template" and after == ["<"] or token == "[" and after == ["["]:
            i = end_of(head, i + (token == "template"))
        elif re.match(r"__\w+$|_?[aA]lignas$", token) and after == ["("]:
            i = end_of(head, i + 1)
        elif re.match(r"[A-Z][A-Z0-9_]*$", token) and after == ["("] and head[i + 3:i + 4] == [")"] and \
                (i + 4 == len(head) or head[i + 4] in "(,"):
            out.append(head[i + 2])
            i += 4
        else:
            out.append(token)
            i += 1
    return out


def function_of(head):
    """The function that a statement, made plain, declares or defines: `type name(...)`, perhaps with macros around it."""
    i = 0
    while i < len(head) and head[i] != "=":
        if head[i] == "(":
            if head[i + 1:i + 2] == ["*"]:
                return None
            name, before = (head[i - 1], head[i - 2]) if i > 1 else ("", "")
            if re.match(r"[A-Za-z_]\w*$", name) and re.search(r"[a-z]", name) and "operator" not in head[:i] and \
                    re.match(r"\w|[*&>]", before):
                return name
            i = end_of(head, i)
        else:
            i += 1
    return None


def is_function(head):
    """Whether what follows in braces is code, behind which no semicolon is needed."""
    depth = 0
    for token in head:
        depth += (token == "(") - (token == ")")
        if token == "=" and depth == 0:
            return False
    return "(" in head


def statements(tokens):
    """Those outside of functions: (what stands outside of braces, made plain; what stands in them; whether there are any;
    whether it is in a namespace without a name). Namespaces and extern "C" {...} are looked into."""
    head, body, depth, parens, hidden = [], [], 0, 0, []
    for token in tokens:
        if depth > 0:
            depth += (token == "{") - (token == "}")
            body.append(token)
            if depth == 0:
                made = plain(head)
                if parens == 0 and is_function(made):
                    yield made, body, True, any(hidden)
                    head, body = [], []
        elif token == "{" and parens == 0 and (head[:1] == ["namespace"] or head == ["extern", '""']):
            hidden.append(head == ["namespace"])
            head = []
        elif token == "{":
            depth = 1
        elif token == "}":
            del hidden[-1:]
        elif token == ";" and parens == 0:
            yield plain(head), body, body != [], any(hidden)
            head, body = [], []
        else:
            parens += (token == "(") - (token == ")")
            head.append(token)


def used_in(tokens, parameters):
    """Words that are called, or stand elsewhere without being a variable or a member."""
    called, named, variables = set(), set(), set()
    for code in (tokens, parameters):
        for before, word, after in zip([""] + code, code, code[1:] + [""]):
            if re.match(r"[A-Za-z_]", word) and before not in (".", "->", "::"):
                kind = variables if re.match(r"\w", before) and before not in NO_TYPES else called if after == "(" else named
                if code is tokens or kind is variables:
                    kind.add(word)
    return called | named - variables


class File:
    def __init__(self, path, name):
        text = path.read_text()
        self.name, self.header = name, path.suffix == ".h"
        self.included = includes_of(text)  # main() makes them paths from src
        self.statements = list(statements(tokens_of(text)))
        self.declared = set()  # functions
        self.defined = set()   # functions that others can call, by their declaration
        self.inline = set()    # or, in a header, as they are
        self.own = set()       # functions that no other can call
        self.used = set()      # words of the code, functions among them

    def find_types(self, types):
        """Adds names of `typedef type name(...)`."""
        for head, _, braces, _ in self.statements:
            if head[:1] == ["typedef"] and not braces:
                types.add(function_of(head[1:]))

    def find_functions(self, types):
        code, parameters = [], []
        for head, body, braces, hidden in self.statements:
            name = function_of(head) if "typedef" not in head else None
            if name and braces:
                static = hidden or "static" in head
                (self.inline if self.header else self.own if static else self.defined).add(name)
                parameters += head
            elif name and "static" not in head:
                self.declared.add(name)
            elif not braces and head[:1] and head[0] in types:  # type name, name;
                self.declared.update(word for word in head[1:] if word != ",")
            code += body + (head[head.index("="):] if "=" in head else [])
        self.used = used_in(code, parameters)


def without_suffix(name, defined):
    """What is compiled once a precision and level (math/names.h, math/level.h) has one definition, fmm_x for fmm_x_f_v2."""
    return name if name in defined else re.sub(r"(_[fd])?(_v[234])?$", "", name)


def reach(name, files):
    """All files that a file includes, itself among them."""
    found, waiting = set(), [name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += files[name].included
    return found


def read_functions(files):
    types = set()
    for file in files:
        file.find_types(types)
    for file in files:
        file.find_functions(types)
    defined = set().union(*(file.defined | file.inline for file in files))
    for file in files:
        file.declared = {without_suffix(name, defined) for name in file.declared}
        file.used = {without_suffix(word, defined) for word in file.used}


# ---- what is wrong

def shortest_circle(graph):
    """[a, b, ..., a], or None."""
    best = None
    for start in graph:
        before, waiting = {}, collections.deque([start])
        while waiting and start not in before:
            name = waiting.popleft()
            for other in graph[name]:
                if other not in before:
                    before[other] = name
                    waiting.append(other)
        if start in before:
            circle = [start]
            while len(circle) == 1 or circle[-1] != start:
                circle.append(before[circle[-1]])
            if best is None or len(circle) < len(best):
                best = circle[::-1]
    return best


def circles(graph):
    """Of {a: {b: why}}, the shortest first, none with a step of another; takes them out."""
    while circle := shortest_circle(graph):
        yield ", ".join(f"{a} -> {b} ({graph[a].pop(b)})" for a, b in zip(circle, circle[1:]))


def find_declared_above(files, table, interfaces, reached):
    """Headers with functions that a row below them defines."""
    rows, definers, found = list(table), collections.defaultdict(list), collections.defaultdict(list)
    for file in files.values():
        for name in file.defined | file.inline:
            definers[name].append(file.name)

    def is_below(other, header):
        return rows.index(unit_of(other, table)) > rows.index(unit_of(header, table)) and module_of(other) != module_of(header)

    for header in (file for file in files.values() if file.header and unit_of(file.name, table) not in interfaces):
        for name in sorted(header.declared):
            # of several with that name it is one that knows the header
            candidates = [other for other in definers[name] if header.name in reached[other]] or definers[name]
            if candidates and all(is_below(other, header.name) for other in candidates):
                found[header.name, candidates[0]].append(name)
    return [f"header {header} declares {', '.join(names)}, which {other}, below it in the table, defines"
            for (header, other), names in found.items()]


def includes_between(files):
    """{module: {another: the file of it that it includes}}."""
    graph = {module_of(name): {} for name in files}
    for name, file in files.items():
        for include in file.included:
            if module_of(include) != module_of(name):
                graph[module_of(name)][module_of(include)] = f"{name} includes {include}"
    return graph


def calls_between(members, files, reached):
    """Of the files of one row: {module: {another: a function of it that it calls}}."""
    modules, definer = collections.defaultdict(list), {}
    for file in members:
        modules[module_of(file.name)].append(file)
    for module, parts in modules.items():
        for name in set().union(*(part.defined | part.inline for part in parts)):
            definer[name] = None if name in definer else module  # one name, two functions: of neither
    calls = {module: {} for module in modules}
    for module, parts in modules.items():
        own = set().union(*(part.own | part.defined | part.inline for part in parts))
        seen = [files[name] for name in set().union(*(reached[part.name] for part in parts))]
        inline = set().union(*(file.inline for file in seen))
        known = inline.union(*(file.declared for file in seen)) - own
        words = set().union(*(part.used for part in parts)) & known
        for word in sorted(words, key=lambda word: (word in inline, word)):
            if definer.get(word):
                calls[module].setdefault(definer[word], word)
    return calls


def find_circles(files, table, reached):
    """Of includes between files, or if there are none between modules; of calls between modules of a row."""
    found = list(circles({name: {other: "#include" for other in file.included} for name, file in files.items()}))
    errors = [f"a circle of includes: {circle}" for circle in found or circles(includes_between(files))]
    rows = collections.defaultdict(list)
    for name, file in files.items():
        rows[unit_of(name, table)].append(file)
    for members in rows.values():
        errors += [f"a circle of calls: {circle}" for circle in circles(calls_between(members, files, reached))]
    return errors


# ---- objects and their owners

def read_owners(path):
    """[(expression, type, files and folders)]"""
    rows = re.findall(r"^@\s*(\S+)\s+(\S+):\s*(.*\S)", path.read_text(), re.M)
    return [(expression, type_, owners.split()) for expression, type_, owners in rows]


INDEX = r"(?:\[[^\]]*\])*"
MEMBERS = rf"{INDEX}(?:(?:\.|->)\w+{INDEX})*"


def pattern_of(expression, owners):
    """An object, but not those in it that have lines of their own."""
    gpu = "device->"
    inner = [re.escape(other[len(expression):]) for other, _, _ in owners if other.startswith(f"{expression}.")]
    others = rf"(?!(?:{'|'.join(inner)})\b)" if inner else ""
    return (rf"(?:\bplan->)?\bd(?:evice)?->{re.escape(expression[len(gpu):])}" if expression.startswith(gpu)
            else rf"\b{re.escape(expression)}") + others


def find_writes(place, text):
    """Assignments to a place, and its memory reserved and released."""
    place = rf"{place}(?![\w([.]|->)"
    return re.finditer(rf"(?:\+\+|--){place}|{place}\s*(?:=(?!=)|[-+*/|&^]=|<<=|>>=|\+\+|--)|mem(?:cpy|set|move)\(&?{place},|"
                       rf"(?:reserve|release)\(\w+,\s*&{place}", text)


def find_pointers(object_, text):
    """Declarations of pointers and references that are not const to an object or its members: what is declared, its type."""
    type_ = r"(?:^|[;{}(])\s*((?:[\w:]+\s+|\w+\s*(?=[*&]))+)"
    for match in re.finditer(rf"{type_}[*&]+\s*(?:const\s+)?(\w+)\s*=\s*&?{object_}{MEMBERS}(?=\s*[;,])", text):
        if "const" not in match[1].split():
            yield match[2], match[1]
    for match in re.finditer(rf"\bauto\s+(\w+)\s*=\s*(?:{object_}|&{object_}{MEMBERS})(?=\s*;)", text):
        yield match[1], "auto"


def find_foreign_writes(name, text, owners):
    """Assignments to an object that another file owns, to its members or to what these point to; and pointers by which
    there could be some."""
    for expression, type_, own in owners:
        if name in own or any(name.startswith(f"{folder}/") for folder in own):
            continue
        object_, told = pattern_of(expression, owners), f"{own[0]} alone writes {expression}"
        named = re.search(object_, text)  # most files name neither it nor its type
        for match in find_writes(object_ + MEMBERS, text) if named else ():
            yield f"{name}: {told} ({' '.join(match[0].split())})"
        for pointer, declared in find_pointers(object_, text) if named else ():
            if type_ not in declared.split():
                yield f"{name}: {told} (by {pointer}, which is not const)"
        if type_ == "-" or type_ not in text:
            continue
        member = rf"(?!\s*{re.split(r'[.>]', expression)[-1]};)" if name.endswith(".h") else ""  # of what has the object
        for match in re.finditer(rf"(\bconst\s+)?\b{type_}\s*[*&]{member}", text):
            if not match[1]:
                yield f"{name}: a pointer to {type_} that is not const, which {own[0]} alone writes"
        for function in re.split(r"^}", text, flags=re.M):  # its end stands at the beginning of a line
            for variable in set(re.findall(rf"\b{type_}\s*[*&]\s*(?:const\s+)?(\w+)", function)):
                for match in find_writes(rf"(?<![\w.>]){variable}(?:->|\.)\w+{MEMBERS}", function):
                    yield f"{name}: {told} ({' '.join(match[0].split())})"


def main():
    src = Path(sys.argv[1])
    table, marks = read_table(Path(sys.argv[2]))
    interfaces = {row for row in marks if marks[row]}
    errors, rows = [], list(table)
    errors += [f"table: {row} is marked {' '.join(marks[row])}, not !interface"
               for row in rows if marks[row] not in ([], ["!interface"])]
    for row, allowed in table.items():
        for other in allowed:
            if other not in rows:
                errors.append(f"table: {row} names {other}, which is not a row")
            elif rows.index(other) >= rows.index(row):
                errors.append(f"table: {row} may include {other}, which does not stand above it")
    files = {}
    for path in sorted(src.rglob("*")):
        if path.suffix not in (".h", ".c", ".cu", ".cpp"):
            continue
        name = path.relative_to(src).as_posix()
        row = unit_of(name, table)
        if row not in table:
            errors.append(f"{name}: the table has no row for {row}")
            continue
        file = files[name] = File(path, name)
        included, file.included = file.included, []
        for include in included:
            beside = (path.parent / include).resolve()
            if "/" not in include and beside.exists():
                include = beside.relative_to(src.resolve()).as_posix()
            elif include in ("gmxfmm.h", "gmxfmm_measure.h", "gmxfmm_parallel.h", "gmxfmm_mpi.h", "gmxfmm_sites.h"):
                include = f"fmm/{include}"  # an installed header, as any other program has it
            elif not (src / include).exists():
                errors.append(f'{name}: includes "{include}", which is not a path from src')
                continue
            file.included.append(include)
            other = unit_of(include, table)
            if other != row and other not in table[row]:
                errors.append(f'{name}: {row} must not include {other} ("{include}")')
    for file in files.values():  # less what has no row, or is no source
        file.included = [include for include in file.included if include in files]
    owners = read_owners(Path(sys.argv[2]))
    for name in files:
        text = (src / name).read_text()
        errors += find_foreign_writes(name, without_comments(text), owners)
        if not text.split("\n")[1].startswith("/*"):
            errors.append(f"{name}: its second line does not say what it is")
    read_functions(files.values())
    reached = {name: reach(name, files) for name in files}
    errors += find_declared_above(files, table, interfaces, reached)
    errors += find_circles(files, table, reached)
    for error in errors:
        print(error)
    print(f"{len(files)} files, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
