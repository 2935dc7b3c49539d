"""What a user can mend: one family of errors, each with one line per problem."""


class CloakingError(Exception):
    """Something is wrong that the user can mend; `problems` holds one line for each, never a record's value."""

    def __init__(self, *problems: str) -> None:
        self.problems = tuple(" ".join(problem.splitlines()) for problem in problems)  # a name may hold a line break
        super().__init__("\n".join(self.problems))


class SettingsError(CloakingError):
    """The command line or the configuration file is not as it must be."""


class InputError(CloakingError):
    """A table cannot be read, or what it holds cannot be measured."""


class OutputError(CloakingError):
    """A result cannot be written; the line says what stands."""
