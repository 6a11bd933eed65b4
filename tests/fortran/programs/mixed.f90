! A link of a chain of languages: `mixed URL FROM TO` receives an array of 5 x 7 elements by three ranks, column by
! column, into the middle of larger arrays, and offers it under another name; with a fourth word it receives the bytes of
! rows one behind the other.
program mixed
  use, intrinsic :: iso_fortran_env, only: real64
  use junctura
  implicit none
  type(pool_t) :: pool
  type(layout_t) :: columns
  type(attributes_t) :: from, to
  real(real64), allocatable :: part(:, :)
  real(real64) :: rows(7, 5)
  character(len=200) :: words(3)
  integer :: rank, i
  do i = 1, 3
    call get_command_argument(i, words(i))
  end do
  call pool%open(words(1))
  call columns%open('shape=5x7 grid=1x3 order=F')
  call from%set('name', words(2))
  call to%set('name', words(3))
  if (command_argument_count() > 3) then
    call columns%open('shape=5x7')
    call pool%demand('name='//words(2), rows, timeout=60.0_real64)
    call pool%offer_piece(columns, 0, to, rows)
  else
    call pass_on()
  end if
  call pool%close()
  print '(a)', 'done'

contains

  subroutine pass_on()
    do rank = 0, 2
      allocate (part(0:columns%extent(1, rank) + 1, columns%extent(2, rank)))
      call pool%demand_array(from, columns, rank, part(1:5, :), timeout=60.0_real64)
      call pool%offer_piece(columns, rank, to, part(1:5, :))
      deallocate (part)
    end do
  end subroutine
end program
