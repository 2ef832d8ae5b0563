#!/usr/bin/env bash
# A minute of made-up files for the reader of charges, with the address and undefined-behaviour sanitizers: by libFuzzer
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
sources=("$ROOT"/tests/fuzz/charge_file.c "$ROOT"/src/program/{charge_file,charge_header,charge_check,text_lines}.c)
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
