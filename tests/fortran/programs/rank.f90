! One of three ranks that exchange an array with each step; between steps it waits for a line.
! rank URL RANK
program rank
  use, intrinsic :: iso_fortran_env, only: output_unit, real64
  use junctura
  implicit none
  type(pool_t) :: pool
  type(layout_t) :: rows
  type(exchange_t) :: exchange
  type(attributes_t) :: step
  character(len=500) :: url, number, message
  character(len=20) :: line
  real(real64) :: mine(2, 4), whole(6, 4)
  integer :: me, i, stat
  call get_command_argument(1, url)
  call get_command_argument(2, number)
  read (number, *) me
  call pool%open(url)
  call rows%open('shape=6x4 grid=3x1 order=F')
  do i = 1, 2
    if (i == 2) read (*, '(a)') line
    mine = 10 * me + i
    call step%set('name', 'step'//achar(iachar('0') + i))
    call exchange%open(pool, rows, me, 'f8', options='retention=withdrawn')
    call exchange%put(step, mine)
    print '(a)', 'put'
    flush (output_unit)
    call get_all(stat)
    if (stat == JCT_OK) then
      print '(a)', 'got'
    else
      print '(a)', error_name(stat)
      print '(a)', trim(message)
      stop
    end if
    flush (output_unit)
  end do
contains
  subroutine get_all(stat)
    integer, intent(out) :: stat
    type(layout_t) :: all
    real(real64) :: limit
    ! All ranks put the first step.
    limit = merge(60.0_real64, 1.0_real64, i == 1)
    call all%open('shape=6x4 order=F')
    call pool%demand_array(step, all, 0, whole, timeout=limit, stat=stat, errmsg=message)
    if (stat == JCT_OK .and. any(abs(whole(5:6, :) - 20 - i) > 0)) error stop 'values'
  end subroutine
end program
