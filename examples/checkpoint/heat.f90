! The heat equation on a rod, on one rank. It saves every 1000 steps, goes on from the newest checkpoint when it is
! started again, and writes the rod into a file.
!
!     gfortran -O2 meikyo_checkpoint.f90 heat.f90 -lmeikyo_checkpoint -o heat
!     ./heat STEPS OUTPUT
program heat
  use meikyo_checkpoint
  implicit none
  integer, parameter :: cells = 100000
  real(c_double), target :: rod(cells), next(cells)
  integer(c_int64_t) :: step, steps
  type(c_ptr) :: ck
  character(len=200) :: argument
  integer :: cell

  call get_command_argument(1, argument)
  read (argument, *) steps
  do cell = 1, cells
    rod(cell) = real(mod(cell * 31, 101), c_double)
  end do
  if (mk_init(c_null_ptr, 0, 1, 1, ck) < 0) error stop 'init'
  if (mk_protect(ck, 'rod' // c_null_char, c_loc(rod), 'f64' // c_null_char, 1, &
      [int(cells, c_int64_t)], c_null_ptr, c_null_ptr) < 0) error stop 'protect'
  step = 0
  if (mk_restore(ck, step) < 0) error stop 'restore'
  do while (step < steps)
    if (mod(step, 1000_c_int64_t) == 0) then
      if (mk_save(ck, step) < 0) print *, 'step', step, 'is not saved'
    end if
    next(1) = rod(1)
    next(cells) = rod(cells)
    next(2:cells - 1) = rod(2:cells - 1) + 0.25_c_double * (rod(1:cells - 2) + rod(3:cells) - 2 * rod(2:cells - 1))
    rod = next
    step = step + 1
  end do
  call get_command_argument(2, argument)
  open (unit=10, file=trim(argument), access='stream', form='unformatted', status='replace')
  write (10) rod
  close (10)
  call mk_finalize(ck)
end program
