! Regrids the numbers of the points, in this process and from 2 ranks to 2; prints the field.
! regrid URL WEIGHTS
program regrid
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use junctura
  implicit none
  type(pool_t) :: pool
  type(weights_t) :: weights
  type(layout_t) :: source, target
  type(exchange_t) :: to, from
  type(attributes_t) :: run, step
  character(len=500) :: url, path
  real(real64) :: field(8, 6), result(6, 4), short(5, 4)
  integer(int64) :: sources, targets
  integer :: i, rank, stat
  call get_command_argument(1, url)
  call get_command_argument(2, path)
  call pool%open(url)
  call weights%open('no such file', stat=stat)
  if (stat /= JCT_NOT_FOUND) error stop 'no file'
  call weights%open(path)
  call weights%points(sources, targets)
  if (sources /= 48 .or. targets /= 24) error stop 'points'
  field = reshape([(real(i - 1, real64), i = 1, 48)], [8, 6])
  call weights%apply(field, result)
  call weights%apply(field, short, stat=stat)
  if (stat /= JCT_INVALID_ARGUMENT) error stop 'length'

  call source%open('shape=8x6 grid=2x1 order=F')
  call target%open('shape=6x4 grid=1x2 order=F')
  call run%set('space', 'coupled')
  call step%set('name', 'fortran')
  do rank = 0, 1
    call to%open_source(pool, weights, source, rank, 'f8', run, 'retention=withdrawn')
    call to%put(step, field(4 * rank + 1:4 * rank + 4, :))
  end do
  do rank = 0, 1
    call get_columns(target%start(2, rank), target%extent(2, rank))
  end do
  print '(24es25.17)', result
contains
  subroutine get_columns(first, count)
    integer, intent(in) :: first, count
    real(real64) :: mine(6, count)
    call from%open_target(pool, weights, source, target, rank, 'f8', run)
    call from%get(step, mine, 60.0_real64)
    do i = 1, count
      if (any(transfer(mine(:, i), [0_int64]) /= transfer(result(:, first + i - 1), [0_int64]))) error stop 'bits'
    end do
  end subroutine
end program
