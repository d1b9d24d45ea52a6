"""The heat equation on a plate, cut into rows over the ranks: the same scheme as in heat.c, with the same result. It
saves every EVERY steps, goes on from the newest checkpoint when it is started again, and writes the whole plate into
a file.

    mpirun -n 4 python3 heat.py ROWS COLUMNS STEPS EVERY OUTPUT
"""

import sys

import numpy
from mpi4py import MPI

from meikyo_checkpoint import Checkpoint, CheckpointError

rows, columns, steps, every = map(int, sys.argv[1:5])
ranks, rank = MPI.COMM_WORLD.size, MPI.COMM_WORLD.rank
begin, end = rows * rank // ranks, rows * (rank + 1) // ranks
mine = end - begin

# A row above and one below are the neighbours', a column at each side is always cold.
plate = numpy.zeros((mine + 2, columns + 2))
plate[1:-1, 1:-1] = (numpy.arange(begin, end)[:, None] * 31 + numpy.arange(columns) * 17) % 101

checkpoint = Checkpoint(rank, ranks)
checkpoint.protect("plate", plate[1:-1], whole=(rows, columns + 2), first=(begin, 0))
step = checkpoint.restore() or 0
if rank == 0:
    print(f"begins at step {step}", file=sys.stderr, flush=True)

above = rank - 1 if rank > 0 else MPI.PROC_NULL
below = rank + 1 if rank + 1 < ranks else MPI.PROC_NULL
while step < steps:
    if step % every == 0:
        try:
            checkpoint.save(step)
        except CheckpointError as error:
            # The program goes on: the checkpoint before still holds.
            print(f"rank {rank}, step {step}: {error}", file=sys.stderr, flush=True)
    MPI.COMM_WORLD.Sendrecv(plate[1], above, 0, plate[-1], below, 0)
    MPI.COMM_WORLD.Sendrecv(plate[-2], below, 1, plate[0], above, 1)
    here = plate[1:-1, 1:-1]
    around = plate[1:-1, :-2] + plate[1:-1, 2:] + plate[:-2, 1:-1] + plate[2:, 1:-1]
    # In place: the array that is protected stays where it is.
    here += 0.2 * (around - 4.0 * here)
    step += 1

if rank == 0:
    cost = checkpoint.cost()
    print(f"the last save: {cost.stop_seconds * 1000:.3f} ms, {cost.ahead_bytes} octets copied ahead, "
          f"{cost.residue_bytes} in the stop", file=sys.stderr, flush=True)

# One rank after the other writes its rows.
for turn in range(ranks):
    MPI.COMM_WORLD.Barrier()
    if turn == rank:
        with open(sys.argv[5], "wb" if rank == 0 else "ab") as file:
            file.write(plate[1:-1, 1:-1].tobytes())
checkpoint.close()
