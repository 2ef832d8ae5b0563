#!/usr/bin/env python3
"""Small source trees for includes.py: each thing that it refuses is found, and nothing else.

Usage: includes_test.py INCLUDES_PY
"""
import subprocess
import sys
import tempfile
from pathlib import Path

TABLE = "low:\nhigh: low\n"
# name: (table, {file: text}, lines that are told)
CASES = {
    "nothing": (TABLE, {}, []),
    "includes of the own row and of one above": (
        TABLE, {"low/a.h": "", "low/b.c": '#include "a.h"\n', "high/c.c": '#include "low/a.h"\n'}, []),
    "an include of a row below": (
        TABLE, {"low/a.c": '#include "high/b.h"\n', "high/b.h": ""},
        ['low/a.c: low must not include high ("high/b.h")']),
    "a file that is not there": (
        TABLE, {"low/a.c": '#include "low/b.h"\n'}, ['low/a.c: includes "low/b.h", which is not a path from src']),
    "a folder without a row": (TABLE, {"other/a.c": ""}, ["other/a.c: the table has no row for other"]),
    "a table that is wrong": (
        "low: high none\nhigh !public: low\n", {},
        ["table: high is marked !public, not !interface", "table: low may include high, which does not stand above it",
         "table: low names none, which is not a row"]),
    "files that include each other": (
        TABLE, {"low/a.h": '#include "low/b.h"\n', "low/b.h": '#include "low/a.h"\n'},
        ["a circle of includes: low/a.h -> low/b.h (#include), low/b.h -> low/a.h (#include)"]),
    "modules that include each other": (
        TABLE, {"low/a.h": "", "low/a.c": '#include "low/b.h"\n', "low/b.h": '#include "low/a.h"\n'},
        ["a circle of includes: low/a -> low/b (low/a.c includes low/b.h), low/b -> low/a (low/b.h includes low/a.h)"]),

    "a function that a row below defines": (
        TABLE, {"low/a.h": "/* one */ int fmm_f(int a,\n  double (*b)(int))\n#if X\n  __attribute__((format(printf, 3, 4)))\n#endif\n;\n"
                           "void fmm_g(void);\n",
                "high/b.c": '#include "low/a.h"\nint fmm_f(int a,\n          double (*b)(int))\n{\n    return 0;\n}\nvoid fmm_g(void) {}\n'},
        ["header low/a.h declares fmm_f, fmm_g, which high/b.c, below it in the table, defines"]),
    "the same in extern \"C\" and CUDA": (
        TABLE, {"low/a.h": '#ifdef __cplusplus\nextern "C"\n{\n#endif\n    gmxfmm_status\n    fmm_f(void);\n    void hidden(int n);\n#ifdef __cplusplus\n}\n#endif\n',
                "high/b.cu": '#include "low/a.h"\ntemplate <class R, int n = (1 << 2)>\n__global__ void __launch_bounds__(128, 2) kernel(R* x)\n{\n}\n'
                             'namespace\n{\nvoid hidden(int n = 1) {}\n}\nbool operator==(S a, S b) {}\nS s{1}, t[] = {f(2)};\nextern "C" gmxfmm_status fmm_f(void)\n{\n    kernel<float><<<1, 1>>>(0);\n}\n'},
        ["header low/a.h declares fmm_f, which high/b.cu, below it in the table, defines"]),
    "names in macros, for a level, of a type of functions": (
        TABLE, {"low/a.h": "typedef void fmm_block(int i);\nfmm_block fmm_f, LEVEL(fmm_g);\nint LEVEL(fmm_h)(void);\nvoid fmm_i_f_v2(void);\n",
                "high/b.c": "void fmm_f(int i) {}\nvoid LEVEL(fmm_g)(int i) {}\nHOT int LEVEL(fmm_h)(void)\n{\n}\nvoid fmm_i(void) {}\n"},
        ["header low/a.h declares fmm_f, fmm_g, fmm_h, fmm_i, which high/b.c, below it in the table, defines"]),
    "no functions that a row below defines": (
        TABLE, {"low/a.h": "static inline int fmm_f(void) { return 0; }\ntypedef int fmm_g(void);\nextern int (*fmm_h)(void);\n"
                           "struct s { int (*fmm_i)(void); };\n// int fmm_j(void);\n/* int fmm_k(void); */\n#define X int fmm_l(void);\n"
                           "extern const int fmm_m;\nenum { FMM_A = 1 };\nint fmm_n(void);\nint fmm_o(void);\n"
                           "static int fmm_p(void);\n",
                "low/b.c": "int fmm_n(void) { return '}' + \"{\"[0]; }\n",
                "high/b.c": "".join(f"int fmm_{name}(void) {{ return 0; }}\n" for name in "fghijklmp") +
                            "static int fmm_o(void) { return 0; }\n"},
        []),
    "one name in two rows": (  # the file that knows the header has its function
        "low:\nhigh: low\nother:\n",
        {"low/a.h": "int fmm_f(void);\n", "low/a.c": '#include "low/a.h"\nint fmm_f(void) { return 0; }\n', "other/b.c": "int fmm_f(void) {}\n",
         "high/c.h": "int fmm_g(void);\n", "high/c.c": "int fmm_g(void) {}\n", "other/d.c": "int fmm_g(void) {}\n"}, []),
    "an interface": (
        "low !interface:\nhigh: low\n", {"low/a.h": "int fmm_f(void);\n", "high/b.c": "int fmm_f(void) {}\n"}, []),
    "a header with a row of its own, and its source": (
        "all/a.h:\nall: all/a.h\n", {"all/a.h": "int fmm_f(void);\n", "all/a.c": "int fmm_f(void) {}\n"}, []),

    "modules that call each other": (
        TABLE, {"low/all.h": "int fmm_f(void);\nint fmm_g(void);\n",
                "low/a.c": '#include "low/all.h"\nint fmm_f(void) { return fmm_g(); }\n',
                "low/b.c": '#include "low/all.h"\nint fmm_g(void) { return 0; }\nstatic int (*const table[])(void) = {fmm_f};\n'},
        ["a circle of calls: low/a -> low/b (fmm_g), low/b -> low/a (fmm_f)"]),
    "three modules, one a header": (
        TABLE, {"low/a.h": "int fmm_f(void);\n", "low/c.h": "int fmm_h(void);\n",
                "low/b.h": '#include "low/c.h"\nstatic inline int fmm_g(void) { return fmm_h(); }\n',
                "low/a.c": '#include "low/a.h"\n#include "low/b.h"\nint fmm_f(void) { return fmm_g(); }\n',
                "low/c.cu": '#include "low/a.h"\n#include "low/c.h"\nint fmm_h(void) { return fmm_f(); }\n'},
        ["a circle of includes: low/a -> low/b (low/a.c includes low/b.h), low/b -> low/c (low/b.h includes low/c.h), "
         "low/c -> low/a (low/c.cu includes low/a.h)",
         "a circle of calls: low/a -> low/b (fmm_g), low/b -> low/c (fmm_h), low/c -> low/a (fmm_f)"]),
    "modules that call in one direction": (
        TABLE, {"low/all.h": "int fmm_f(void);\nint fmm_g(void);\nint fmm_h(void);\nint fmm_i(void);\n",
                "low/a.c": '#include "low/all.h"\nint fmm_f(void) { return fmm_g() + fmm_h() + fmm_i(); }\nint other(void) { return 0; }\n',
                # a comment, strings, a line of the preprocessor, a prototype, a member, a variable
                "low/b.c": '#include "low/all.h"\nint fmm_f(void);\n#define F fmm_f()\nint fmm_g(void) { return fmm_g() + sizeof("fmm_f()"); /* fmm_f() */ }\n',
                "low/c.c": '#include "low/all.h"\nint fmm_h(void) { const double fmm_f = 1; return t->fmm_f(1) + t.fmm_f + (int)(fmm_f); }\n',
                # a function of its own; one that no header of it knows
                "low/d.c": "static int fmm_f(void) { return 1; }\nint fmm_i(void) { return fmm_f() + other(); }\n"},
        []),
    "one name in two modules of a row": (  # nobody knows which is called
        TABLE, {"low/all.h": "int fmm_f(void);\nint fmm_g(void);\n",
                "low/z.c": '#include "low/all.h"\nint fmm_f(int a) { return fmm_g(); }\n',
                "low/b.c": '#include "low/all.h"\nint fmm_g(void) { return fmm_f(); }\n',
                "low/c.c": '#include "low/all.h"\nint fmm_f(void) { return 0; }\n'}, []),
    "calls between rows": (
        TABLE, {"low/a.h": "int fmm_f(void);\n", "low/a.c": '#include "low/a.h"\nint fmm_f(void) { return 0; }\n',
                "high/b.h": "int fmm_g(void);\n", "high/b.c": '#include "high/b.h"\n#include "low/a.h"\nint fmm_g(void) { return fmm_f(); }\n'}, []),
}

CASES |= {
    "an object that one file writes": (
        TABLE + "@ plan->domain fmm_domain: low/a.c\n",
        {"low/a.c": "void f(void) { fmm_domain* d = &plan->domain; plan->domain.n = 1; }\n",
         "low/b.c": "int f(void) { const fmm_domain* d = &plan->domain; return plan->domain.n == 1 && d->n <= plan->domain.n; }\n",
         "low/c.c": "void f(void) { plan->domain.box[3] = 1; }\nvoid g(void) { ++plan->domain.n; }\n",
         "low/d.c": "void f(void) { memcpy(plan->domain.box, box, 9); }\nvoid g(fmm_domain* d) { /* plan->domain.n = 1 */ }\n"},
        ["low/c.c: low/a.c alone writes plan->domain (plan->domain.box[3] =)",
         "low/c.c: low/a.c alone writes plan->domain (++plan->domain.n)",
         "low/d.c: low/a.c alone writes plan->domain (memcpy(plan->domain.box,)",
         "low/d.c: a pointer to fmm_domain that is not const, which low/a.c alone writes"]),
    "what an object points to": (
        TABLE + "@ plan->domain fmm_domain: low/a.c\n@ plan->domain.tree fmm_tree: low/a.c far/geometry\n@ plan->version -: low/a.c\n",
        {"low/a.c": "void f(void) { fmm_tree* tree = plan->domain.tree; plan->domain.tree->leaves.num = 1; plan->version++; }\n",
         "low/state.h": "typedef struct\n{\n    fmm_tree* tree;\n} fmm_domain;\n",
         "low/b.c": "int f(const fmm_tree* t)\n{\n    const int *a = plan->domain.grid, n = plan->domain.tree->num;\n"
                    "    return t->level[a[0]].num == 1 && n <= plan->domain.tree->level[n].num && plan->version == t->version;\n}\n"
                    "void g(other* t)\n{\n    t->num = 1;\n}\n",
         "low/c.c": "void f(void) { plan->domain.tree->leaves.num = 1; }\n",
         "low/d.c": "void f(void) { plan->domain.tree->level[plan->domain.tree->depth].num++; }\n",
         "low/e.c": "void f(const fmm_domain* d)\n{\n    d->tree->num = 1;\n}\n",
         "low/f.cu": "void f() { auto* a = plan->domain.tree; auto b = &plan->domain; int& c = plan->domain.tree->num; int *p = plan->domain.grid, n; }\n",
         "low/g.c": "void f(void) { plan->version = 1; plan->domain = other; job->plan->domain.n = 1; }\n"},
        ["low/c.c: low/a.c alone writes plan->domain.tree (plan->domain.tree->leaves.num =)",
         "low/d.c: low/a.c alone writes plan->domain.tree (plan->domain.tree->level[plan->domain.tree->depth].num++)",
         "low/e.c: low/a.c alone writes plan->domain (d->tree->num =)",
         "low/f.cu: low/a.c alone writes plan->domain (by b, which is not const)",
         "low/f.cu: low/a.c alone writes plan->domain (by p, which is not const)",
         "low/f.cu: low/a.c alone writes plan->domain.tree (by a, which is not const)",
         "low/f.cu: low/a.c alone writes plan->domain.tree (by c, which is not const)",
         "low/g.c: low/a.c alone writes plan->domain (plan->domain =)",
         "low/g.c: low/a.c alone writes plan->domain (plan->domain.n =)",
         "low/g.c: low/a.c alone writes plan->version (plan->version =)"]),
    "an object that a folder writes, and an object in it": (
        TABLE + "@ device->far DeviceFar: low\n@ device->far.tree DeviceTree: low/tree.c high/f.c\n",
        {"low/a.c": "void f(void) { plan->device->far.n = 1; }\n",
         "low/b.c": "void f(const DeviceFar& far) { fmm_device_reserve(plan, &d->far.x, far.n); d->far.tree.n = 1; }\n",
         "low/tree.c": "void f(DeviceTree* tree) { device->far.tree.n = 1; }\n",
         "high/c.c": "int f(void) { fmm_device_reserve(plan, &x, d->far.n); return d->far.n == 1 && end->far.n = 1; }\n",
         "high/d.c": "void f(void) { fmm_device_release(plan,\n  &plan->device->far.x[1]); d->far.treetop = 1; }\n",
         "high/f.c": "void f(DeviceTree* tree) { device->far.tree.n = 1; }\n",
         "high/e.c": "void f(DeviceFar& far) { d->far.tree.level[1].n += 1; }\n"},
        ["low/b.c: low/tree.c alone writes device->far.tree (d->far.tree.n =)",
         "high/d.c: low alone writes device->far (release(plan, &plan->device->far.x[1])",
         "high/d.c: low alone writes device->far (d->far.treetop =)",
         "high/e.c: low/tree.c alone writes device->far.tree (d->far.tree.level[1].n +=)",
         "high/e.c: a pointer to DeviceFar that is not const, which low alone writes"]),
    "a file without a word on what it is": (
        TABLE, {"low/a.c": "\nint fmm_f(void) { return 0; }\n"}, ["low/a.c: its second line does not say what it is"]),
}


def main():
    failed = 0
    for name, (table, files, expected) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "table").write_text(table)
            (root / "src").mkdir()
            for file, text in files.items():
                (root / "src" / file).parent.mkdir(exist_ok=True)
                (root / "src" / file).write_text(text if text.startswith("\n") else "// licence\n/* What it is. */\n" + text)
            done = subprocess.run([sys.executable, sys.argv[1], root / "src", root / "table"], capture_output=True, text=True)
        *told, summary = (done.stdout or done.stderr or "nothing").splitlines()
        good = sorted(told) == sorted(expected) and done.returncode == bool(expected) and summary.endswith(f", {len(expected)} errors")
        failed += not good
        print("ok    " if good else "FAILED", name)
        if not good:
            print(f"told:\n{done.stdout}{done.stderr}expected:", *expected, sep="\n")
    print(f"{len(CASES)} trees, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
