! An assignment of a variable that owns something stops the program.
program assign
  use junctura
  implicit none
  type(attributes_t) :: one, other
  call one%set('name', 'one')
  other = one
  print '(a)', 'not reached'
end program
