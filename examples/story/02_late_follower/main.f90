! A late follower: what was there before it came, and what comes after, are one stream without a gap.
program late_follower
  use forecast
  use junctura
  implicit none
  type(pool_t) :: pool
  type(follow_t) :: fields
  call open_pool(pool)
  call offer_temperature(pool, 0)
  call offer_temperature(pool, 6)

  call fields%open(pool, 'param=t, step=0/to/240/by/6')
  call print_next('there: ')
  call print_next('there: ')
  call offer_temperature(pool, 12)
  call print_next('comes: ')
  call fields%close()
  call pool%close()

contains

  subroutine print_next(what)
    character(len=*), intent(in) :: what
    type(object_t) :: field
    integer :: kind
    kind = 0
    do while (kind /= JCT_OBJECT)
      call fields%next(field, kind)
    end do
    print '(2a)', what, field%text()
  end subroutine
end program
