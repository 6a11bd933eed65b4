! history PATH STEPS: a model in Fortran that writes its history as many do, and reads the last step back from another file.
program history
  use netcdf
  implicit none
  integer, parameter :: west_east = 12, south_north = 8, half = 4
  character(len=256) :: path, word
  integer :: steps, step, file, time_dim, x_dim, y_dim, text_dim, times, t2, rain, levels, i, j, length
  real :: field(west_east, south_north), back(west_east, south_north)
  integer :: totals(west_east)
  character(len=19) :: stamp

  call get_command_argument(1, path)
  call get_command_argument(2, word)
  read (word, *) steps
  call check(nf90_create(trim(path), ior(NF90_CLOBBER, NF90_NETCDF4), file))
  call check(nf90_def_dim(file, 'Time', NF90_UNLIMITED, time_dim))
  call check(nf90_def_dim(file, 'DateStrLen', 19, text_dim))
  call check(nf90_def_dim(file, 'west_east', west_east, x_dim))
  call check(nf90_def_dim(file, 'south_north', south_north, y_dim))
  call check(nf90_def_var(file, 'Times', NF90_CHAR, [text_dim, time_dim], times))
  call check(nf90_def_var(file, 'T2', NF90_FLOAT, [x_dim, y_dim, time_dim], t2))
  call check(nf90_put_att(file, t2, 'units', 'K'))
  call check(nf90_def_var(file, 'RAINNC', NF90_INT, [x_dim, time_dim], rain))
  call check(nf90_def_var(file, 'LEVELS', NF90_DOUBLE, [y_dim], levels))
  call check(nf90_put_att(file, NF90_GLOBAL, 'TITLE', 'a model in Fortran'))
  call check(nf90_enddef(file))
  call check(nf90_put_var(file, levels, [(real(j) / 4, j = 1, south_north)]))
  do step = 1, steps
    write (stamp, '(a,i2.2,a)') '2026-11-29_', step, ':00:00'
    do j = 1, south_north
      do i = 1, west_east
        field(i, j) = real(1000 * step + 20 * j + i)
      end do
    end do
    totals = [(step * i, i = 1, west_east)]
    call check(nf90_put_var(file, times, stamp, start=[1, step], count=[19, 1]))
    call check(nf90_put_var(file, t2, field(:, ::2), start=[1, 1, step], count=[west_east, half, 1], &
      stride=[1, 2, 1]))
    call check(nf90_put_var(file, t2, field(:, 2::2), start=[1, 2, step], count=[west_east, half, 1], &
      stride=[1, 2, 1]))
    call check(nf90_put_var(file, rain, totals, start=[1, step], count=[west_east, 1]))
    call check(nf90_sync(file))
  end do
  call check(nf90_close(file))

  call check(nf90_open(trim(path), NF90_NOWRITE, file))
  call check(nf90_inquire_dimension(file, time_dim, len=length))
  call check(nf90_get_var(file, t2, back, start=[1, 1, length], count=[west_east, south_north, 1]))
  print '(i0,1x,i0,1x,l1)', length, nint(sum(back)), maxval(abs(back - field)) <= 0
  call check(nf90_close(file))

contains

  subroutine check(status)
    integer, intent(in) :: status
    if (status == NF90_NOERR) return
    print '(a)', trim(nf90_strerror(status))
    stop 1
  end subroutine check
end program history
