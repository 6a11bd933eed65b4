! One of two models of MPI, which put a field each and get the other's: mpi_model URL MINE OTHER. The values are those of
! the indices and the step, so that each rank knows what it must receive.
program mpi_model
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi
  use junctura
  implicit none
  integer, parameter :: steps = 5
  type(pool_t) :: pool
  type(layout_t) :: mine
  type(exchange_t) :: coupler
  type(attributes_t) :: put_key, get_key
  real(real64), allocatable :: field(:, :), received(:, :)
  character(len=200) :: words(3), grid, name
  integer :: rank, ranks, code, step, i, wrong, all_wrong
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  do i = 1, 3
    call get_command_argument(i, words(i))
  end do
  write (grid, '(a,i0,a)') 'shape=24x18 grid=1x', ranks, ' order=F'
  call pool%open(words(1))
  call mine%open(grid)
  call coupler%open(pool, mine, rank, 'f8', options='retention=withdrawn')
  allocate (field(24, mine%extent(2, rank)), received(24, mine%extent(2, rank)))
  wrong = 0
  do step = 1, steps
    call fill(field, step)
    write (name, '(a,i0)') trim(words(2)), step
    call put_key%set('name', name)
    call coupler%put(put_key, field)
    write (name, '(a,i0)') trim(words(3)), step
    call get_key%set('name', name)
    call coupler%get(get_key, received, 60.0_real64)
    wrong = wrong + count(abs(received - field) > 0)
  end do
  call coupler%close()
  call pool%close()
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (rank == 0) print '(i0,a)', all_wrong, ' elements differ'
  call MPI_Finalize(code)

contains

  subroutine fill(values, number)
    real(real64), intent(out) :: values(:, :)
    integer, intent(in) :: number
    integer :: row, column
    do column = 1, size(values, 2)
      do row = 1, size(values, 1)
        values(row, column) = row + 100 * (mine%start(2, rank) + column - 1) + 10000 * number
      end do
    end do
  end subroutine
end program
