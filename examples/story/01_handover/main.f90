! Hand-over: a consumer asks for a field by what it means, a producer offers it, in whichever order.
program handover
  use forecast
  use junctura
  implicit none
  type(pool_t) :: pool
  type(pending_t) :: wanted
  type(object_t) :: field
  call open_pool(pool)
  call wanted%open(pool, 'param=t, levelist=500, step=6')
  print '(a)', 'asked for: param=t, levelist=500, step=6'

  call offer_temperature(pool, 0)
  call offer_temperature(pool, 6)

  call wanted%take(field)
  print '(2a)', 'got: ', field%text()
  call field%release()
  call wanted%close()
  call pool%close()
end program
