! An ocean of 120 x 90 points, whose columns are distributed over ranks: ocean RANK RANKS STEPS FILE. With MPI, rank and
! ranks are those of the communicator. Lines of coupling end with "! coupling".
program ocean
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use junctura ! coupling
  implicit none
  integer, parameter :: rows = 120, columns = 90
  type(pool_t) :: pool ! coupling
  type(layout_t) :: sea, air ! coupling
  type(exchange_t) :: put_sst, get_wind ! coupling
  type(attributes_t) :: sst_key, wind_key ! coupling
  real(real64), allocatable :: sst(:, :), wind(:, :)
  integer :: rank, ranks, steps, step, first, i, j
  character(len=200) :: words(4)

  do i = 1, 4
    call get_command_argument(i, words(i))
  end do
  read (words(1:3), *) rank, ranks, steps

  call pool%open() ! coupling: that of the workflow
  call sea%open('shape=120x90 grid=1x'//trim(words(2))//' order=F') ! coupling
  call cells_above(air) ! coupling
  call put_sst%open(pool, sea, rank, 'f8', options='retention=released:3') ! coupling: 3 ranks of the atmosphere
  call get_wind%open(pool, air, rank, 'f8') ! coupling
  call sst_key%set('field', 'sst') ! coupling
  call wind_key%set('field', 'wind') ! coupling

  first = sea%start(2, rank)
  allocate (sst(rows, sea%extent(2, rank)), wind(rows / 2, air%extent(2, rank)))
  do j = 1, size(sst, 2)
    sst(:, j) = [(10 + 0.01_real64 * i * (first + j - 1), i = 1, rows)]
  end do

  do step = 1, steps
    call sst_key%set('step', step) ! coupling
    call put_sst%put(sst_key, sst) ! coupling
    call wind_key%set('step', step) ! coupling
    call get_wind%get(wind_key, wind) ! coupling
    do j = 1, size(sst, 2)
      do i = 1, rows
        sst(i, j) = 0.9_real64 * sst(i, j) + 0.1_real64 * wind((i + 1) / 2, column_above(first + j - 1))
      end do
    end do
  end do

  call put_sst%close() ! coupling
  call get_wind%close() ! coupling
  call pool%close() ! coupling
  open (unit=10, file=words(4), access='stream', form='unformatted', status='replace')
  write (10) sst
  close (10)

contains

  ! The column of the atmosphere's grid that is above a column of this one, counted from the first that this rank has.
  pure function column_above(column) result(above)
    integer, intent(in) :: column
    integer :: above
    above = (column + 1) / 2 - (first + 1) / 2 + 1
  end function

  ! The layout of the atmosphere's cells above the columns of each rank; ranks may have a column in common.
  subroutine cells_above(layout)
    type(layout_t), intent(inout) :: layout
    integer(int64) :: all(ranks), starts(2, ranks), counts(2, ranks)
    integer :: each
    do each = 0, ranks - 1
      all(each + 1) = each
      starts(:, each + 1) = [1, (sea%start(2, each) + 1) / 2]
      counts(:, each + 1) = [rows / 2, (sea%start(2, each) + sea%extent(2, each)) / 2 - (sea%start(2, each) + 1) / 2 + 1]
    end do
    call layout%open_blocks([int(rows / 2, int64), int(columns / 2, int64)], all, starts, counts) ! coupling
  end subroutine
end program
