#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel of the Python binding twice, without and with libcohort.so in it, installs each into a fresh environment and
# runs a program there; also checks the messages if there is no library, or a wrong one.
#   python_wheel.sh PYTHON
set -euo pipefail
python=$1
library=$(cd "$BUILD" && pwd)
work=$library/tests/python_wheel
rm -rf "$work"
mkdir -p "$work"
cp -r bindings/python "$work/source"
rm -rf "$work/source/build" "$work/source/dist"
find "$work/source" -name __pycache__ -prune -exec rm -rf {} +
cd "$work/source"
unset COHORT_LIB
said=$work/said.txt
program='import cohort; print(cohort.nd.ones((2, 3)).asnumpy().sum(), cohort.version(), cohort._library.PATH)'

wheel() { # folder for it; environment of the build
  env "${@:2}" "$python" -m build --wheel --no-isolation --outdir "$work/$1" . >"$work/$1.txt" 2>&1 || { cat "$work/$1.txt" && exit 1; }
  rm -rf build src/*.egg-info
  "$python" -m venv --system-site-packages --without-pip "$work/$1/env"
  (cd "$work/$1/env/lib/"python3*/site-packages && "$python" -m zipfile -e "$work/$1"/*.whl .)
}

wheel pure
[[ $(echo "$work"/pure/*.whl) == *-py3-none-any.whl ]] || { echo "python-wheel: found $(echo "$work"/pure/*.whl)" && exit 1; }
cd "$work"
LD_LIBRARY_PATH=$library "$work/pure/env/bin/python" -c "$program" >"$said"
grep -q '^6.0 ' "$said"
COHORT_LIB=$library "$work/pure/env/bin/python" -c "$program" | grep -q "^6.0 .*$library/libcohort.so"
if COHORT_LIB=/nowhere "$work/pure/env/bin/python" -c "$program" 2>"$said"; then echo "python-wheel: a library that is not there was found" && exit 1; fi
grep -q 'ImportError: libcohort cannot be loaded.*Tried /nowhere: .*No such file' "$said" || { cat "$said" && exit 1; }
# A library that is not libcohort, and one whose own dependency is missing.
echo 'int cohort_nothing;' | ${CC:-cc} -xc -shared -fPIC -o "$work/other.so" -
if COHORT_LIB=$work/other.so "$work/pure/env/bin/python" -c "$program" 2>"$said"; then echo "python-wheel: any library will do" && exit 1; fi
grep -q 'ImportError: .*other.so has no cohort_.*needs libcohort 0\.' "$said" || { cat "$said" && exit 1; }
echo 'int gone;' | ${CC:-cc} -xc -shared -fPIC -Wl,-soname,libgone.so.1 -o "$work/libgone.so" -
echo 'extern int gone; int cohort_nothing(void) { return gone; }' | ${CC:-cc} -xc -shared -fPIC -o "$work/lacks.so" - -L"$work" -lgone
if COHORT_LIB=$work/lacks.so "$work/pure/env/bin/python" -c "$program" 2>"$said"; then echo "python-wheel: it needs nothing" && exit 1; fi
grep -q 'ImportError: .*libgone.so.1' "$said" || { cat "$said" && exit 1; }

cd "$work/source"
wheel carrying COHORT_WHEEL_LIBRARY="$library/libcohort.so"
[[ $(echo "$work"/carrying/*.whl) == *-py3-none-linux_*.whl ]] || { echo "python-wheel: found $(echo "$work"/carrying/*.whl)" && exit 1; }
cd "$work"
"$work/carrying/env/bin/python" -c "$program" | grep -q '^6.0 .*/cohort/_lib/libcohort.so'
echo "python-wheel: built with and without the library, installed, and run from there"
