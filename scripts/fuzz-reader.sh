#!/usr/bin/env bash
# A minute of made-up files for the readers of charges, with the address and undefined-behaviour sanitizers: by libFuzzer
# where there is clang, otherwise by a driver that mutates seeds. Usage: fuzz-reader.sh [SECONDS]
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "$0")/common.sh"
seconds=${1:-60}
folder=$BUILD_DIR/fuzz
rm -rf "$folder" && mkdir -p "$folder"/{seeds,found,corpus}
cd "$folder"
printf '# box: 4 0 0  0 4 0  0 0 4\n# periodic: 1 1 1\n0 0 0 1\n1 1 1 -1\n' >seeds/periodic
printf '# name: x\n# kernel: yukawa 2.5\n0 0 0 1 -1 0.5 0 0\r\n1 0 0 -1 1 0.5 0 0\r\n' >seeds/open
printf '# box: 4 0 0  2 4 0  0 2 4\n# boundary: vacuum\n# periodic: 1 1 1\n1e-3 .5 -7 1.5e0\n' >seeds/vacuum
gzip -nc seeds/periodic >seeds/gzipped
printf '2\nLattice="4 0 0 0 4 0 0 0 4" Properties=species:S:1:pos:R:3:charge:R:1 pbc="T T T"\nNa 0 0 0 1\nCl 1 1 1 -1\n' >seeds/xyz
printf 'CRYST1   40.000   40.000   40.000  90.00  90.00  90.00 P 1\nATOM 1 N ALA 1 0.0 1.0 2.0 -0.3 1.8\nHETATM 2 C ALA 1 1 1 1 .3 2\n' >seeds/pqr
header="{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), }"
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n%064d' "$header" 0 >seeds/npy
printf '1 2\n3 4\n' >seeds/pairs
sources=("$ROOT"/tests/fuzz/charge_file.c
    "$ROOT"/src/program/{charge_check,charge_file,charge_header,charge_keys,charge_read,charge_read_npy,charge_read_pqr,charge_read_text}.c
    "$ROOT"/src/program/{charge_read_xyz,exclusions,npy_header,number_read,text_lines,words,xyz_header}.c)
flags=(-std=c11 -g -O1 -D_POSIX_C_SOURCE=200809L -I"$ROOT/src" -I"$ROOT/src/fmm" -fno-omit-frame-pointer)
sanitizers=address,undefined
status=0
# every refused file is a line on stderr: what a failure has said is shown again
if clang "${flags[@]}" -fsanitize=fuzzer,$sanitizers -fno-sanitize-recover=all "${sources[@]}" -o fuzzer -lz -lm 2>build.log; then
    ./fuzzer -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -artifact_prefix=found/ -print_final_stats=1 corpus seeds \
        >fuzzer.log 2>&1 || status=$?
    say "    libFuzzer: $(grep -a 'stat::number_of_executed_units' fuzzer.log | grep -oE '[0-9]+' || echo "no") files"
    if ((status)); then grep -a -A 30 'ERROR:\|runtime error:' fuzzer.log | head -n 40; fi
else
    cc "${flags[@]}" -DFUZZ_MAIN -fsanitize=$sanitizers -fno-sanitize-recover=all "${sources[@]}" -o fuzzer -lz -lm
    ./fuzzer "$seconds" seeds/* 2>fuzzer.log || status=$?
    if ((status)); then tail -n 40 fuzzer.log; fi
fi
exit "$status"
