# SPDX-License-Identifier: Apache-2.0
"""Writes the symbol of a chain of so many softmax nodes, none of which is fused: what queuing a step costs."""
import json
import sys

num = int(sys.argv[1])
nodes = [{"op": "null", "name": "data", "inputs": []}]
nodes += [{"op": "softmax", "name": f"softmax{i}", "inputs": [[i, 0, 0]]} for i in range(num)]
print(json.dumps({"nodes": nodes, "arg_nodes": [0], "node_row_ptr": list(range(num + 2)), "heads": [[num, 0, 0]],
                  "attrs": {"mxnet_version": ["int", 10901]}}))
