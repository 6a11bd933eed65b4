"""Messages between broker and workers, through the broker's pool.

```text
  tasks.py          the tasks and the answers, each a type of its own
  codec.py          their JSON form, with a tag for the type
  task_messages.py  the objects of the pool: names, the job, hints
  shared_arrays.py  fields of nodes, as arrays in shared memory
```
"""
