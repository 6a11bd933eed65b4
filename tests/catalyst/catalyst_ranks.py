"""Ranks of a program without MPI: processes with the variables that a launcher sets."""

from __future__ import annotations

import subprocess
from types import TracebackType


class CatalystRanks:
    """Processes that are rank 0, 1, ... of one program."""

    def __init__(self, count: int, command: list[str], environment: dict[str, str]) -> None:
        self.processes = [
            subprocess.Popen(
                command,
                env={**environment, "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(count)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(count)
        ]

    def __enter__(self) -> CatalystRanks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def step(self, ranks: list[int] | None = None) -> None:
        """Lets these ranks (default: all) make one step, and waits until they have. For programs that step by step."""
        chosen = [self.processes[rank] for rank in ranks] if ranks is not None else self.processes
        for process in chosen:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in chosen:
            assert process.stdout is not None
            while not (line := process.stdout.readline()).startswith("step"):
                assert line, process.communicate()[1]

    def end(self) -> list[str]:
        """Waits until all have ended well; what each has printed on standard error."""
        errors = []
        for process in self.processes:
            # Not by `communicate`, which forgets what was read ahead. Either stream fits into its pipe.
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            process.stdin.close()
            output, error = process.stdout.read(), process.stderr.read()
            process.wait(timeout=120)
            assert process.returncode == 0, (process.returncode, output, error)
            assert output.endswith("finalize 0\n"), output
            errors.append(error)
        return errors

    def kill(self) -> None:
        """Ends all at once, as SIGKILL does."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None and not stream.closed:
                    stream.close()
