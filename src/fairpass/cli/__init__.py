"""The command line: parses, calls, prints."""

import signal


def main() -> None:
    """Run the `fairpass` command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until a command begins, Ctrl-C just ends the program
    from fairpass.cli.app import app

    app()
