! A restart: what comes while a consumer is away is kept for it, under a name.
program restart
  use, intrinsic :: iso_fortran_env, only: int64
  use forecast
  use junctura
  implicit none
  type(pool_t) :: pool
  type(requirement_t) :: archive
  integer(int64) :: owed
  call open_pool(pool)
  call archive%open(pool, 'param=t', 'name=archive,group')
  call archive%close()
  call offer_temperature(pool, 0)
  call live('first life: ')
  call offer_temperature(pool, 6)
  call offer_temperature(pool, 12)
  call live('second life: ')
  call pool%retract('archive', owed)
  print '(a,i0)', 'still owed: ', owed
  call pool%close()

contains

  ! A life of the consumer: a connection of its own, as a process of its own would have.
  subroutine live(which)
    character(len=*), intent(in) :: which
    type(pool_t) :: mine
    type(follow_t) :: fields
    type(object_t) :: field
    integer :: kind
    call mine%open(pool%url(), 'name=archive')
    call fields%join(mine, 'archive', 'until_live')
    do
      call fields%next(field, kind)
      if (kind == JCT_OVER) exit
      if (kind == JCT_OBJECT) print '(2a)', which, field%text()
    end do
    call field%release()
    call fields%close()
    call mine%close()
  end subroutine
end program
