! The heat equation on a plate, cut into columns of Fortran's arrays (the rows of C's) over the ranks: the same scheme as
! in heat.c, with the same result. It saves every EVERY steps, goes on from the newest checkpoint when it is started
! again, and writes the whole plate into a file.
!
!     mpif90 -O2 meikyo_checkpoint.f90 heat.f90 -lmeikyo_checkpoint -o heat
!     mpirun -n 4 ./heat ROWS COLUMNS STEPS EVERY OUTPUT
program heat
  use meikyo_checkpoint
  use mpi
  implicit none
  real(c_double), allocatable, target :: plate(:, :), next(:, :)
  integer(c_int64_t), target :: whole(2), first(2)
  integer(c_int64_t) :: step, steps, every, ahead, residue
  real(c_double) :: stopped
  type(c_ptr) :: ck
  character(len=200) :: argument
  integer :: rows, columns, mine, begin, rank, ranks, above, below, row, column, turn, fault
  integer :: status(MPI_STATUS_SIZE)

  call MPI_Init(fault)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, fault)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, fault)
  rows = int(number(1))
  columns = int(number(2))
  steps = number(3)
  every = number(4)
  begin = rows * rank / ranks
  mine = rows * (rank + 1) / ranks - begin

  ! A row before and one behind are the neighbours', a column at each side is always cold.
  allocate (plate(0:columns + 1, 0:mine + 1), next(0:columns + 1, 0:mine + 1))
  plate = 0
  next = 0
  do row = 1, mine
    do column = 1, columns
      plate(column, row) = real(mod((begin + row - 1) * 31 + (column - 1) * 17, 101), c_double)
    end do
  end do

  if (mk_init(c_null_ptr, rank, ranks, -1, ck) < 0) call fail('init')
  whole = [int(rows, c_int64_t), int(columns + 2, c_int64_t)]
  first = [int(begin, c_int64_t), 0_c_int64_t]
  if (mk_protect(ck, 'plate' // c_null_char, c_loc(plate(0, 1)), 'f64' // c_null_char, 2, &
      [int(mine, c_int64_t), whole(2)], c_loc(whole), c_loc(first)) < 0) call fail('protect')
  step = 0
  if (mk_restore(ck, step) < 0) call fail('restore')
  if (rank == 0) write (0, '(a, i0)') 'begins at step ', step

  above = MPI_PROC_NULL
  below = MPI_PROC_NULL
  if (rank > 0) above = rank - 1
  if (rank + 1 < ranks) below = rank + 1
  do while (step < steps)
    if (mod(step, every) == 0) then
      if (mk_save(ck, step) < 0) write (0, '(a, i0, 2a)') 'step ', step, ' is not saved: ', mk_error()
    end if
    call MPI_Sendrecv(plate(0, 1), columns + 2, MPI_DOUBLE_PRECISION, above, 0, plate(0, mine + 1), columns + 2, &
        MPI_DOUBLE_PRECISION, below, 0, MPI_COMM_WORLD, status, fault)
    call MPI_Sendrecv(plate(0, mine), columns + 2, MPI_DOUBLE_PRECISION, below, 1, plate(0, 0), columns + 2, &
        MPI_DOUBLE_PRECISION, above, 1, MPI_COMM_WORLD, status, fault)
    do row = 1, mine
      do column = 1, columns
        next(column, row) = plate(column, row) + 0.2_c_double * (plate(column - 1, row) + plate(column + 1, row) &
            + plate(column, row - 1) + plate(column, row + 1) - 4 * plate(column, row))
      end do
    end do
    plate(:, 1:mine) = next(:, 1:mine)
    step = step + 1
  end do

  if (rank == 0 .and. mk_cost(ck, stopped, ahead, residue) >= 0) &
      write (0, '(a, f0.3, a, i0, a, i0, a)') 'the last save: ', stopped * 1000, ' ms, ', ahead, &
      ' octets copied ahead, ', residue, ' in the stop'

  ! One rank after the other writes its rows.
  call get_command_argument(5, argument)
  do turn = 0, ranks - 1
    call MPI_Barrier(MPI_COMM_WORLD, fault)
    if (turn /= rank) cycle
    if (rank == 0) then
      open (unit=10, file=trim(argument), access='stream', form='unformatted', status='replace')
    else
      open (unit=10, file=trim(argument), access='stream', form='unformatted', position='append')
    end if
    write (10) plate(1:columns, 1:mine)
    close (10)
  end do
  call mk_finalize(ck)
  call MPI_Finalize(fault)

contains

  integer(c_int64_t) function number(at)
    integer, intent(in) :: at
    call get_command_argument(at, argument)
    read (argument, *) number
  end function

  subroutine fail(what)
    character(len=*), intent(in) :: what
    write (0, '(3a)') what, ': ', mk_error()
    call MPI_Abort(MPI_COMM_WORLD, 2, fault)
  end subroutine
end program
