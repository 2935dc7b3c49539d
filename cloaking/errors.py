"""Errors that the user can fix, each with one line per problem."""


class CloakingError(Exception):
    """An error that the user can fix; `problems` has one line per problem, without any record's value."""

    def __init__(self, *problems: str) -> None:
        self.problems = tuple(" ".join(problem.splitlines()) for problem in problems)  # a name may contain a line break
        super().__init__("\n".join(self.problems))


class SettingsError(CloakingError):
    """The command line or the configuration file is wrong."""


class InputError(CloakingError):
    """A table cannot be read, or its content cannot be measured."""


class OutputError(CloakingError):
    """A result cannot be written; the message says what remains of earlier or partial results."""
