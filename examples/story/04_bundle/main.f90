! A bundle: fields that belong together become visible together, or not at all.
program bundles
  use forecast
  use junctura
  implicit none
  type(pool_t) :: pool
  type(bundle_t) :: first, second
  type(attributes_t) :: temperature, wind
  call open_pool(pool)
  call describe(temperature, 't', 6)
  call describe(wind, 'u', 6)
  ! Two producers know the bundle by its path; either may come first.
  call first%open(pool, 'run/step=6', options='members=2')
  call first%offer(temperature, 'temperature')
  print '(a,i0,a)', 'one of two is staged, ', visible(), ' to be seen'

  call second%open(pool, 'run/step=6', options='members=2')
  call second%offer(wind, 'wind')
  call first%wait()
  print '(a,i0,a)', 'two of two, ', visible(), ' to be seen'
  call first%close()
  call second%close()
  call pool%close()

contains

  function visible() result(found)
    integer :: found
    type(list_t) :: list
    character(len=:), allocatable :: key
    call list%open(pool, 'step=6')
    found = -1
    do
      call list%next(key)
      found = found + 1
      if (key == '') exit
    end do
  end function
end program
