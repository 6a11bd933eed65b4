! An atmosphere of 60 x 45 cells, each above 2 x 2 points of the ocean, whose rows are distributed over ranks:
! atmosphere RANK RANKS STEPS FILE. Lines of coupling end with "! coupling".
program atmosphere
  use, intrinsic :: iso_fortran_env, only: real64
  use junctura ! coupling
  implicit none
  type(pool_t) :: pool ! coupling
  type(layout_t) :: air, sea ! coupling
  type(exchange_t) :: put_wind, get_sst ! coupling
  type(attributes_t) :: wind_key, sst_key ! coupling
  real(real64), allocatable :: wind(:, :), sst(:, :)
  real(real64) :: mean
  integer :: rank, ranks, steps, step, first, i, j
  character(len=200) :: words(4)

  do i = 1, 4
    call get_command_argument(i, words(i))
  end do
  read (words(1:3), *) rank, ranks, steps

  call pool%open() ! coupling: that of the workflow
  call air%open('shape=60x45 grid='//trim(words(2))//'x1 order=F') ! coupling
  call sea%open('shape=120x90 grid='//trim(words(2))//'x1 order=F') ! coupling: the points below its cells
  call put_wind%open(pool, air, rank, 'f8', options='retention=released:2') ! coupling: 2 ranks of the ocean
  call get_sst%open(pool, sea, rank, 'f8') ! coupling
  call wind_key%set('field', 'wind') ! coupling
  call sst_key%set('field', 'sst') ! coupling

  first = air%start(1, rank)
  allocate (wind(air%extent(1, rank), 45), sst(sea%extent(1, rank), 90))
  do j = 1, 45
    wind(:, j) = [(5 - 0.02_real64 * (first + i - 1) * j, i = 1, size(wind, 1))]
  end do

  do step = 1, steps
    call wind_key%set('step', step) ! coupling
    call put_wind%put(wind_key, wind) ! coupling
    call sst_key%set('step', step) ! coupling
    call get_sst%get(sst_key, sst) ! coupling
    do j = 1, 45
      do i = 1, size(wind, 1)
        mean = 0.25_real64 * (((sst(2*i - 1, 2*j - 1) + sst(2*i, 2*j - 1)) + sst(2*i - 1, 2*j)) + sst(2*i, 2*j))
        wind(i, j) = 0.5_real64 * wind(i, j) + 0.5_real64 * mean
      end do
    end do
  end do

  call put_wind%close() ! coupling
  call get_sst%close() ! coupling
  call pool%close() ! coupling
  open (unit=10, file=words(4), access='stream', form='unformatted', status='replace')
  write (10) wind
  close (10)
end program
