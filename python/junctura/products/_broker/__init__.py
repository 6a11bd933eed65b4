"""The broker: decides which tasks are due, gives them to workers, and reports products.

```text
  broker.py           pools, clock and crew: turns what happens into events, and performs actions
  engine.py           events in, actions out; decides which tasks are due
  engine_events.py    these events and actions
  life_cycles.py      the states of inputs, pairs and products, and the tables of their transitions
  task_graph.py       the nodes and products of the recipes, and what they share
  weights_planner.py  which weights inputs need
  task_queue.py       tasks that are due, until the crew takes them
  output_locks.py     which run makes which file
  announcements.py    announces products in a pool
  remote_pool.py      the broker's pool by TCP, for a Dask cluster
  run_report.py       the report of a run
```
The tasks and answers themselves are in `junctura.products._tasks`.
"""
