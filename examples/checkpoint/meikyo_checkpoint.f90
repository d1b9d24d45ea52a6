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
    ! 1 where a copy of the arrays is kept.
    integer(c_int) function mk_cost(ck, stop_seconds, ahead_bytes, residue_bytes) bind(c, name='meikyo_checkpoint_cost')
      import
      type(c_ptr), value :: ck
      real(c_double) :: stop_seconds
      integer(c_int64_t) :: ahead_bytes, residue_bytes
    end function
    type(c_ptr) function mk_alloc(ck, name, element, dimensions, shape, whole, first) &
        bind(c, name='meikyo_checkpoint_alloc')
      import
      type(c_ptr), value :: ck, whole, first
      character(kind=c_char) :: name(*), element(*)
      integer(c_int), value :: dimensions
      integer(c_int64_t) :: shape(*)
    end function
    subroutine mk_finalize(ck) bind(c, name='meikyo_checkpoint_finalize')
      import
      type(c_ptr), value :: ck
    end subroutine
    type(c_ptr) function error_text() bind(c, name='meikyo_checkpoint_error')
      import
    end function
    integer(c_size_t) function strlen(text) bind(c, name='strlen')
      import
      type(c_ptr), value :: text
    end function
  end interface
  private :: error_text, strlen

contains

  ! Why the last call that failed did.
  function mk_error() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: place
    integer :: at
    place = error_text()
    call c_f_pointer(place, letters, [strlen(place)])
    allocate (character(len=size(letters)) :: text)
    do at = 1, size(letters)
      text(at:at) = letters(at)
    end do
  end function
end module
