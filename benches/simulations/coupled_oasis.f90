! One rank of two models that exchange a field both ways with each step, by OASIS3-MCT: as coupled.c.
! coupled_oasis fine|coarse ROWS COLUMNS STEPS, in a folder with namcouple, down.nc and up.nc.
program coupled_oasis
  use mod_oasis
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  include 'mpif.h'
  integer, parameter :: warm = 20
  character(len=20) :: word
  character(len=6) :: name
  character(len=5) :: sent, taken
  integer :: component, comm, rank, ranks, rows, columns, steps, part, out, into, code, at, first, last, i
  integer :: dimensions(2), extents(4), split(3)
  integer(int64) :: start, now, ticks
  real(real64), allocatable :: field(:), received(:)
  logical :: is_fine
  call get_command_argument(1, word)
  is_fine = word == 'fine'
  call get_command_argument(2, word)
  read (word, *) rows
  call get_command_argument(3, word)
  read (word, *) columns
  call get_command_argument(4, word)
  read (word, *) steps
  name = merge('finemd', 'coarmd', is_fine)
  sent = merge('SST_F', 'WND_C', is_fine)
  taken = merge('WND_F', 'SST_C', is_fine)
  if (.not. is_fine) then
    rows = rows / 2
    columns = columns / 2
  end if
  call oasis_init_comp(component, name, code)
  call oasis_get_localcomm(comm, code)
  call MPI_Comm_rank(comm, rank, code)
  call MPI_Comm_size(comm, ranks, code)
  first = rows * rank / ranks
  last = rows * (rank + 1) / ranks
  split = [1, first * columns, (last - first) * columns]
  call oasis_def_partition(part, split, code)
  dimensions = [1, 1]
  extents = [1, split(3), 1, 1]
  call oasis_def_var(out, sent, part, dimensions, OASIS_Out, extents, OASIS_Real, code)
  call oasis_def_var(into, taken, part, dimensions, OASIS_In, extents, OASIS_Real, code)
  call oasis_enddef(code)
  allocate (field(split(3)), received(split(3)))
  call system_clock(start)
  do at = 0, warm + steps - 1
    if (at == warm) call system_clock(start)
    field = [(at + real(mod(i, 7), real64), i = 0, split(3) - 1)]
    call oasis_put(out, at, field, code)
    call oasis_get(into, at, received, code)
    ! The first cell of a rank has the number of the step, and the coarse one a mean near it.
    if (abs(received(1) - at) > merge(0, 7, is_fine)) call oasis_abort(component, 'coupled', 'values')
  end do
  call system_clock(now, ticks)
  if (is_fine .and. rank == 0) &
    print '(a, es12.4, a)', '{"step_ms": ', real(now - start, real64) * 1e3 / real(ticks, real64) / steps, '}'
  call oasis_terminate(code)
end program
