#!/bin/sh
# Run the tests of the C kernels with AddressSanitizer and UndefinedBehaviorSanitizer, all
# instruction sets on any processor. Usage: tests/native/sanitize.sh PYTHON [EXAMPLES]
set -eu
python=$1
examples=${2:-100}
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -R src "$folder"
native=$folder/src/vhe/native
${CC:-cc} -O1 -g -std=gnu11 -shared -fPIC -fno-omit-frame-pointer -Wno-psabi -DANY_PROCESSOR \
    -fsanitize=address,undefined -fno-sanitize-recover=all \
    "$native/baseline.c" "$native/avx2.c" "$native/avx512.c" -lm -o "$native/kernels.so"
# Python itself is not instrumented: the sanitizer is loaded first, and leaks of others are no news.
LD_PRELOAD=$(${CC:-cc} -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 \
    UBSAN_OPTIONS=print_stacktrace=1 VHE_EXAMPLES=$examples OMP_NUM_THREADS=2 \
    "$python" -m pytest -q -p no:cacheprovider -o "pythonpath=$folder/src" tests/native/test_kernels.py
