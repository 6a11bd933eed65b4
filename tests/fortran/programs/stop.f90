! A call without `stat=` that fails stops the program.
program stop_on_error
  use, intrinsic :: iso_fortran_env, only: real64
  use junctura
  implicit none
  type(pool_t) :: pool
  type(object_t) :: object
  call pool%open(options='schema=free')
  call pool%demand('name=never', object, timeout=0.0_real64)
  print '(a)', 'not reached'
end program
