#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the environments of the peers, where they are not there yet: one with MXNet 1.9.1, which wants an old NumPy, one with PyTorch.
# PEERS_DIR says where (~/.cache/cohort-peers), PYTHON with which Python, 3.8 to 3.11.
set -eu
folder=${PEERS_DIR:-$HOME/.cache/cohort-peers}
python=${PYTHON:-python3}
install() { # name, module, packages
  name=$1 module=$2
  shift 2
  "$folder/$name/bin/python" -c "import $module" 2>/dev/null && return
  echo "installing $* into $folder/$name"
  mkdir -p "$folder"
  "$python" -m venv "$folder/$name"
  "$folder/$name/bin/pip" install --quiet "$@"
}
install mxnet mxnet numpy==1.23.5 mxnet==1.9.1
install torch torch torch numpy
