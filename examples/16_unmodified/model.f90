! model STEPS: a small regional model, which knows MPI and netCDF. A warm bubble drifts over a periodic area of 96 x 64 points;
! each rank has some rows. Every fourth step rank 0 gathers the fields and writes them to the history, wrfout_d01.nc.
program model
  use mpi
  use netcdf
  implicit none
  integer, parameter :: nx = 96, ny = 64, every = 4
  real, parameter :: dt = 0.4, u = 1.0, v = 0.5, mixing = 0.05
  real, allocatable :: t(:, :), next(:, :), whole(:, :)
  integer :: rank, ranks, rows, first, step, steps, i, j, error, record
  integer :: file, time_var, t2_var, u10_var
  character(len=16) :: word

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call get_command_argument(1, word)
  read (word, *) steps
  if (mod(ny, ranks) /= 0) stop 'the number of ranks has to divide 64'
  rows = ny / ranks
  first = rank * rows
  allocate (t(nx, 0:rows + 1), next(nx, rows), whole(nx, ny))
  do j = 1, rows
    do i = 1, nx
      t(i, j) = 280 + 15 * exp(-((i - 30.0)**2 + (first + j - 20.0)**2) / 80)
    end do
  end do
  if (rank == 0) call open_history()
  record = 0
  do step = 0, steps
    if (mod(step, every) == 0) then
      record = record + 1
      call MPI_Gather(t(:, 1:rows), nx * rows, MPI_REAL, whole, nx * rows, MPI_REAL, 0, MPI_COMM_WORLD, error)
      if (rank == 0) call write_history()
    end if
    call exchange_rows()
    do j = 1, rows
      do i = 1, nx
        next(i, j) = t(i, j) &
          - dt * u * (t(i, j) - t(modulo(i - 2, nx) + 1, j)) - dt * v * (t(i, j) - t(i, j - 1)) &
          + dt * mixing * (t(modulo(i, nx) + 1, j) + t(modulo(i - 2, nx) + 1, j) + t(i, j + 1) + t(i, j - 1) - 4 * t(i, j))
      end do
    end do
    t(:, 1:rows) = next
  end do
  if (rank == 0) call check(nf90_close(file))
  call MPI_Finalize(error)

contains

  subroutine exchange_rows()
    integer :: above, below, status(MPI_STATUS_SIZE)
    above = modulo(rank + 1, ranks)
    below = modulo(rank - 1, ranks)
    call MPI_Sendrecv(t(:, rows), nx, MPI_REAL, above, 0, t(:, 0), nx, MPI_REAL, below, 0, MPI_COMM_WORLD, status, error)
    call MPI_Sendrecv(t(:, 1), nx, MPI_REAL, below, 1, t(:, rows + 1), nx, MPI_REAL, above, 1, MPI_COMM_WORLD, status, &
      error)
  end subroutine exchange_rows

  subroutine open_history()
    integer :: time_dim, x_dim, y_dim
    call check(nf90_create('wrfout_d01.nc', ior(NF90_CLOBBER, NF90_NETCDF4), file))
    call check(nf90_def_dim(file, 'Time', NF90_UNLIMITED, time_dim))
    call check(nf90_def_dim(file, 'west_east', nx, x_dim))
    call check(nf90_def_dim(file, 'south_north', ny, y_dim))
    call check(nf90_def_var(file, 'Time', NF90_DOUBLE, [time_dim], time_var))
    call check(nf90_put_att(file, time_var, 'units', 'minutes since 2026-11-29 00:00:00'))
    call check(nf90_def_var(file, 'T2', NF90_FLOAT, [x_dim, y_dim, time_dim], t2_var))
    call check(nf90_put_att(file, t2_var, 'units', 'K'))
    call check(nf90_put_att(file, t2_var, 'long_name', 'temperature at 2 m'))
    call check(nf90_def_var(file, 'U10', NF90_FLOAT, [x_dim, y_dim, time_dim], u10_var))
    call check(nf90_put_att(file, u10_var, 'units', 'm s-1'))
    call check(nf90_put_att(file, NF90_GLOBAL, 'TITLE', 'a warm bubble'))
    call check(nf90_enddef(file))
  end subroutine open_history

  subroutine write_history()
    call check(nf90_put_var(file, time_var, [dble(step * 6)], start=[record], count=[1]))
    call check(nf90_put_var(file, t2_var, whole, start=[1, 1, record], count=[nx, ny, 1]))
    whole = u
    call check(nf90_put_var(file, u10_var, whole, start=[1, 1, record], count=[nx, ny, 1]))
  end subroutine write_history

  subroutine check(status)
    integer, intent(in) :: status
    if (status == NF90_NOERR) return
    print '(a)', trim(nf90_strerror(status))
    call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine check
end program model
