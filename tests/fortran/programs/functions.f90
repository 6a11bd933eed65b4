! Every procedure of the module once, in the pool that the first argument names, or in a private one.
program functions
  use, intrinsic :: iso_fortran_env, only: error_unit, int8, int16, int32, int64, real32, real64
  use junctura
  implicit none
  type(pool_t) :: pool
  character(len=200) :: url
  url = ''
  if (command_argument_count() > 0) call get_command_argument(1, url)
  call pool%open(url, 'name=functions,timeout=1min,schema=(free,mars)')
  call library()
  call attributes()
  call offers()
  call allocations()
  call pipelines()
  call pending()
  call requirements()
  call follows()
  call finalizers()
  call lists()
  call bundles()
  call ranks_and_kinds()
  call sections()
  call layouts()
  call exchanges()
  call events()
  call refusals()
  call close_pool()
  print '(a)', 'done'

contains

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (condition) return
    write (error_unit, '(3a)') what, '; last error: ', error_text()
    error stop 1
  end subroutine

  subroutine name_key(key, name)
    type(attributes_t), intent(inout) :: key
    character(len=*), intent(in) :: name
    call key%clear()
    call key%set('name', name)
  end subroutine

  subroutine offer(name, payload)
    character(len=*), intent(in) :: name, payload
    type(attributes_t) :: key
    call key%set('name', name)
    call pool%offer(key, payload)
  end subroutine

  subroutine library()
    call expect(index(junctura_version(), '.') > 0, 'version')
    call expect(error_name(JCT_GONE) == 'Gone' .and. error_name(77) == '', 'names')
    call expect(error_advice(JCT_TIMEOUT) == JCT_RETRY .and. error_advice(JCT_GONE) == JCT_GIVE_UP, 'advice')
    call expect(error_advice(JCT_NOT_FOUND) == JCT_FIX, 'advice')
    call expect(index(pool%url(), ':') > 0, 'url')
  end subroutine

  subroutine attributes()
    type(attributes_t) :: all, field
    type(object_t) :: object
    integer :: stat
    call all%set('name', 'attributes  ')
    call all%set('step', 6)
    call all%set('step', '12')
    call all%set('unit', 'K')
    call all%set('shape', [character(len=3) :: '4', '6'])
    call pool%offer(all, 'x', 'schema=free')
    call pool%demand('name=attributes', object, timeout=60.0_real64)
    call expect(object%value('step') == '12' .and. object%value('shape') == '4/6', 'values')
    call expect(object%has('unit') .and. .not. object%has('unknown') .and. object%value('unknown') == '', 'has')
    call all%set('level', 0.5)
    call pool%offer(all, 'x', stat=stat)
    call expect(stat == JCT_TYPE_MISMATCH, 'a real where a text is declared')
    call all%set('level', 0.5_real64, stat)
    call expect(stat == JCT_OK, 'set')
    call field%set('class', 'od')
    call field%set('stream', 'oper')
    call field%set('date', '2026-11-20')
    call field%set('time', 12_int64)
    call field%set('type', 'fc')
    call field%set('levtype', 'pl')
    call field%set('param', 't')
    call field%set('step', 6)
    call field%set('levelist', 0.5)
    call pool%offer(field, 'field', 'schema=mars')
    call pool%demand('param=t,levelist<=0.5', object)
    call expect(object%text() == 'field' .and. object%value('step') == '6', 'numbers')
    call all%clear()
    call pool%offer(all, 'x', stat=stat)
    call expect(stat == JCT_SCHEMA_MISMATCH, 'no attributes')
    call all%close()
    call all%close()
    call all%set('name', 'again')
  end subroutine

  subroutine offers()
    type(attributes_t) :: key
    type(object_t) :: object
    integer :: stat
    integer(int64) :: number
    character(len=200) :: message
    character(len=:), allocatable :: json
    message = 'unchanged'
    call name_key(key, 'offers')
    call pool%wanted(key, number)
    call expect(number == 0, 'wanted')
    call pool%offer(key, 'x', 'if_wanted', stat, message)
    call expect(stat == JCT_NOT_WANTED .and. index(message, 'NotWanted') == 1, 'not wanted')
    call pool%offer(key, 'text ', 'retention=withdrawn')
    call pool%demand_key(key, object, 'schema=free', 60.0_real64, stat, message)
    call expect(stat == JCT_OK .and. object%text() == 'text ' .and. len(object%text()) == 5, 'text')
    call expect(object%bytes() == 5 .and. object%version() > 0 .and. .not. object%redelivered(), 'object')
    call expect(index(object%key(), 'name=offers') > 0, 'key')
    call object%give_back()
    call pool%sync(60.0_real64)
    call pool%withdraw(key, 'force', 60.0_real64, number)
    call expect(number == 1, 'withdraw')
    call pool%demand_key(key, object, timeout=0.0_real64, stat=stat)
    call expect(stat == JCT_GONE .and. index(error_cause(), 'withdrawn') > 0 .and. len(error_subject()) > 0, 'gone')
    call pool%withdraw_all('name=offers', count=number)
    call expect(number == 0, 'withdraw_all')
    call pool%note('step=36, of=240')
    call pool%sync(60.0_real64)
    call pool%counters(json)
    call expect(json(1:1) == '{', 'counters')
    call expect(index(json, 'step=36, of=240') > 0, 'note')
    call pool%explain('name=none', json)
    call expect(index(json, '"matches":0') > 0, 'explain')
    call pool%descriptor(stat)
    call expect(stat > 0, 'descriptor')
  end subroutine

  subroutine allocations()
    type(attributes_t) :: key
    type(allocation_t) :: memory
    real(real64), pointer :: values(:), field(:, :)
    real(real32), pointer :: read(:)
    type(object_t) :: object
    integer :: stat
    call memory%view(values)
    call expect(.not. associated(values), 'not open')
    call memory%open(pool, 8_int64 * 600)
    call memory%view(values)
    call expect(size(values) == 600, 'view')
    field(1:20, 1:30) => values
    field = 1.5
    field(20, 30) = 2.5
    call name_key(key, 'allocated')
    call memory%offer(key)
    call memory%offer(key, stat=stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'an allocation is offered once')
    call pool%demand('name=allocated', object)
    call object%view(values)
    call object%view(read)
    call expect(size(values) == 600 .and. values(1) == 1.5 .and. values(600) == 2.5 .and. size(read) == 1200, 'read')
    call object%release()
    call object%view(values)
    call expect(.not. associated(values) .and. object%bytes() == 0 .and. object%text() == '', 'released')
    call memory%open(pool, 48_int64)
    call memory%write([1.0_real64, 2.0_real64])
    call memory%write(reshape([3.0_real64, 4.0_real64, 5.0_real64, 6.0_real64], [2, 2]), 2_int64)
    call memory%view(values)
    call expect(all(values == [1.0_real64, 2.0_real64, 3.0_real64, 4.0_real64, 5.0_real64, 6.0_real64]), 'write')
    call memory%write([7.0_real64], 6_int64, stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'write beyond the end')
    call memory%close()
  end subroutine

  subroutine pipelines()
    type(pipeline_t) :: pipeline
    type(allocation_t) :: memory
    type(attributes_t) :: key
    type(object_t) :: object
    integer(int32) :: number
    integer :: i, stat
    character(len=8) :: name
    call pipeline%open(pool, 'window=2')
    do i = 1, 5
      write (name, '(a,i0)') 'piped', i
      call name_key(key, name)
      call pipeline%offer(key, i)
    end do
    call name_key(key, 'text')
    call pipeline%offer(key, 'text')
    call memory%open(pool, 100_int64)
    call name_key(key, 'memory')
    call pipeline%offer(key, memory)
    call pipeline%push()
    call pipeline%flush()
    call pool%demand('name=piped5', number, timeout=0.0_real64)
    call pool%demand('name=memory', object, timeout=0.0_real64)
    call expect(number == 5 .and. object%bytes() == 100, 'piped')
    call pipeline%offer(key, 'again')
    call pipeline%flush(stat)
    call expect(stat == JCT_ALREADY_EXISTS, 'offered before')
    call pipeline%close()
  end subroutine

  subroutine pending()
    type(pending_t) :: late
    type(object_t) :: object
    integer :: stat
    call late%open(pool, 'name=late')
    call late%take(object, 0.0_real64, stat)
    call expect(stat == JCT_TIMEOUT, 'nothing yet')
    call offer('late', 'answer')
    call late%take(object)
    call expect(object%text() == 'answer', 'answer')
    call late%take(object, stat=stat)
    call expect(stat == JCT_NOT_FOUND, 'taken before')
    call late%close()
  end subroutine

  subroutine requirements()
    type(requirement_t) :: requirement
    type(follow_t) :: follow
    type(object_t) :: object
    integer :: kind, stat
    integer(int64) :: owed
    call requirement%open(pool, 'name=r1', 'versions=newest')
    call offer('r1', 'one')
    call requirement%follow(follow, 'window=1')
    kind = 0
    do while (kind /= JCT_OBJECT)
      call follow%next(object, kind)
    end do
    call expect(object%text() == 'one', 'required')
    call object%release()
    call follow%close()
    call requirement%retract()
    call requirement%open(pool, 'name=r2', 'name=archive')
    call requirement%close()
    call pool%retract('archive', owed)
    call expect(owed == 0, 'owed')
    call pool%retract('archive', stat=stat)
    call expect(stat == JCT_NOT_FOUND, 'retracted before')
  end subroutine

  subroutine follows()
    type(follow_t) :: follow, member
    type(requirement_t) :: requirement
    type(object_t) :: object
    integer :: kind, stat
    integer(int64) :: missed
    character(len=:), allocatable :: reason, cursor
    call offer('f1', 'early')
    call follow%open(pool, 'name=f1/f2')
    call follow%next(object, kind)
    call expect(kind == JCT_OBJECT .and. object%text() == 'early', 'early')
    call follow%next(object, kind)
    call expect(kind == JCT_LIVE, 'live')
    call follow%next(object, kind, 0.0_real64, stat)
    call expect(stat == JCT_TIMEOUT .and. kind == 0, 'nothing has arrived')
    cursor = follow%cursor()
    call offer('f2', 'between')
    call follow%open(pool, 'name=f1/f2', 'until_live,cursor=('//cursor//')')
    kind = 0
    do while (kind /= JCT_OBJECT)
      call follow%next(object, kind)
    end do
    call expect(object%text() == 'between', 'continued')
    do while (kind /= JCT_OVER)
      call follow%next(object, kind)
    end do
    call follow%open(pool, 'name=g', 'group=workers')
    call member%join(pool, 'workers', 'window=1')
    call member%close()
    call follow%close()
    call pool%retract('workers')
    call requirement%open(pool, 'name=gap', 'name=gaps')
    call offer('gap', 'lost')
    call pool%withdraw_all('name=gap', 'force')
    call follow%open(pool, '', 'requirement=gaps')
    do while (kind /= JCT_GAP)
      call follow%next(object, kind)
    end do
    call follow%gap(missed, reason)
    call expect(missed == 1 .and. reason == 'withdrawn', 'gap')
    call requirement%retract()
  end subroutine

  ! A follow that goes out of scope has ended.
  subroutine finalizers()
    type(attributes_t) :: key
    integer(int64) :: readers
    call key%set('name', 'final')
    call follow_for_a_while(key)
    call pool%wanted(key, readers)
    call expect(readers == 0, 'a follow outlives its variable')
  end subroutine

  subroutine follow_for_a_while(key)
    type(attributes_t), intent(in) :: key
    type(follow_t) :: follow
    integer(int64) :: readers
    call follow%open(pool, 'name=final')
    call pool%wanted(key, readers)
    call expect(readers == 1, 'a follow wants what matches')
  end subroutine

  subroutine lists()
    type(list_t) :: list
    character(len=:), allocatable :: key
    integer(int64) :: bytes
    call offer('l1', '1')
    call offer('l2', '22')
    call list%open(pool, 'name=l1/l2', 'order_by=name')
    call list%next(key, bytes)
    call expect(index(key, 'name=l1') > 0 .and. bytes == 1 .and. list%value('name') == 'l1', 'first')
    call list%next(key)
    call list%next(key, bytes)
    call expect(key == '' .and. bytes == 0, 'end')
    call list%close()
  end subroutine

  subroutine bundles()
    type(bundle_t) :: mine, yours
    type(pipeline_t) :: members
    type(allocation_t) :: memory
    type(attributes_t) :: first, second, common
    integer(int8), pointer :: letters(:)
    integer(int64) :: objects
    integer :: stat
    call first%set('name', 'b1')
    call second%set('name', 'b2')
    call mine%open(pool)
    call mine%offer(first, 'one')
    call memory%open(mine, 3_int64)
    call memory%view(letters)
    letters = 7_int8
    call memory%stage(mine, second)
    call first%set('name', 'b5')
    call members%open(mine)
    call members%offer(first, 'three')
    call members%flush()
    call members%close()
    call mine%seal(objects)
    call expect(objects == 3, 'sealed')
    call first%set('name', 'b3')
    call second%set('name', 'b4')
    call common%set('space', 'bundled')
    call mine%open(pool, 'run/step=6', common, 'members=2')
    call yours%open(pool, 'run/step=6', common, 'members=2')
    call mine%offer(first, [1.0_real32, 2.0_real32])
    call mine%wait(0.0_real64, stat=stat)
    call expect(stat == JCT_TIMEOUT, 'one of two')
    call yours%offer(second, 'two')
    call mine%wait(objects=objects)
    call expect(objects == 2, 'complete')
    call mine%open(pool)
    call mine%abort()
    call mine%seal(stat=stat)
    call expect(stat /= JCT_OK, 'aborted')
  end subroutine

  ! Arrays of all ranks, and of all kinds, there and back.
  subroutine ranks_and_kinds()
    type(attributes_t) :: key
    integer :: i
    real(real64) :: r0, r1(2), r2(2, 2), r3(2, 2, 2), r4(2, 2, 2, 2), r5(2, 2, 2, 2, 2), r6(2, 2, 2, 2, 2, 2)
    real(real64) :: r7(2, 2, 2, 2, 2, 2, 2), all(128)
    integer(int8) :: i1(2, 3)
    integer(int16) :: i2(2, 3)
    integer(int32) :: i4(2, 3)
    integer(int64) :: i8(2, 3)
    real(real32) :: r4_of_2(2, 3)
    real(real64) :: none(0)
    all = [(real(i, real64), i = 1, 128)]
    call name_key(key, 'rank_7')
    call pool%offer(key, reshape(all, [2, 2, 2, 2, 2, 2, 2]))
    call pool%demand('name=rank_7', r7)
    call expect(all(128) == r7(2, 2, 2, 2, 2, 2, 2) .and. r7(2, 1, 1, 1, 1, 1, 1) == 2, 'rank_7')
    call name_key(key, 'rank_6')
    call pool%offer(key, r7(:, :, 1, :, :, :, :))
    call pool%demand('name=rank_6', r6)
    call expect(r6(2, 2, 2, 2, 2, 2) == 124 .and. r6(1, 1, 2, 1, 1, 1) == 9, 'rank_6')
    call name_key(key, 'rank_5')
    call pool%offer(key, r7(1, :, :, :, :, :, 2))
    call pool%demand('name=rank_5', r5)
    call expect(r5(1, 1, 1, 1, 1) == 65 .and. r5(2, 2, 2, 2, 2) == 127, 'rank_5')
    call name_key(key, 'rank_4')
    call pool%offer(key, r5(:, :, :, :, 1))
    call pool%demand('name=rank_4', r4)
    call expect(r4(2, 1, 1, 1) == 67, 'rank_4')
    call name_key(key, 'rank_3')
    call pool%offer(key, r4(:, :, :, 2))
    call pool%demand('name=rank_3', r3)
    call expect(r3(1, 1, 1) == r4(1, 1, 1, 2), 'rank_3')
    call name_key(key, 'rank_2')
    call pool%offer(key, r3(2, :, :))
    call pool%demand('name=rank_2', r2)
    call expect(all_equal(r2, r3(2, :, :)), 'rank_2')
    call name_key(key, 'rank_1')
    call pool%offer(key, r2(2, :))
    call pool%demand('name=rank_1', r1)
    call expect(r1(1) == r2(2, 1) .and. r1(2) == r2(2, 2), 'rank_1')
    call name_key(key, 'rank_0')
    call pool%offer(key, 42.0_real64)
    call pool%demand('name=rank_0', r0)
    call expect(r0 == 42, 'rank_0')
    call name_key(key, 'none')
    call pool%offer(key, none)
    call pool%demand('name=none', none)

    i1 = reshape([(int(i, int8), i = -3, 2)], [2, 3])
    i2 = 300_int16 * i1
    i4 = 70000 * int(i1)
    i8 = 5000000000_int64 * i1
    r4_of_2 = 0.25_real32 * i1
    call name_key(key, 'i1')
    call pool%offer(key, i1)
    call name_key(key, 'i2')
    call pool%offer(key, i2)
    call name_key(key, 'i4')
    call pool%offer(key, i4)
    call name_key(key, 'i8')
    call pool%offer(key, i8)
    call name_key(key, 'r4')
    call pool%offer(key, r4_of_2)
    i1 = 0
    i2 = 0
    i4 = 0
    i8 = 0
    r4_of_2 = 0
    call pool%demand('name=i1', i1)
    call pool%demand('name=i2', i2)
    call pool%demand('name=i4', i4)
    call pool%demand('name=i8', i8)
    call pool%demand('name=r4', r4_of_2)
    call expect(sum(int(i1)) == -3 .and. sum(int(i2)) == -900 .and. sum(i4) == -210000, 'integers')
    call expect(sum(i8) == -15000000000_int64 .and. i8(2, 3) == 10000000000_int64, 'int64')
    call expect(r4_of_2(2, 3) == 0.5 .and. r4_of_2(1, 1) == -0.75, 'real32')
  end subroutine

  pure function all_equal(one, other) result(equal)
    real(real64), intent(in) :: one(:, :), other(:, :)
    logical :: equal
    equal = .not. any(abs(one - other) > 0)
  end function

  ! Sections that are not contiguous: what is beside them is not written.
  subroutine sections()
    type(attributes_t) :: key
    type(object_t) :: object
    real(real64) :: inner(4, 5), wind(0:5, 0:6)
    real(real64), pointer :: payload(:)
    integer :: i
    inner = reshape([(real(i, real64), i = 1, 20)], [4, 5])
    wind = -1
    call name_key(key, 'section')
    call pool%offer(key, inner)
    call pool%demand('name=section', wind(1:4, 1:5))
    call expect(all_equal(wind(1:4, 1:5), inner), 'received into a section')
    call expect(sum(wind) == 210 - 22, 'the halo is not written')
    call name_key(key, 'strided')
    call pool%offer(key, wind(4:1:-2, 1:5:2))
    call pool%demand('name=strided', object)
    call object%view(payload)
    call expect(size(payload) == 6 .and. payload(1) == 4 .and. payload(2) == 2 .and. payload(6) == 18, 'offered from a section')
    wind = -1
    call object%get(wind(1:3:2, 2:4))
    call expect(wind(1, 2) == 4 .and. wind(3, 2) == 2 .and. wind(3, 4) == 18 .and. wind(2, 2) == -1, 'get into a section')
  end subroutine

  subroutine layouts()
    type(layout_t) :: layout
    integer :: stat, number
    call layout%open('shape=7x6 grid=2x3 order=F')
    call expect(layout%ranks() == 6 .and. layout%elements(0) == 8 .and. layout%elements(5) == 6, 'elements')
    call expect(layout%extent(1, 0) == 4 .and. layout%extent(2, 5) == 2, 'extent')
    call expect(layout%start(1, 0) == 1 .and. layout%start(1, 5) == 5 .and. layout%start(2, 5) == 5, 'start')
    number = layout%start(3, 0, stat)
    call expect(stat == JCT_INVALID_ARGUMENT .and. number == 1, 'a dimension too many')
    number = layout%extent(0, 0, stat)
    call expect(stat == JCT_INVALID_ARGUMENT .and. number == 0, 'dimensions are counted from 1')
    call layout%open_blocks([4_int64, 6_int64], [1_int64, 0_int64], reshape([1_int64, 1_int64, 3_int64, 1_int64], [2, 2]), &
                            reshape([2_int64, 6_int64, 2_int64, 6_int64], [2, 2]))
    call expect(layout%ranks() == 2 .and. layout%start(1, 0) == 3 .and. layout%extent(2, 1) == 6, 'blocks')
    call layout%open_blocks([4_int64], [0_int64], reshape([0_int64], [1, 1]), reshape([4_int64], [1, 1]), stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'a start of 0')
    call layout%open_blocks([4_int64], [0_int64], reshape([1_int64], [1, 1]), reshape([4_int64, 4_int64], [1, 2]), stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'counts of another length')
    call layout%close()
  end subroutine

  ! Two ranks have rows of 4 x 6 elements; three want columns.
  subroutine exchanges()
    type(layout_t) :: rows, columns
    type(exchange_t) :: to, from
    type(bundle_t) :: together
    type(attributes_t) :: run, step
    type(object_t) :: held
    real(real64) :: whole(4, 6), part(4, 2), halo(0:5, 2)
    real(real32) :: short(4, 2)
    integer :: rank, i, stat
    whole = reshape([(real(i, real64), i = 1, 24)], [4, 6])
    call rows%open('shape=4x6 grid=2x1 order=F')
    call columns%open('shape=4x6 grid=1x3')
    call columns%open('shape=4x6 grid=1x3 order=F')
    call run%set('space', 'coupled')
    call step%set('name', 'once')
    do rank = 0, 1
      call pool%offer_piece(rows, rank, step, whole(2 * rank + 1:2 * rank + 2, :), 'retention=withdrawn')
    end do
    call pool%demand_array(step, columns, 1, part, 'schema=free', 60.0_real64)
    call expect(all_equal(part, whole(:, 3:4)), 'once')
    call pool%demand_array(step, columns, 2, short)
    call expect(short(4, 2) == 24, 'converted')
    call pool%demand_key(step, held, timeout=60.0_real64)
    do rank = 0, 2
      call held%take(pool, columns, rank, part)
      call expect(all_equal(part, whole(:, 2 * rank + 1:2 * rank + 2)), 'a part of an array that is held')
    end do
    call held%take(pool, columns, 3, part, stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'a rank that is none')
    call held%give_back()

    call step%set('name', 'within')
    call together%open(pool, 'step', options='members=1')
    do rank = 0, 1
      call pool%demand_array(step, columns, 1, part, timeout=0.0_real64, stat=stat)
      call expect(stat == JCT_NOT_FOUND, 'a bundle that lacks a piece')
      call together%offer_piece(rows, rank, step, whole(2 * rank + 1:2 * rank + 2, :), 'schema=free')
    end do
    call together%wait(60.0_real64)
    call pool%demand_array(step, columns, 1, part)
    call expect(all_equal(part, whole(:, 3:4)), 'an array of a bundle')
    call together%open(pool)
    call together%offer_piece(rows, 0, step, whole(1:2, :), stat=stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'a bundle without a path')
    call together%close()

    call step%set('name', 'sst')
    call step%set('step', '1')
    do rank = 0, 1
      call to%open(pool, rows, rank, 'f8', run, 'retention=withdrawn')
      call to%put(step, whole(2 * rank + 1:2 * rank + 2, :))
    end do
    call from%open(pool, columns, 2, 'f8', run)
    halo = -1
    call from%get(step, halo(1:4, :), 60.0_real64)
    call expect(all_equal(halo(1:4, :), whole(:, 5:6)) .and. halo(0, 1) == -1 .and. halo(5, 2) == -1, 'exchanged')
    call from%get(step, short, stat=stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'another type')
    call from%get(step, halo, stat=stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'another length')
    call from%close()
  end subroutine

  subroutine events()
    type(subscription_t) :: subscription
    character(len=:), allocatable :: kind
    integer :: stat
    call subscription%open(pool, 'name=event', 'kinds=(offered,withdrawn)')
    call subscription%next(kind, 0.0_real64, stat)
    call expect(stat == JCT_TIMEOUT .and. kind == '', 'no event')
    call offer('event', 'payload')
    call subscription%next(kind)
    call expect(kind == 'offered' .and. subscription%value('name') == 'event', kind)
    call expect(subscription%number('bytes') == 7 .and. subscription%text('bundle') == '', 'event')
    call expect(index(subscription%text('key'), 'event') > 0, 'key')
    call expect(subscription%number('members', stat) == 0 .and. stat == JCT_NOT_FOUND, 'members')
    call subscription%close()
  end subroutine

  subroutine refusals()
    type(object_t) :: object
    type(pool_t) :: other
    type(follow_t) :: follow
    real(real64) :: values(3)
    integer :: stat, kind
    character(len=100) :: message
    call offer('short', '12345678')
    call pool%demand('name=short', values, stat=stat, errmsg=message)
    call expect(stat == JCT_INVALID_ARGUMENT .and. index(message, 'the payload has 8') > 0, message)
    call object%get(values, stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'no object')
    call pool%demand('name=', object, stat=stat)
    call expect(stat == JCT_INVALID_SELECTOR, 'selector')
    call pool%demand('name=never', object, timeout=0.001_real64, stat=stat)
    call expect(stat == JCT_TIMEOUT, 'timeout')
    call follow%next(object, kind, stat=stat)
    call expect(stat == JCT_INVALID_ARGUMENT, 'a follow that is not open')
    call other%open('unix:no-such-pool', stat=stat)
    call expect(stat == JCT_UNAVAILABLE .and. other%url() == '', 'no server')
  end subroutine

  subroutine close_pool()
    type(object_t) :: object
    call offer('held', 'held')
    call pool%demand('name=held', object)
    call pool%close()
    call expect(object%text() == 'held', 'held')
  end subroutine
end program
