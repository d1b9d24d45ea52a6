! libmeikyo_checkpoint for Fortran; include/meikyo_checkpoint.h says what the functions do. The first dimension of a
! Fortran array is the fastest: shapes are given the other way round, and texts end with c_null_char.
module meikyo_checkpoint
  use, intrinsic :: iso_c_binding
  implicit none

  interface
    integer(c_int) function mk_init(directory, rank, ranks, ranks_here, ck) bind(c, name='meikyo_checkpoint_init')
      import
      type(c_ptr), value :: directory
      integer(c_int), value :: rank, ranks, ranks_here
      type(c_ptr) :: ck
    end function
    integer(c_int) function mk_protect(ck, name, data, element, dimensions, shape, whole, first) &
        bind(c, name='meikyo_checkpoint_protect')
      import
      type(c_ptr), value :: ck, data, whole, first
      character(kind=c_char) :: name(*), element(*)
      integer(c_int), value :: dimensions
      integer(c_int64_t) :: shape(*)
    end function
    integer(c_int) function mk_file(ck, path) bind(c, name='meikyo_checkpoint_file')
      import
      type(c_ptr), value :: ck
      character(kind=c_char) :: path(*)
    end function
    integer(c_int) function mk_due(ck) bind(c, name='meikyo_checkpoint_due')
      import
      type(c_ptr), value :: ck
    end function
    integer(c_int) function mk_save(ck, step) bind(c, name='meikyo_checkpoint_save')
      import
      type(c_ptr), value :: ck
      integer(c_int64_t), value :: step
    end function
    integer(c_int) function mk_restore(ck, step) bind(c, name='meikyo_checkpoint_restore')
      import
      type(c_ptr), value :: ck
      integer(c_int64_t) :: step
    end function
    integer(c_int) function mk_should_exit(ck) bind(c, name='meikyo_checkpoint_should_exit')
      import
      type(c_ptr), value :: ck
    end function
    subroutine mk_finalize(ck) bind(c, name='meikyo_checkpoint_finalize')
      import
      type(c_ptr), value :: ck
    end subroutine
  end interface
end module
