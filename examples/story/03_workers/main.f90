! Workers: the members of a group share what matches; each field goes to one of them.
program workers
  use forecast
  use junctura
  implicit none
  integer, parameter :: steps = 5
  type(pool_t) :: pool
  type(requirement_t) :: group
  integer :: done(steps, 2), step, worker
  done = 0
  call open_pool(pool)
  ! From now on what matches is kept for the group, though nobody is there yet.
  call group%open(pool, 'param=t', 'name=workers,group')
  call group%close()
  do step = 1, steps
    call offer_temperature(pool, 6 * (step - 1))
  end do

  ! Two threads with OpenMP; without it the first worker does all.
  !$omp parallel do num_threads(2)
  do worker = 1, 2
    call work(done(:, worker))
  end do
  do step = 1, steps
    print '(a,i0,a,i0,a)', 'step ', 6 * (step - 1), ': done ', sum(done(step, :)), ' time'
  end do
  call pool%retract('workers')
  call pool%close()

contains

  ! Takes fields until the group is owed nothing any more, and counts each.
  subroutine work(counts)
    integer, intent(inout) :: counts(:)
    type(follow_t) :: fields
    type(object_t) :: field
    character(len=:), allocatable :: text
    integer :: kind, step
    call fields%join(pool, 'workers', 'until_live')
    do
      call fields%next(field, kind)
      if (kind == JCT_OVER) exit
      if (kind /= JCT_OBJECT) cycle
      text = field%value('step')
      read (text, *) step
      counts(step / 6 + 1) = counts(step / 6 + 1) + 1
      call field%release() ! Done; give_back would give it to another worker.
    end do
  end subroutine
end program
