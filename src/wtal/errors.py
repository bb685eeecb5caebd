"""What a user did, said plainly: one error type that the command line shows without a traceback."""


class InputError(ValueError):
    """Something the user gave is wrong. The message says what was wanted, what was got and what to do."""


class MissingExtraError(ImportError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}, which is not installed: pip install 'wtal[{extra}]'")


class DataWarning(UserWarning):
    """Something in the data is odd, but the field's practice is to go on; the message counts it and names one."""
