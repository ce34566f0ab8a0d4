#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libmxnet.so exports what include/mxnet declares, and nothing else: frontends that bind all names when they load need each.
#   libmxnet_exports.sh LIBRARY
set -euo pipefail
cd "$(dirname "$0")/../.."
declared=$(cat include/mxnet/*.h | tr '\n' ' ' | grep -oE 'MXNET_DLL [^;(]*\b(MX|NN)\w+\(' | grep -oE '\w+\($' | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$1" | awk '{ print $NF }' | sort -u)
if ! diff <(echo "$declared") <(echo "$exported"); then
  echo "libmxnet-exports: < is declared and not exported, > is exported and not declared"
  exit 1
fi
echo "libmxnet-exports: $(wc -l <<<"$declared") functions"
