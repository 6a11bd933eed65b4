! What the stories in Fortran share: the attributes of a field, and the pool of an argument.
module forecast
  use junctura
  implicit none

contains

  ! Sets the attributes of a field of one forecast.
  subroutine describe(field, param, step)
    type(attributes_t), intent(inout) :: field
    character(len=*), intent(in) :: param
    integer, intent(in) :: step
    call field%set('class', 'od')
    call field%set('stream', 'oper')
    call field%set('date', '2026-11-20')
    call field%set('time', '12')
    call field%set('type', 'fc')
    call field%set('levtype', 'pl')
    call field%set('levelist', 500)
    call field%set('step', step)
    call field%set('param', param)
  end subroutine

  ! Offers the temperature of a step.
  subroutine offer_temperature(pool, step)
    type(pool_t), intent(in) :: pool
    integer, intent(in) :: step
    type(attributes_t) :: field
    character(len=30) :: text
    write (text, '(a,i0)') 'temperature of step ', step
    call describe(field, 't', step)
    call pool%offer(field, trim(text))
  end subroutine

  ! Opens the pool that an argument names, or a private one.
  subroutine open_pool(pool)
    type(pool_t), intent(inout) :: pool
    character(len=200) :: url
    url = ''
    if (command_argument_count() > 0) call get_command_argument(1, url)
    call pool%open(url)
  end subroutine
end module
