! Writes an array by columns, or reads it by rows and counts the elements that differ: the array of grid.c, whose
! dimensions are here in the order of Fortran. With F08 by `use mpi_f08`, else by `use mpi`.
! grid write NAME | grid read NAME...
program grid
#ifdef F08
   use mpi_f08
#else
   use mpi
#endif
   implicit none
   integer, parameter :: rows = 60, columns = 48
   integer :: rank, ranks, error, i, wrong
   character(len=512) :: what, name

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
   call get_command_argument(1, what)
   do i = 2, command_argument_count()
      call get_command_argument(i, name)
      if (what == "write") then
         call write_columns(trim(name))
      else
         call read_rows(trim(name), wrong)
         if (rank == 0) print "(a, a, i0, a)", trim(name), ": ", wrong, " wrong"
      end if
   end do
   call MPI_Finalize(error)

contains

   subroutine part(all, start, count)
      integer, intent(in) :: all
      integer, intent(out) :: start, count
      start = rank*(all/ranks) + min(rank, mod(all, ranks))
      count = all/ranks
      if (rank < mod(all, ranks)) count = count + 1
   end subroutine part

   subroutine write_columns(file_name)
      character(len=*), intent(in) :: file_name
      double precision, allocatable :: mine(:, :)
      integer :: start, count, j, k
#ifdef F08
      type(MPI_File) :: file
      type(MPI_Datatype) :: box
#else
      integer :: file, box
#endif
      call part(columns, start, count)
      allocate (mine(count, rows))
      do k = 1, rows
         do j = 1, count
            mine(j, k) = (k - 1)*columns + start + j - 1
         end do
      end do
      call MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, file, error)
      if (error /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, error)
      call MPI_Type_create_subarray(2, [columns, rows], [count, rows], [start, 0], MPI_ORDER_FORTRAN, &
         MPI_DOUBLE_PRECISION, box, error)
      call MPI_Type_commit(box, error)
      call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_DOUBLE_PRECISION, box, "native", MPI_INFO_NULL, error)
      call MPI_File_write_all(file, mine, size(mine), MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, error)
      if (error /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, error)
      call MPI_File_close(file, error)
      call MPI_Type_free(box, error)
   end subroutine write_columns

   subroutine read_rows(file_name, all)
      character(len=*), intent(in) :: file_name
      integer, intent(out) :: all
      double precision, allocatable :: mine(:, :)
      integer :: start, count, j, k, differ, got
      integer(kind=MPI_OFFSET_KIND) :: bytes
#ifdef F08
      type(MPI_File) :: file
      type(MPI_Datatype) :: box
      type(MPI_Status) :: status
#else
      integer :: file, box, status(MPI_STATUS_SIZE)
#endif
      call part(rows, start, count)
      allocate (mine(columns, count))
      call MPI_File_open(MPI_COMM_WORLD, file_name, MPI_MODE_RDONLY, MPI_INFO_NULL, file, error)
      if (error /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, error)
      call MPI_File_get_size(file, bytes, error)
      call MPI_Type_create_subarray(2, [columns, rows], [columns, count], [0, start], MPI_ORDER_FORTRAN, &
         MPI_DOUBLE_PRECISION, box, error)
      call MPI_Type_commit(box, error)
      call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_DOUBLE_PRECISION, box, "native", MPI_INFO_NULL, error)
      call MPI_File_read_all(file, mine, size(mine), MPI_DOUBLE_PRECISION, status, error)
      call MPI_Get_count(status, MPI_DOUBLE_PRECISION, got, error)
      call MPI_File_close(file, error)
      call MPI_Type_free(box, error)
      differ = 0
      if (bytes /= rows*columns*8 .or. got /= size(mine)) differ = 1
      do k = 1, count
         do j = 1, columns
            if (mine(j, k) /= (start + k - 1)*columns + j - 1) differ = differ + 1
         end do
      end do
      call MPI_Allreduce(differ, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   end subroutine read_rows

end program grid
