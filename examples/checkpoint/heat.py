"""The heat equation on a rod, on one rank. It saves every 100 steps, goes on from the newest checkpoint when it is
started again, and writes the rod into a file.

    python3 heat.py STEPS OUTPUT
"""

import array
import sys

from meikyo_checkpoint import Checkpoint

CELLS = 3_000

steps, output = int(sys.argv[1]), sys.argv[2]
rod = array.array("d", (cell * 31 % 101 for cell in range(CELLS)))
checkpoint = Checkpoint(0, 1, 1)
checkpoint.protect("rod", rod)
step = checkpoint.restore() or 0
while step < steps:
    if step % 100 == 0:
        checkpoint.save(step)
    before = list(rod)
    for cell in range(1, CELLS - 1):
        rod[cell] = before[cell] + 0.25 * (before[cell - 1] + before[cell + 1] - 2 * before[cell])
    step += 1
checkpoint.close()
with open(output, "wb") as file:
    rod.tofile(file)
