"""Exit codes of the program: `--help` and docs/command_line.md show this table."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a verb ended."""

    DONE = 0
    NOT_WRITTEN = 1
    USAGE = 2
    NOT_CONVERGED = 3
    BAD_DATA = 4
    NOT_MET = 5
    INTERRUPTED = 130
    READER_GONE = 141

    @property
    def meaning(self) -> str:
        """The same in words."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.NOT_WRITTEN: "a file could not be written; the results are on standard output",
    ExitCode.USAGE: "a wrong option, a missing file or a package that is not installed",
    ExitCode.NOT_CONVERGED: "the sampler did not converge (take more --draws), or the model "
    "contradicts its pilot",
    ExitCode.BAD_DATA: "the data cannot be used; the message says where and why",
    ExitCode.NOT_MET: "the data are probably faulty (diagnose: with --strict), or a requirement is "
    "not met: --require or --strict",
    ExitCode.INTERRUPTED: "interrupted; finished work is kept",
    ExitCode.READER_GONE: "the reader of standard output ended first, such as head",
}
