B=/work/wt/mesh.target/benches/meshes; J=/work/wt/mesh.target/release/junctura
$J pool serve --pool unix:/tmp/mesh/p.sock --schema mesh --budget 1GiB --announce > /tmp/mesh/serve.log 2>&1 & S=$!
sleep 1
export CATALYST_IMPLEMENTATION_PATHS=$B/lib/catalyst CATALYST_IMPLEMENTATION_NAME=junctura JUNCTURA_POOL=unix:/tmp/mesh/p.sock
perf record -q -F 5000 -e cpu-clock -o /tmp/mesh/perf.data $B/wave 64 60 1 > /tmp/mesh/wave.log 2>&1
tail -1 /tmp/mesh/wave.log
JUNCTURA_CATALYST=case=b strace -f -c -o /tmp/mesh/strace.txt $B/wave 64 40 1 | tail -1
kill $S
