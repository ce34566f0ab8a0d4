# SPDX-License-Identifier: Apache-2.0
"""How many times faster than each peer we are, as a picture: a row a case, a bar a peer, on a logarithmic axis."""

import math
import statistics
from xml.sax.saxutils import escape

LEFT, WIDTH, ROW, TOP = 330, 620, 26, 64
COLOURS = {"mxnet": "#4e79a7", "torch": "#f28e2b"}
NAMES = {"mxnet": "MXNet 1.9.1", "torch": "PyTorch, its best configuration"}
LOW, HIGH = 0.5, 64.0


def place(ratio):
    part = math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
    return LEFT + part * WIDTH


def draw(rows):
    rows = [row for row in rows if any(row[peer] and row[peer]["ratio"] for peer in COLOURS)]
    height = TOP + ROW * len(rows) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 70}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="100%" height="100%" fill="white"/><text x="10" y="22" font-size="15">Time of a step by that of Cohort: right of 1 Cohort is faster</text>',
    ]
    for i, peer in enumerate(COLOURS):
        out.append(f'<rect x="{LEFT + i * 150}" y="32" width="12" height="12" fill="{COLOURS[peer]}"/>')
        out.append(f'<text x="{LEFT + i * 150 + 18}" y="42">{NAMES[peer]}</text>')
    tick = LOW
    while tick <= HIGH:
        x = place(tick)
        style = 'stroke="black" stroke-width="1.5"' if tick == 1 else 'stroke="#ddd"'
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{height - 16}" {style}/>')
        out.append(f'<text x="{x:.1f}" y="{height - 4}" text-anchor="middle">{tick:g}</text>')
        tick *= 2
    for i, row in enumerate(rows):
        y = TOP + i * ROW
        threads = f"{row['threads']} thread" + ("s" if row["threads"] > 1 else "")
        out.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(row["case"])}, {threads}</text>')
        for j, peer in enumerate(COLOURS):
            if not row[peer] or not row[peer]["ratio"]:
                continue
            middle = statistics.median(row[peer]["ratio"])
            begin, end = sorted((place(1), place(middle)))
            out.append(f'<rect x="{begin:.1f}" y="{y + 2 + j * 10}" width="{max(end - begin, 1):.1f}" height="9" fill="{COLOURS[peer]}"/>')
            low, high = place(min(row[peer]["ratio"])), place(max(row[peer]["ratio"]))
            out.append(f'<line x1="{low:.1f}" y1="{y + 6.5 + j * 10}" x2="{high:.1f}" y2="{y + 6.5 + j * 10}" stroke="black"/>')
            out.append(f'<text x="{max(end, high) + 4:.1f}" y="{y + 10 + j * 10}" font-size="9">{middle:.2f}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"
